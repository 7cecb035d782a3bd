"""A turn whose steps are over in, its end out: the last hooks, the cleanups, and one error or none."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace

from dragoman.errors import ProviderError
from dragoman.messages.events import ErrorRaised, MessageEnd, TurnEnd, call_end
from dragoman.messages.message import Message
from dragoman.messages.parts import CallState, Error, ToolResult
from dragoman.store.store import Change, Unread
from dragoman.turn.facts import CallFinished, Fact, TurnCancelled, TurnCompleted, TurnFailed
from dragoman.turn.live.log import TurnLog
from dragoman.turn.live.signals import Signals
from dragoman.turn.machine import State
from dragoman.turn.plugin import Cleanup
from dragoman.turn.steps.prepare import PreparedTurn
from dragoman.turn.steps.steering import take_in_steering
from dragoman.turn.steps.stream import received

CANCELLED = "The turn was cancelled before this call had a result."
BROKEN_OFF = "The turn ended with an error before this call had a result."


async def end_hooks(prepared: PreparedTurn) -> None:
    """`on_turn_end`, one after another."""
    for plugin in prepared.hooks.turn_end:
        await plugin.on_turn_end(prepared.view)


async def clean_up(cleanups: list[Cleanup]) -> list[Exception]:
    """Run every cleanup, the last one first, whatever the others do. Returns what they raised."""
    errors: list[Exception] = []
    while cleanups:
        try:
            done = cleanups.pop()()
            if inspect.isawaitable(done):
                await done
        except Exception as error:
            errors.append(error)
    return errors


def one_error(errors: Sequence[Exception]) -> Exception | None:
    """None, the error itself, or all of them as a group, the main one first."""
    if len(errors) < 2:
        return errors[0] if errors else None
    return ExceptionGroup("the turn failed, and so did what came after", list(errors))


async def keep_what_came(log: TurnLog, signals: Signals, finish: str, error: Exception | None = None) -> None:
    """A turn is stopped: what has arrived of a reply is stored, and every open call gets its result."""
    facts: list[Fact] = []
    change = Change(closed=_open_questions(log, finish))
    torn = _torn(log, error)
    if torn is not None and not log.turn.replied:
        end = MessageEnd(finish, message=torn.id)
        torn = replace(torn, finish=finish)
        facts.append(received(log.turn.step, torn, end))
        if torn.parts:
            change.messages.append(torn)
    text = CANCELLED if finish == "cancelled" else BROKEN_OFF
    pending = [log.call(id) for id in log.turn.unsettled] + list(torn.calls if torn and facts else ())
    for call in pending:
        settled = replace(call, state=CallState.CANCELLED, result=ToolResult(text), ended=log.now())
        change.calls.append(settled)
        facts.append(CallFinished(call.id, CallState.CANCELLED))
    log.draft = None
    if facts or change.closed:
        await log.record(*facts, change=change)
    for call in change.calls:
        log.publish(call_end(call))
    if torn is not None and facts:
        log.publish(MessageEnd(finish, message=torn.id))
    if not (log.turn.state is State.FINALIZING and log.turn.finished):
        await signals.collect()
        await take_in_steering(log, signals)  # what a person said is kept, though nobody answers it now


async def conclude(log: TurnLog, signals: Signals, error: Exception | None) -> None:
    """The last fact and the last event."""
    if error is not None:
        told = told_of(error)
        await _last(log, signals, told)
        log.publish(ErrorRaised(told.error, told.kind, told.retryable))
    elif log.cancelled is not None:
        await _last(log, signals, TurnCancelled(log.cancelled))
    else:
        await _last(log, signals, TurnCompleted())
    text = answer_of(log.messages)
    log.publish(
        TurnEnd(log.turn.state, text, log.turn.usage, log.turn.error.error if log.turn.error else None)
    )
    log.events.close()


async def _last(log: TurnLog, signals: Signals, fact: Fact) -> None:
    """Record it when everything that came in is on the tree."""
    while True:
        try:
            return await log.record(fact)
        except Unread:
            await signals.collect()
            await take_in_steering(log, signals)


def answer_of(messages: Sequence[Message]) -> str:
    """What the turn said in the end: its last reply, with those before it that were cut off and went on."""
    texts: list[str] = []
    for message in reversed(messages):
        if message.role == "user":
            if message.author is None:
                break
            continue
        if texts and (message.finish != "length" or message.calls):
            break
        texts.append(message.text)
    return "".join(reversed(texts))


def _torn(log: TurnLog, error: Exception | None) -> Message | None:
    if log.draft is None:
        return None
    if error is not None:
        told = told_of(error)
        log.draft.fail(Error(told.error, told.kind, told.retryable))
    return log.draft.message


def told_of(error: Exception) -> TurnFailed:
    main = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
    if isinstance(main, ProviderError):
        return TurnFailed(str(main), main.kind, main.retryable)
    return TurnFailed(f"{type(main).__name__}: {main}")


def _open_questions(log: TurnLog, why: str) -> dict[str, str]:
    open = (id for call in log.turn.calls.values() if (id := call.question) is not None)
    return dict.fromkeys(open, f"the turn ended: {why}")
