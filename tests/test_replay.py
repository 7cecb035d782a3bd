"""A stored turn on another model, with the results it had, or with live tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman import Runtime, ScriptedModel, tool
from dragoman.errors import BadRequest, NotFound
from dragoman.messages.request import Request
from dragoman.replay import replay_turn
from dragoman.wire.scripted import Line, Script, calls, fails, says

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
