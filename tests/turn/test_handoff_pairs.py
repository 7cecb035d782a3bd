"""Handing over, in pairs with tasks, crashes, several handovers in a reply, and modes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Plugin, Rule, Runtime, ScriptedModel, TurnView, allow_once, reject, tool
from dragoman.errors import ConfigError
from dragoman.messages.message import CallState
from dragoman.messages.request import Request
from dragoman.turn.facts import TurnStarted
from dragoman.wire.scripted import Line, calls, says
from tests.runtimes import add, calls_of, model_of, runtime_with

RAN: list[str] = []


@tool
def danger(what: str) -> str:
    """Do something."""
    RAN.append(what)
    return what


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


def _runtime(folder: Path, script: Any, agents: list[Agent], **options: Any) -> Runtime:
    return runtime_with(folder, script, tools=[danger], agents=agents, **options)


def _in_turn(request: Request) -> int:
    return sum(message.role == "assistant" for message in request.messages)


async def _asked(runtime: Runtime, **sent: Any) -> list[str]:
    """Return the tools that needed approval, in the turn and its tasks, and allow every call."""
    asked: dict[str, str] = {}
    turn = await runtime.send("go", **sent)
    async for _ in turn.events():
        for question in await runtime.questions():
            if question.id not in asked:
                asked[question.id] = question.tool
                await runtime.answer(question.id, allow_once())
    return [*asked.values()]


async def test_a_task_of_who_goes_on_keeps_the_stricter_mode(tmp_path: Path) -> None:
    """P8: a hands over to b, and b gives a task away: the turn ran in mode ask, and so does the task."""
    a = Agent(name="a", mode="ask", handoffs=("b",))
    b, worker = Agent(name="b", mode="auto"), Agent(name="worker")

    def script(request: Request) -> Line:
        inner = "do it" in str(request.messages[0].parts)
        if inner:
            return calls("danger", what="x") if _in_turn(request) == 0 else says("did")
        steps = [calls("hand_off", agent="b"), calls("task", agent="worker", request="do it"), says("done")]
        return steps[_in_turn(request)]

    async with _runtime(tmp_path, script, [a, b, worker]) as runtime:
        assert await _asked(runtime, agent="a") == ["hand_off", "task", "danger"]


async def test_a_stricter_agent_in_a_task_is_stricter_still(tmp_path: Path) -> None:
    """A task has the strictest of the permissions that apply to it, not the loosest (P8)."""
    worker, strict = Agent(name="worker", handoffs=("strict",)), Agent(name="strict", mode="ask")

    def script(request: Request) -> Line:
        if "do it" in str(request.messages[0].parts):
            steps = [calls("hand_off", agent="strict"), calls("danger", what="x"), says("did")]
            return steps[_in_turn(request)]
        return [calls("task", agent="worker", request="do it"), says("done")][_in_turn(request)]

    async with _runtime(tmp_path, script, [worker, strict]) as runtime:
        assert await _asked(runtime) == ["danger"]


async def test_what_the_first_agent_called_is_its_own_after_a_crash(tmp_path: Path) -> None:
    """One reply calls a tool and hands over, and the other agent does not have that tool (S1)."""
    agents = [Agent(name="a", handoffs=("b",)), Agent(name="b", tools=())]
    script = [calls("danger", what="x") + calls("hand_off", agent="b")]
    async with _runtime(tmp_path, script, agents, allow=["hand_off"]) as runtime:
        turn = await runtime.send("go", agent="a")
        async for event in turn.events():
            if event.type == "call.end":
                break
        (question,) = await runtime.questions()
    async with _runtime(tmp_path, [says("b here")], agents, allow=["hand_off"]) as runtime:
        again = runtime.turn(turn.id)
        await again.answer(question.id, allow_once())
        result = await again.result()
        assert RAN == ["x"]
        assert [call.state for call in calls_of(result.messages)] == [CallState.COMPLETED] * 2
        assert not model_of(runtime).requests[-1].tools
        chat = await runtime.conversation((await runtime.store.turn(turn.id)).conversation)
        assert (await chat.info()).settings["agent"] == "b"


async def test_of_two_handovers_in_a_reply_the_first_counts(tmp_path: Path) -> None:
    agents = [Agent(name="a", handoffs=("b", "c")), Agent(name="b", prompt="I am b."), Agent(name="c")]
    script = [calls("hand_off", agent="b") + calls("hand_off", agent="c"), says("1"), says("2")]
    async with _runtime(tmp_path, script, agents) as runtime:
        chat = await runtime.conversation(agent="a")
        result = await (await chat.send("go")).result()
        assert [str(call.state) for call in calls_of(result.messages)] == ["completed", "failed"]
        await (await chat.send("again")).result()
        assert ["I am b." in request.system for request in model_of(runtime).requests] == [False, True, True]


async def test_who_was_chosen_meanwhile_stays(tmp_path: Path) -> None:
    """A person chose another agent while the turn waited: the handover is for this turn alone."""
    agents = [Agent(name="a", handoffs=("b",)), Agent(name="b"), Agent(name="c")]
    script = [calls("hand_off", agent="b"), says("1")]
    async with _runtime(tmp_path, script, agents, allow=[]) as runtime:
        chat = await runtime.conversation(agent="a")
        turn = await chat.send("go")
        assert await turn.reached("waiting")
        await chat.change(agent="c")
        await turn.answer(turn.question, allow_once())
        await turn.result()
        assert (await chat.info()).settings["agent"] == "c"


async def test_who_is_chosen_after_a_handover_stays_when_the_turn_ends(tmp_path: Path) -> None:
    """Also the one that handed over."""
    agents = [Agent(name="a", handoffs=("b",)), Agent(name="b")]
    script = [calls("hand_off", agent="b"), calls("danger", what="x"), says("done")]
    async with _runtime(tmp_path, script, agents, allow=["hand_off"]) as runtime:
        chat = await runtime.conversation(agent="a")
        turn = await chat.send("go")
        assert await turn.reached("waiting")
        assert (await chat.info()).settings["agent"] == "b"
        await chat.change(agent="a")
        await turn.answer(turn.question, allow_once())
        await turn.result()
        assert (await chat.info()).settings["agent"] == "a"


@pytest.mark.parametrize("chosen", [None, "c"])
async def test_what_is_queued_is_answered_by_who_goes_on(tmp_path: Path, chosen: str | None) -> None:
    """A queued turn follows the handover and uses the model of the agent that answers it. An agent named by
    its send stays, and a handover limited to one turn leaves every queued turn unchanged (T4)."""
    rules = (Rule("danger", "*", "deny"),)
    agents = [
        Agent(name="a", handoffs=("b",)),
        Agent(name="b", model="b/model", rules=rules),
        Agent(name="c"),
    ]
    models = {name: ScriptedModel(partial(_hands_over, name), name=name) for name in ("a/model", "b/model")}
    async with Runtime(
        tmp_path / "chat.db", model=lambda name: models[name or "a/model"], agents=agents
    ) as runtime:
        chat = await runtime.conversation(agent="a")
        turn = await chat.send("go")
        assert await turn.reached("waiting")
        queued = await chat.send("next", queue=True)
        named = await chat.send("last", queue=True, agent="c")
        if chosen is not None:
            await chat.change(agent=chosen)
        await turn.answer(turn.question, allow_once())
        assert (await queued.result()).text == ("b/model" if chosen is None else "a/model")
        started = (await queued.facts())[0]
        assert isinstance(started, TurnStarted)
        assert started.options.accepted is not None
        model, kept = ("a/model", ()) if chosen is not None else ("b/model", rules)
        assert (started.options.started_with, started.options.accepted.agent) == (model, kept)
        assert (await named.result()).text == "a/model"


@pytest.mark.parametrize("how", ["cancel", "stop"])
async def test_a_handover_in_the_last_reply_of_a_turn_counts(tmp_path: Path, how: str) -> None:
    """The new agent had no step in this turn, and answers in the next one (T6, P4)."""
    agents = [Agent(name="a", handoffs=("b",)), Agent(name="b")]
    script = [calls("hand_off", agent="b") + calls("danger", what="x")]
    options: dict[str, Any] = {"allow": ["hand_off"], "on_reject": "stop"}
    async with _runtime(tmp_path, script, agents, **options) as runtime:
        chat = await runtime.conversation(agent="a")
        turn = await chat.send("go")
        assert await turn.reached("waiting")
        await (turn.cancel() if how == "cancel" else turn.answer(turn.question, reject()))
        await turn.result()
        assert (await chat.info()).settings["agent"] == "b"
        assert len(model_of(runtime).requests) == 1


async def test_a_handover_needs_no_model_but_that_of_the_conversation(tmp_path: Path) -> None:
    """A handover works if no model is set for all agents (R1)."""
    agents = [Agent(name="a", handoffs=("b",)), Agent(name="b")]
    models: dict[str | None, ScriptedModel] = {"own": ScriptedModel(partial(_hands_over, "own"), name="own")}
    async with Runtime(
        tmp_path / "chat.db", model=models.__getitem__, agents=agents, allow=["hand_off"]
    ) as runtime:
        chat = await runtime.conversation(agent="a", model="own")
        assert (await (await chat.send("go")).result()).text == "own"
        assert (await chat.info()).settings["agent"] == "b"


async def test_a_handover_to_who_has_no_model_here_spoils_no_ending(tmp_path: Path) -> None:
    """The turn ends although the caller's model lookup raises an exception (T6)."""
    agents = [Agent(name="a", handoffs=("b",)), Agent(name="b", model="b/model")]
    script = [calls("hand_off", agent="b") + calls("danger", what="x")]
    models: dict[str | None, ScriptedModel] = {None: ScriptedModel(script)}
    async with Runtime(
        tmp_path / "chat.db", model=models.__getitem__, agents=agents, tools=[danger], allow=["hand_off"]
    ) as runtime:
        turn = await (await runtime.conversation(agent="a")).send("go")
        assert await turn.reached("waiting")
        await turn.cancel()
        assert (await turn.result()).state == "cancelled"


