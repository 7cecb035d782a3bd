"""A stored turn on another model, with the results it had, or with live tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman import Agent, Plugin, Runtime, ScriptedModel, tool
from dragoman.errors import BadRequest, NotFound
from dragoman.messages.events import Event
from dragoman.messages.message import File, Text
from dragoman.messages.questions import Rule, allow_once
from dragoman.messages.request import Request
from dragoman.providers.catalog import load_catalog
from dragoman.providers.models import Models
from dragoman.replay import ToolsOf, replay_turn
from dragoman.turn.view import TurnView
from dragoman.wire.scripted import Line, Script, calls, fails, says
from tests.loopback import loopback
from tests.patience import PATIENCE
from tests.wire.endings.replies import chat

RAN: list[str] = []


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    RAN.append(city)
    return f"sunny in {city}"


@tool
def rain(city: str) -> str:
    """Whether it rains."""
    raise ValueError("no data")


def _models(**scripts: Script) -> Callable[[str | None], ScriptedModel]:
    made = {name: ScriptedModel(script, name=name) for name, script in scripts.items()}

    def find(name: str | None) -> ScriptedModel:
        if name is not None and name not in made:
            raise NotFound("model", name)
        return made[name or "first"]

    return find


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


async def _turn(runtime: Runtime) -> str:
    chat = await runtime.conversation(system="Be brief.")
    await (await chat.send("Hello")).result()
    turn = await chat.send("Weather in Rome and Oslo?")
    await turn.result()
    return turn.id


FIRST = [says("Hi."), calls("weather", city="Rome") + calls("weather", city="Oslo"), says("Sunny.")]


async def test_a_turn_gets_the_results_it_had(tmp_path: Path) -> None:
    """By their arguments, in whatever order; nothing runs, and nothing is stored."""
    other = [calls("weather", city="Oslo"), calls("weather", city="Rome"), says("Sun everywhere.")]
    find = _models(first=FIRST, other=other)
    async with Runtime(tmp_path / "chat.db", model=find, tools=[weather], allow=["*"]) as runtime:
        turn = await _turn(runtime)
        stored = len(await runtime.store.turns((await runtime.store.turn(turn)).conversation))
        RAN.clear()
        replayed = await replay_turn(runtime, turn, model="other")
        assert RAN == []
        assert replayed.same_calls
        assert (replayed.before.text, replayed.after.text) == ("Sunny.", "Sun everywhere.")
        assert (replayed.before.model, replayed.after.model) == ("first", "other")
        assert [call.result.text for call in replayed.after.calls if call.result] == [
            "sunny in Oslo",
            "sunny in Rome",
        ]
        request = find("other").requests[0]
        assert "Be brief." in request.system
        assert [m.parts[0].text for m in request.messages] == ["Hello", "Hi.", "Weather in Rome and Oslo?"]  # type: ignore[union-attr]
        assert len(await runtime.store.turns((await runtime.store.turn(turn)).conversation)) == stored


async def test_other_calls_are_told_apart(tmp_path: Path) -> None:
    """One with other arguments gets the next result; one more than there were fails, told to the model."""

    def other(request: Request) -> Line:
        done = sum(len(m.parts) for m in request.messages if m.role == "assistant") - 1
        return calls("weather", city=f"City {done}") if done < 3 else says("Enough.")

    async with Runtime(
        tmp_path / "chat.db", model=_models(first=FIRST, other=other), tools=[weather], allow=["*"]
    ) as runtime:
        replayed = await replay_turn(runtime, await _turn(runtime), model="other")
        assert not replayed.same_calls
        states = [str(call.state) for call in replayed.after.calls]
        assert states == ["completed", "completed", "failed"]


async def test_a_failure_is_a_result_too(tmp_path: Path) -> None:
    script = [calls("rain", city="Rome"), says("?")]
    find = _models(first=script, other=[calls("rain", city="Rome"), says("!")])
    async with Runtime(tmp_path / "chat.db", model=find, tools=[rain], allow=["*"]) as runtime:
        turn = await runtime.send("Rain?")
        await turn.result()
        replayed = await replay_turn(runtime, turn.id, model="other")
        assert [str(call.state) for call in replayed.after.calls] == ["failed"]


async def test_live_tools_run_if_a_rule_lets_them(tmp_path: Path) -> None:
    """P1: nobody is there to be asked."""
    other = [calls("weather", city="Rome") + calls("rain", city="Rome"), says("Done.")]
    find = _models(first=FIRST, other=other)
    async with Runtime(tmp_path / "chat.db", model=find, tools=[weather, rain], allow=["weather"]) as runtime:
        turn = await _turn(runtime)
        RAN.clear()
        replayed = await replay_turn(runtime, turn, model="other", tools="live")
        assert RAN == ["Rome"]
        assert [str(call.state) for call in replayed.after.calls] == ["completed", "rejected"]


async def test_a_model_that_fails_is_told_and_not_raised(tmp_path: Path) -> None:
    find = _models(first=FIRST, other=[fails("out of order")])
    async with Runtime(tmp_path / "chat.db", model=find, tools=[weather], allow=["*"]) as runtime:
        turn = await _turn(runtime)
        assert "out of order" in (await replay_turn(runtime, turn, model="other")).after.error
        with pytest.raises(NotFound):
            await replay_turn(runtime, turn, model="nobody")


async def test_a_turn_that_runs_cannot_be_replayed(tmp_path: Path) -> None:
    find = _models(first=[calls("weather", city="Rome")])
    async with Runtime(tmp_path / "chat.db", model=find, tools=[weather]) as runtime:
        turn = await runtime.send("Weather?")
        assert await turn.reached("waiting")
        with pytest.raises(BadRequest, match="still running"):
            await replay_turn(runtime, turn.id, model="first")
        await turn.cancel()


class Counting(Plugin):
    """Brings a tool, and has a state."""

    tools = (weather,)

    def __init__(self) -> None:
        self.turns = 0

    def on_event(self, event: Event, turn: TurnView) -> None:
        self.turns += event.type == "turn.end"


@pytest.mark.parametrize("tools", ["recorded", "live"])
async def test_a_plugin_that_brings_tools_acts_in_a_replay(tmp_path: Path, tools: ToolsOf) -> None:
    """H1: the caller's own, and its tools are recorded ones unless they are live."""
    counting = Counting()
    other = [calls("weather", city="Rome"), says("Sun.")]
    find = _models(first=FIRST, other=other)
    async with Runtime(tmp_path / "chat.db", model=find, plugins=[counting], allow=["*"]) as runtime:
        turn = await _turn(runtime)
        RAN.clear()
        replayed = await replay_turn(runtime, turn, model="other", tools=tools)
        assert replayed.after.text == "Sun."
        assert counting.turns == 3
        ran = ["Rome"] if tools == "live" else []
        assert ran == RAN


