"""Several tasks of one reply run at the same time, each with a separate budget, and form one answer."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Limits, Rule, Runtime, allow_once, tool
from dragoman.messages.message import CallState, ToolCall
from dragoman.messages.request import Request
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.wire.scripted import Line, calls, says
from tests.evaluation.again import asked_again
from tests.patience import PATIENCE
from tests.runtimes import calls_of, model_of, runtime_with


@tool(permission="notes.write")
def note(text: str) -> str:
    """Write a note."""
    return f"noted {text}"


def agent(name: str, limits: Limits | None = None, **others: object) -> Agent:
    return Agent(name=name, prompt=f"You are {name}.", limits=limits or Limits(), **others)  # type: ignore[arg-type]


OPTIMIST, PESSIMIST = agent("optimist"), agent("pessimist")


def asking(inner: Callable[[str, int], Line], *names: str) -> Callable[[Request], Line]:
    """A model that asks the agents, and plays each of them: `inner` gets the name and the place."""
    names = names or ("optimist", "pessimist")

    def line(request: Request) -> Line:
        place = sum(message.role == "assistant" for message in request.messages)
        for name in names:
            if f"You are {name}." in request.system:
                return inner(name, place)
        if place:
            return says("Perhaps.")
        return reduce(add, (calls("task", agent=name, request="Will it rain?") for name in names))

    return line


def answers(name: str, place: int) -> Line:
    return says({"optimist": "No.", "pessimist": "Yes."}[name])


def results_of(runtime: Runtime) -> list[str]:
    """Return the results that the requesting model received."""
    last = model_of(runtime).requests[-1].messages
    made = [part for message in last for part in message.parts if isinstance(part, ToolCall)]
    return [call.result.text for call in made if call.result is not None]


async def test_the_model_reads_every_answer(tmp_path: Path) -> None:
    async with runtime_with(tmp_path, asking(answers), agents=[OPTIMIST, PESSIMIST]) as runtime:
        result = await (await runtime.send("Rain?")).result()
        assert result.text == "Perhaps."
        assert results_of(runtime) == ["No.", "Yes."]
        assert len(await runtime.conversations()) == 3


async def test_they_work_at_the_same_time(tmp_path: Path) -> None:
    """Each waits for the other: one after the other would never end."""
    both = asyncio.Barrier(2)

    @tool
    async def meet() -> str:
        """Wait for the other one."""
        await both.wait()
        return "met"

    script = asking(lambda name, place: [calls("meet"), says(f"{name} met")][place])
    async with runtime_with(tmp_path, script, tools=[meet], agents=[OPTIMIST, PESSIMIST]) as runtime:
        async with asyncio.timeout(PATIENCE):
            await (await runtime.send("go")).result()
        assert results_of(runtime) == ["optimist met", "pessimist met"]


async def test_one_that_comes_to_its_limit_takes_nothing_from_the_other(tmp_path: Path) -> None:
    """T7, T12: each has the budget of its agent."""
    short = agent("pessimist", Limits(max_rounds=1))

    def inner(name: str, place: int) -> Line:
        return says("No.") if name == "optimist" and place == 2 else calls("note", text=f"{name} {place}")

    async with runtime_with(tmp_path, asking(inner), tools=[note], agents=[OPTIMIST, short]) as runtime:
        result = await (await runtime.send("go")).result()
        assert result.text == "Perhaps."
        first, second = calls_of(result.messages)
        assert (first.state, second.state) == (CallState.COMPLETED, CallState.FAILED)
        assert results_of(runtime)[0] == "No."


@pytest.mark.parametrize("error", [RuntimeError("the model fell over"), BaseException("panic")])
async def test_one_that_fails_is_told_beside_the_others_answer(tmp_path: Path, error: BaseException) -> None:
    """C7"""

    def inner(name: str, place: int) -> Line:
        if name == "optimist":
            raise error
        return says("Yes.")

    async with runtime_with(tmp_path, asking(inner), agents=[OPTIMIST, PESSIMIST]) as runtime:
        result = await (await runtime.send("go")).result()
        first, second = calls_of(result.messages)
        assert (first.state, second.state) == (CallState.FAILED, CallState.COMPLETED)
        failed, answered = results_of(runtime)
        assert "The task failed: " in failed
        assert answered == "Yes."


async def test_each_of_them_has_to_be_allowed(tmp_path: Path) -> None:
    """A rule for one task does not apply to the other (P1)."""
    async with runtime_with(
        tmp_path, asking(answers), agents=[OPTIMIST, PESSIMIST], allow=["task:optimist"]
    ) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        assert "pessimist" in turn.questions[0].text + str(turn.questions[0].arguments)
        await turn.answer(turn.question, allow_once())
        assert (await turn.result()).text == "Perhaps."


async def test_none_of_them_is_freer_than_who_asked(tmp_path: Path) -> None:
    """A denial for the turn binds both tasks, even if their rules allow the tool (P1)."""
    free = [agent(name, rules=(Rule("notes.write", "*", "allow"),)) for name in ("optimist", "pessimist")]
    strict = Agent(name="strict", rules=(Rule("notes.write", "*", "deny"),))
    script = asking(lambda name, place: [calls("note", text=name), says("tried")][place])
    async with runtime_with(tmp_path, script, tools=[note], agents=[*free, strict]) as runtime:
        chat = await runtime.conversation(agent="strict")
        await (await chat.send("go")).result()
        made = [
            call.state
            for one in await runtime.conversations()
            for message in await (await runtime.conversation(one.id)).messages()
            for call in message.calls
            if call.tool == "note"
        ]
        assert len(made) == 2
        assert CallState.COMPLETED not in made


async def test_cancelling_the_turn_cancels_all_of_them(tmp_path: Path) -> None:
    """T6"""
    script = asking(lambda name, place: [calls("note", text=name), says("noted")][place])
    async with runtime_with(
        tmp_path, script, tools=[note], agents=[OPTIMIST, PESSIMIST], allow=["task"]
    ) as runtime:
        turn = await runtime.send("go")
        open = await _questions(runtime, 2)
        await turn.cancel()
        assert (await turn.result()).state == "cancelled"
        for question in open:
            assert await runtime.turn(question).reached("cancelled")


async def test_after_a_restart_only_the_unfinished_one_goes_on(tmp_path: Path) -> None:
    """One task has answered and the other waits for a user. No question appears twice (S3)."""
    asked: Counter[str] = Counter()

    def inner(name: str, place: int) -> Line:
        asked[name] += 1
        if name == "optimist":
            return says("No.")
        return [calls("note", text="umbrella"), says("Yes.")][place]

    options: dict[str, Any] = {"tools": [note], "agents": [OPTIMIST, PESSIMIST], "allow": ["task"]}
    async with runtime_with(tmp_path, asking(inner), **options) as first:
        outer = (await first.send("go")).id
        await _questions(first, 1)
        await _ended(first, "optimist")
    async with runtime_with(tmp_path, asking(inner), **options) as second:
        (question,) = await second.questions()
        await second.answer(question.id, allow_once())
        assert (await second.turn(outer).result()).text == "Perhaps."
        assert results_of(second) == ["No.", "Yes."]
        assert len(await second.conversations()) == 3
    assert asked == {"optimist": 1, "pessimist": 2}


async def test_an_evaluation_gives_the_answers_of_then(tmp_path: Path) -> None:
    async with runtime_with(tmp_path, asking(answers), agents=[OPTIMIST, PESSIMIST]) as runtime:
        turn = await runtime.send("go")
        await turn.result()
        again = await asked_again(runtime, turn.id, "scripted/model")
        assert again.answered.text == "Perhaps."
        assert [call.tool for call in again.answered.calls] == ["task", "task"]
        assert results_of(runtime) == ["No.", "Yes."]
        assert len(await runtime.conversations()) == 3


async def _questions(runtime: Runtime, number: int) -> list[str]:
    """The turns that ask, once there are so many."""
    async with asyncio.timeout(PATIENCE):
        while len(open := await runtime.questions()) < number:  # noqa: ASYNC110 - they run by themselves
            await asyncio.sleep(0.01)
    return [question.turn for question in open]


async def _ended(runtime: Runtime, name: str) -> None:
    """Once it has begun: another agent may be ahead of it."""
    async with asyncio.timeout(PATIENCE):
        while not (begun := await _turns_of(runtime, name)):  # noqa: ASYNC110 - they run by themselves
            await asyncio.sleep(0.01)
    (turn,) = begun
    await turn.result()


async def _turns_of(runtime: Runtime, name: str) -> list[TurnHandle]:
    chats = [one.id for one in await runtime.conversations() if one.settings.get("agent") == name]
    return [runtime.turn(row.id) for chat in chats for row in await runtime.store.turns(chat)]
