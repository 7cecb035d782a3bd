"""Regenerated calls in pairs with handovers, and with unreadable calls (T10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import Agent, Rule, tool
from dragoman.messages.message import CallState
from dragoman.wire.scripted import calls, calls_with, says
from tests.runtimes import calls_of, model_of, runtime_with

RAN: list[str] = []


@tool
def danger(what: str = "all") -> str:
    """Do something."""
    RAN.append(what)
    return what


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


HANDED = [calls("hand_off", agent="b"), calls("danger", what="x"), says("no"), says("still no")]


async def test_a_call_of_who_was_handed_to_is_decided_about_as_theirs(tmp_path: Path) -> None:
    """Agent b cannot make the call the second time either, and b continues the turn (T10 × P8)."""
    a = Agent(name="a", handoffs=("b",), prompt="I am a.")
    b = Agent(name="b", rules=(Rule("danger", "*", "deny"),), prompt="I am b.")
    async with runtime_with(tmp_path, HANDED, tools=[danger], agents=[a, b], allow=["*"]) as runtime:
        chat = await runtime.conversation(agent="a")
        first = await (await chat.send("go")).result()
        refused = calls_of(first.messages)[-1]
        assert refused.state is not CallState.COMPLETED
        await (await chat.rerun_call(refused.id, arguments={"what": "y"}, agent="a")).result()
        assert RAN == []
        assert "I am b." in model_of(runtime).requests[-1].system


@pytest.mark.parametrize(("chosen", "prompt"), [(None, "I am a."), ("c", "I am c.")])
async def test_the_agent_that_made_the_call_makes_it_anew(
    tmp_path: Path, chosen: str | None, prompt: str
) -> None:
    """It does so although the user chose another agent since, but not if they name one (T10 × T14)."""
    agents = [Agent(name=name, prompt=f"I am {name}.") for name in "abc"]
    script = [HANDED[1], says("x"), says("y")]
    async with runtime_with(tmp_path, script, tools=[danger], agents=agents) as runtime:
        chat = await runtime.conversation(agent="a")
        (made,) = calls_of((await (await chat.send("go")).result()).messages)
        await chat.change(agent="b")
        await (await chat.rerun_call(made.id, result="y", agent=chosen)).result()
        assert prompt in model_of(runtime).requests[-1].system


async def test_whoever_came_before_binds_it_too(tmp_path: Path) -> None:
    """An agent gets no more permissions than the agents that handed over, also if the conversation then names
    b (T10 × P8)."""
    a = Agent(name="a", handoffs=("b",), rules=(Rule("danger", "*", "deny"),))
    b = Agent(name="b", rules=(Rule("danger", "*", "allow"),))
    async with runtime_with(tmp_path, HANDED, tools=[danger], agents=[a, b], allow=["*"]) as runtime:
        chat = await runtime.conversation(agent="a")
        first = await (await chat.send("go")).result()
        assert RAN == []
        await (await chat.rerun_call(calls_of(first.messages)[-1].id, arguments={"what": "y"})).result()
        assert RAN == []


async def test_it_may_have_been_handed_there_and_back(tmp_path: Path) -> None:
    """Agent a answers again, and the denials of agent b still apply (T10 × P8)."""
    a = Agent(name="a", handoffs=("b",), rules=(Rule("danger", "*", "allow"),))
    b = Agent(name="b", handoffs=("a",), rules=(Rule("danger", "*", "deny"),))
    script = [HANDED[0], calls("hand_off", agent="a"), *HANDED[1:]]
    async with runtime_with(tmp_path, script, tools=[danger], agents=[a, b], allow=["*"]) as runtime:
        chat = await runtime.conversation(agent="a")
        first = await (await chat.send("go")).result()
        assert RAN == []
        await (await chat.rerun_call(calls_of(first.messages)[-1].id, arguments={"what": "y"})).result()
        assert RAN == []


async def test_a_call_that_nobody_could_read_is_not_made_as_it_was(tmp_path: Path) -> None:
    """T10 × T9: it has no arguments, which is not the same as none."""
    script = [calls_with("danger", '{"what": '), says("no"), says("still no"), says("yes")]
    async with runtime_with(tmp_path, script, tools=[danger], allow=["*"]) as runtime:
        chat = await runtime.conversation()
        first = await (await chat.send("go")).result()
        (unread,) = calls_of(first.messages)
        await (await chat.rerun_call(unread.id)).result()
        assert RAN == []
        await (await chat.rerun_call(unread.id, arguments={"what": "y"})).result()
        assert RAN == ["y"]


@pytest.mark.parametrize("how", ["fork", "import"])
async def test_a_call_that_was_copied_can_be_made_anew(tmp_path: Path, how: str) -> None:
    """A fork or an import shows the call, but the store has no turn for it (T10 × T16)."""
    script = [calls("danger", what="x"), says("x"), calls("danger", what="y"), says("y"), says("z")]
    async with runtime_with(tmp_path, script, tools=[danger], allow=["*"]) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("first")).result()
        await (await chat.send("second")).result()
        if how == "fork":
            copy = await runtime.fork(chat.id, str((await chat.info()).leaf))
        else:
            copy = await runtime.import_conversation(await runtime.export(chat.id))
        _, last = calls_of(await copy.messages())
        question = [message.id for message in await copy.messages() if message.role == "user"][-1]
        again = await (await copy.rerun_call(last.id, arguments={"what": "z"})).result()
        assert (await runtime.store.turn(again.id)).message == question
        assert RAN == ["x", "y", "z"]
        shown = [call.arguments["what"] for call in calls_of(await copy.messages())]
        assert (again.text, shown) == ("z", ["x", "z"])