@pytest.mark.parametrize("of_conversation", [False, True])
async def test_a_replay_has_the_agent_of_the_turn(tmp_path: Path, of_conversation: bool) -> None:
    """A1: that of the send, or of the conversation, with its prompt, tools, options and rules."""
    clerk = Agent(
        name="clerk",
        prompt="You are a clerk.",
        tools=("tools.weather",),
        options={"temperature": 0.5},
        rules=(Rule("*", "*", "deny"), Rule("weather", "*", "ask")),
    )
    other = [calls("weather", city="Rome"), says("Sun.")]
    find = _models(first=[calls("weather", city="Rome"), says("Sunny.")], other=other)
    async with Runtime(tmp_path / "chat.db", model=find, tools=[weather, rain], agents=[clerk]) as runtime:
        talk = await runtime.conversation()
        await talk.change(agent="clerk" if of_conversation else None)
        turn = await talk.send("Weather in Rome?", agent=None if of_conversation else "clerk")
        assert await turn.reached("waiting")
        await turn.answer(turn.question, allow_once())
        await turn.result()
        RAN.clear()
        replayed = await replay_turn(runtime, turn.id, model="other")
    before, after = find("first").requests[0], find("other").requests[0]
    assert (before.system, before.options, before.tools) == (after.system, after.options, after.tools)
    assert "You are a clerk." in after.system
    assert [str(call.state) for call in replayed.after.calls] == ["completed"]
    assert RAN == []


