"""Check what holds after a restart: every turn and call is over, once, and every promise is kept."""

from __future__ import annotations

from collections import Counter

from dragoman.messages.message import CallState, Message, ToolCall
from dragoman.turn.facts import CallFinished, TurnCancelled, TurnCompleted, TurnFailed
from dragoman.turn.machine import State, replay
from tests.crash.stage import Stage


async def hold_to_account(stage: Stage, finished: set[str], done: int) -> None:
    """Check the store. `finished` are the calls with a result when the process died, `done` the work done by
    then."""
    store = stage.runtime.store
    turns: dict[str, None] = {}
    calls: dict[str, ToolCall] = {}
    messages: dict[str, Message] = {}
    for conversation in await store.conversations():
        found, _ = await store.messages(conversation.id)
        messages |= {message.id: message for message in found}
        calls |= {call.id: call for message in found for call in message.all_calls}
        for row in await store.turns(conversation.id):
            turns[row.id] = None
            own = {call.id for message in found if message.turn == row.id for call in message.all_calls}
            await _one_ending(stage, row.id, own)
    assert not await store.questions(), "a question is left open"
    assert not await store.live_turns()
    assert not await store.queued()
    assert not await store.turns_with_signals(), "a signal is left unread"
    _nothing_twice(stage, calls, finished, done)
    for turn in stage.promises.all("turn"):
        assert turn in turns, "a turn that was promised is not there"
    await _promises_kept(stage, calls, messages)


async def is_free(stage: Stage) -> None:
    """The branch takes another message."""
    chat = await stage.conversation()
    more = await stage.send(chat, "more")
    await stage.over(more)
    assert (await more.turn()).state is State.COMPLETED


async def _one_ending(stage: Stage, turn: str, calls: set[str]) -> None:
    facts = await stage.runtime.turn(turn).facts()
    endings = [fact for fact in facts if isinstance(fact, TurnCompleted | TurnCancelled | TurnFailed)]
    assert endings == facts[-1:], "a turn has one ending"
    assert not isinstance(endings[0], TurnFailed), endings
    assert not replay(facts).unsettled
    ended = Counter(fact.call for fact in facts if isinstance(fact, CallFinished))
    assert ended == dict.fromkeys(calls, 1), "each call has exactly one result"


def _nothing_twice(stage: Stage, calls: dict[str, ToolCall], finished: set[str], done: int) -> None:
    work = stage.work.lines()
    starts = Counter(line["call"] for line in work if line["what"] == "starts")
    for call in calls.values():
        assert call.state.settled
        assert call.result is not None
        if call.tool != "reads":
            assert starts[call.id] <= 1, f"{call.tool} ran twice"
        if call.state is CallState.COMPLETED and "n" in call.arguments:
            assert call.result.text == f"{call.tool} {call.arguments['n']} done"
    assert not {line["call"] for line in work[done:]} & finished, "a finished call ran again"


async def _promises_kept(stage: Stage, calls: dict[str, ToolCall], messages: dict[str, Message]) -> None:
    for line in stage.promises.lines():
        if (call := calls.get(line.get("call", ""))) is not None:
            assert call.result is not None
            assert (call.state, call.result.text) == (line["state"], line["text"])
        if "message" in line:
            assert line["message"] in messages
        if "answered" in line:
            assert (await stage.runtime.store.question(line["answered"])).answer is not None
