"""T6 in combination with other rules: signals from another process at the moment of a cancel."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman import AlreadyAnswered, Plugin, Runtime, allow_always, reject, release, tool, withhold
from dragoman.messages.message import CallState
from dragoman.messages.questions import VERDICTS, Answer
from dragoman.turn.view import TurnView
from dragoman.wire.scripted import calls, says
from tests.runtimes import only_call, runtime_with


@tool
def act() -> str:
    """Act."""
    return "it ran after the cancel"


@tool(review="always")
def report() -> str:
    """Report."""
    return "salary: 5000"


def _runtime(folder: Path, *script: str, adopts: bool = True) -> Runtime:
    replies = [*map(calls, script), says("on")]
    return runtime_with(folder, replies, tools=[act, report], allow=["report"], adopts=adopts)


@pytest.mark.parametrize(
    ("answer", "state", "result"),
    [
        (allow_always(), CallState.CANCELLED, "cancelled"),
        (reject("not on a Friday"), CallState.REJECTED, "not on a Friday"),
        (release(), CallState.COMPLETED, "salary: 5000"),
        (release("salary: enough"), CallState.COMPLETED, "salary: enough"),
        (withhold(), CallState.WITHHELD, "not to be shown"),
    ],
    ids=["allowed", "rejected", "passed on", "edited", "withheld"],
)
@pytest.mark.parametrize("answered_first", [True, False], ids=["answered first", "cancelled first"])
async def test_what_was_decided_before_a_cancel_holds_and_what_comes_after_it_is_refused(
    tmp_path: Path, answer: Answer, state: CallState, result: str, answered_first: bool
) -> None:
    """The turn reads the decision and the cancel together. It ends once, and its branch is free (T6 × P5 ×
    P6)."""
    about = "report" if answer.verdict in VERDICTS["review"] else "act"
    async with _runtime(tmp_path, about) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        question = turn.question
    async with _runtime(tmp_path, adopts=False) as other:
        if answered_first:
            await other.answer(question, answer)
        assert await other.turn(turn.id).cancel()
        if not answered_first:
            with pytest.raises(AlreadyAnswered, match=r"(its turn is|the turn ended:) cancelled"):
                await other.answer(question, answer)
            assert await other.grants() == []
            state, result = CallState.CANCELLED, "cancelled"
    async with _runtime(tmp_path) as second:
        handle = second.turn(turn.id)
        over = await handle.result()
        call = only_call(over)
        assert (over.state, call.state) == ("cancelled", state)
        assert call.result is not None
        assert result in call.result.text
        facts = [fact.type for fact in await handle.facts()]
        assert (facts.count("call_finished"), facts.count("turn_cancelled")) == (1, 1)
        conversation = await second.conversation((await handle.snapshot()).conversation)
        assert (await (await conversation.send("and now?")).result()).text == "on"


async def test_a_cancel_that_was_taken_in_the_last_moment_ends_the_turn(tmp_path: Path) -> None:
    """A turn that accepted a cancel never ends as completed (T6)."""

    class CancelledLast(Plugin):
        async def on_turn_start(self, turn: TurnView) -> AsyncIterator[None]:
            yield
            async with _runtime(tmp_path, adopts=False) as other:
                assert await other.turn(turn.id).cancel("enough")

    async with runtime_with(tmp_path, [says("all of it")], plugins=[CancelledLast()]) as runtime:
        turn = await runtime.send("go")
        events = [event async for event in turn.events()]
        result = await turn.result()
        assert (result.state, result.text) == ("cancelled", "all of it")
        states = [event.state for event in events if event.type == "turn.state"]
        assert states[-2:] == ["finalizing", "cancelled"]
        assert "completed" not in states