async def test_a_task_has_the_result_it_had(tmp_path: Path) -> None:
    """A3: the other agent is not asked again."""
    first = [calls("task", agent="w", request="do"), says("It was done."), says("Done.")]
    find = _models(first=first, other=[calls("task", agent="w", request="do"), says("Fine.")])
    async with Runtime(tmp_path / "chat.db", model=find, agents=[Agent(name="w")], allow=["*"]) as runtime:
        turn = await runtime.send("go")
        await turn.result()
        replayed = await replay_turn(runtime, turn.id, model="other")
    assert [call.result and call.result.text for call in replayed.after.calls] == ["It was done."]
    assert (replayed.same_calls, replayed.after.text) == (True, "Fine.")


async def test_what_a_live_task_asks_is_answered(tmp_path: Path) -> None:
    """P1: nobody is there, in the conversations below neither."""
    other = [calls("task", agent="w", request="do"), says("Fine.")]
    first = [says("Hi."), calls("weather", city="Rome"), says("No weather.")]
    find = _models(first=first, other=other)
    async with (
        asyncio.timeout(PATIENCE),
        Runtime(
            tmp_path / "chat.db", model=find, tools=[weather], agents=[Agent(name="w")], allow=["task"]
        ) as runtime,
    ):
        turn = await runtime.send("Hello")
        await turn.result()
        replayed = await replay_turn(runtime, turn.id, model="other", tools="live")
    assert replayed.after.text == "Fine."
    assert [call.result and call.result.text for call in replayed.after.calls] == ["No weather."]
    assert RAN == []


async def test_what_the_send_said_of_its_turn_holds_again(tmp_path: Path) -> None:
    """S9: what it left out, how calls are made, and what it set over its conversation."""
    counting = Counting()
    find = _models(first=[says("Hi."), says("Sunny.")], other=[says("Sun.")])
    async with Runtime(tmp_path / "chat.db", model=find, plugins=[counting], allow=["*"]) as runtime:
        conversation = await runtime.conversation()
        await (await conversation.send("Hello")).result()
        turn = await conversation.send(
            "I am Ada", disable=["counting", "titles"], history=0, private={"name": "Ada"}, dialect="xml_tag"
        )
        await turn.result()
        before = counting.turns
        await replay_turn(runtime, turn.id, model="other")
        assert counting.turns == before
    first, again = find("first").requests[-1], find("other").requests[0]
    assert [message.parts for message in again.messages] == [message.parts for message in first.messages]
    assert "Ada" not in str(again.messages)
    assert again.dialect == first.dialect == "xml_tag"


async def test_a_replay_leaves_nothing_in_the_models_of_the_runtime(tmp_path: Path) -> None:
    """Attachments are read from the runtime's own store afterwards, and from no other."""
    table = tmp_path / "catalog.toml"
    async with loopback(*(chat("Seen.") for _ in range(4))) as server:
        table.write_text(f'[providers.acme]\nbase_url = "{server.url}"\nlocal = true\n')
        async with (
            Models("acme/x", catalog=load_catalog(table)) as models,
            Runtime(tmp_path / "chat.db", model=models) as runtime,
        ):
            blob = await runtime.store.put_blob(b"one")
            turn = await runtime.send([Text("Look"), File("text/plain", blob=blob, name="a.txt")])
            await turn.result()
            for _ in range(2):
                assert (await replay_turn(runtime, turn.id, model="acme/x")).after.text == "Seen."
            other = await runtime.store.put_blob(b"two")
            look = await runtime.send([Text("Look"), File("text/plain", blob=other, name="b.txt")])
            assert (await look.result()).text == "Seen."
        assert "two" in str(server.bodies[-1])