def _hands_over(model: str, request: Request) -> Line:
    return calls("hand_off", agent="b") if not _in_turn(request) else says(model)


async def test_a_task_without_an_answer_failed(tmp_path: Path) -> None:
    """The agent that gave the task receives an error with the reason for the missing answer (T7)."""
    worker = Agent(name="worker")

    def script(request: Request) -> Line:
        if "do it" in str(request.messages[0].parts):
            return calls("danger", what="x") if request.tools else says("", finish="stop")
        return [calls("task", agent="worker", request="do it"), says("done")][_in_turn(request)]

    async with _runtime(tmp_path, script, [worker], max_rounds=1) as runtime:
        result = await (await runtime.send("go")).result()
        (call,) = calls_of(result.messages)
        assert call.state is CallState.FAILED


@pytest.mark.parametrize("tools", [("note",), ("filez",), ("tools.dangr",)])
async def test_a_tool_that_is_not_there_is_told_at_the_start(
    tmp_path: Path, tools: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    async with _runtime(tmp_path, [], [Agent(name="a", tools=tools)]):
        assert f"agent a: Unknown group or tool '{tools[0]}'" in caplog.text


@pytest.mark.parametrize("tools", ["tools", (danger,)])
def test_tools_of_an_agent_are_names(tools: Any) -> None:
    with pytest.raises(ConfigError, match="must be a tuple of names"):
        Agent(name="a", tools=tools)


async def test_a_bare_name_is_enough(tmp_path: Path) -> None:
    async with _runtime(tmp_path, [says("1")], [Agent(name="a", tools=("danger",))]) as runtime:
        await (await runtime.send("go", agent="a")).result()
        assert [spec.name for spec in model_of(runtime).requests[0].tools] == ["danger"]


def _in_turn_since_asked(request: Request) -> int:
    asked = max(n for n, message in enumerate(request.messages) if message.role == "user")
    return len(request.messages) - 1 - asked


@pytest.mark.parametrize("how", ["rerun", "edit"])
async def test_a_repeated_send_begins_with_who_it_was_made_to(tmp_path: Path, how: str) -> None:
    """T10 x T14: a handover since then, by that turn or by one after it, is not what the person chose."""
    desk = Agent(name="desk", prompt="DESK", handoffs=("clerk",))
    clerk = Agent(name="clerk", prompt="CLERK", handoffs=("expert",))
    expert = Agent(name="expert", prompt="EXPERT")

    def script(request: Request) -> Line:
        if _in_turn_since_asked(request) or "EXPERT" in request.system:
            return says("done")
        return calls("hand_off", agent="clerk" if "DESK" in request.system else "expert")

    async with _runtime(tmp_path, script, [desk, clerk, expert]) as runtime:
        chat = await runtime.conversation(agent="desk")
        for said in ("one", "two"):
            await (await chat.send(said)).result()
        assert (await chat.info()).settings["agent"] == "expert"
        first, *_ = await chat.messages()

        async def again() -> str:
            requests = model_of(runtime).requests
            before = len(requests)
            turn = await (chat.rerun(first.id) if how == "rerun" else chat.edit(first.id, "another"))
            await turn.result()
            return requests[before].system

        assert "DESK" in await again()
        await chat.change(agent="expert")
        assert "DESK" in await again()  # the handover cannot show that the agent changed afterwards
        await chat.change(agent=None)
        assert "DESK" not in await again()


async def test_a_fork_from_before_a_handover_begins_with_who_answered_there(tmp_path: Path) -> None:
    """A fork from before the handover starts with the earlier agent, one from after it with the new agent. A
    user's choice stays in both (S1)."""
    a, b, c = Agent(name="a", handoffs=("b",)), Agent(name="b"), Agent(name="c")
    script = [says("I am a"), calls("hand_off", agent="b"), says("I am b"), *[says("x")] * 9]
    async with _runtime(tmp_path, script, [a, b, c]) as runtime:
        chat = await runtime.conversation(agent="a")
        await (await chat.send("one")).result()
        await (await chat.send("two")).result()
        assert (await chat.info()).settings["agent"] == "b"
        said = await chat.messages()
        for message, agent in zip(said, ["a", "a", "a", "b", "b"], strict=True):
            fork = await runtime.fork(chat.id, message.id)
            assert (await fork.info()).settings["agent"] == agent
        await chat.change(agent="c")
        fork = await runtime.fork(chat.id, said[1].id)
        assert (await fork.info()).settings["agent"] == "c"


async def test_a_fork_from_before_a_handover_goes_on_where_an_agent_is_gone(tmp_path: Path) -> None:
    """S1: with whom the conversation is now."""
    a, b = Agent(name="a", handoffs=("b",)), Agent(name="b")
    async with _runtime(tmp_path, [calls("hand_off", agent="b"), says("I am b")], [a, b]) as runtime:
        chat = await runtime.conversation(agent="a")
        await (await chat.send("one")).result()
    async with _runtime(tmp_path, [], [b]) as runtime:
        message = (await (await runtime.conversation(chat.id)).messages())[0]
        fork = await runtime.fork(chat.id, message.id)
        assert (await fork.info()).settings["agent"] == "b"


async def test_a_fork_from_before_a_handover_names_no_agent_where_there_was_none(tmp_path: Path) -> None:
    """A fork from before the handover names no agent if the user had chosen none (S1)."""
    a, b = Agent(name="a", handoffs=("b",)), Agent(name="b")
    script = [says("I am nobody"), calls("hand_off", agent="b"), says("I am b")]
    async with _runtime(tmp_path, script, [a, b]) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("one")).result()
        await (await chat.send("two", agent="a")).result()
        assert (await chat.info()).settings["agent"] == "b"
        fork = await runtime.fork(chat.id, (await chat.messages())[1].id)
        assert "agent" not in (await fork.info()).settings


async def test_the_order_of_tools_is_the_same_in_all_requests_where_a_plugin_adds_one(tmp_path: Path) -> None:
    """The tools that the provider has cached come first and in the same order (R2 × H3)."""

    class Adds(Plugin):
        async def on_before_request(self, request: Request, turn: TurnView) -> None:
            turn.add_tool(add)

    a, b = Agent(name="a", handoffs=("b",)), Agent(name="b")
    script = [calls("danger", what="x"), calls("add", a=1, b=1), says("done")]
    async with _runtime(tmp_path, script, [a, b], plugins=[Adds()]) as runtime:
        await (await runtime.send("go", agent="a")).result()
        first, *others = [[tool.name for tool in one.tools] for one in model_of(runtime).requests]
    assert others == [first, first]
