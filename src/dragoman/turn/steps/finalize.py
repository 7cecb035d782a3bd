"""Ends a turn: keeps what had arrived, gives every call a result, and records the last fact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from traceback import walk_tb

from dragoman.errors import DragomanError, ProviderError
from dragoman.messages.asked import call_end
from dragoman.messages.endings import INCOMPLETE
from dragoman.messages.events import ErrorRaised, MessageAdded, MessageEnd, TurnEnd
from dragoman.messages.fold import Appending
from dragoman.messages.ids import derived_id
from dragoman.messages.message import CallState, Error, Message, ToolCall, ToolResult
from dragoman.messages.usage import Usage
from dragoman.store.store import Change, Unread
from dragoman.turn.facts import CallFinished, Fact, TurnCancelled, TurnCompleted, TurnFailed
from dragoman.turn.live.log import TurnLog, log_call, log_turn
from dragoman.turn.live.signals import Signals, take_in_steering
from dragoman.turn.machine import State, Turn
from dragoman.turn.plugin import Plugin
from dragoman.turn.steps.stream import received

CANCELLED = "The turn was cancelled before this call had a result."
BROKEN_OFF = "The turn ended with an error before this call had a result."


def one_error(errors: Sequence[BaseException]) -> BaseException | None:
    """None, the error itself, or all of them as a group, the main one first."""
    if len(errors) < 2:
        return errors[0] if errors else None
    return BaseExceptionGroup("the turn failed, and so did what came after", list(errors))


def torn_reply(log: TurnLog, finish: str, error: BaseException | None) -> Appending | None:
    """Return what arrived of an interrupted reply, for the plugins to see before it is stored."""
    draft, log.draft = log.draft, None
    if draft is None or log.turn.replied:
        return None
    if error is not None:
        told = failure_of(error)
        draft.fail(Error(told.error, told.kind, told.retryable))
    torn = Appending(replace(draft.message, finish=finish))
    # A plugin's hook interrupted the reply. The plugins' changes to it stay.
    if (seen := log.draft_seen) is not None:
        error_parts = tuple(part for part in torn.message.parts if isinstance(part, Error))
        torn.message = replace(seen.message, parts=(*seen.message.parts, *error_parts), finish=finish)
        torn.prevented, torn.placed = seen.prevented, seen.placed
    return torn


async def keep_what_came(log: TurnLog, signals: Signals, finish: str, torn: Appending | None) -> None:
    """Store what arrived of a stopped turn's reply, and give every open call its result."""
    facts: list[Fact] = []
    change = Change(closed=_open_questions(log, finish))
    calls: tuple[ToolCall, ...] = ()
    if torn is not None:
        kept = next((message for message in torn.added if message.id == torn.id), None)
        used = torn.message.usage or Usage()  # set if the reply was complete and a plugin interrupted it
        end, stored = MessageEnd(finish, used, message=torn.id), kept is not None and bool(kept.parts)
        facts += received(log, kept, torn.message, end, stored=stored)
        change.messages += [message for message in torn.added if message.parts]
        calls = kept.calls if kept is not None else ()
    text = CANCELLED if finish == "cancelled" else BROKEN_OFF
    open = reversed(log.turn.unsettled)  # calls of a program before the program's call
    for call in (*(log.call(id) for id in open), *calls):
        settled = replace(call, state=CallState.CANCELLED, result=ToolResult(text), ended=log.now())
        change.calls.append(settled)
        facts.append(CallFinished(call.id, CallState.CANCELLED))
    if facts or change.closed:
        await log.record(*facts, change=change)
    for call in change.calls:
        log.publish(call_end(call))
        log_call(log, call)
    if torn is not None:
        log.publish(MessageEnd(finish, message=torn.id))
    await take_in_steering(log, signals)  # Keep user messages, although the turn does not answer them.


async def conclude(log: TurnLog, signals: Signals, error: BaseException | None) -> None:
    """Record the last fact and publish the last event."""
    failure = failure_of(error) if error is not None else None
    while not await _recorded(log, _last_fact(log, failure)):
        await signals.collect()
        await take_in_steering(log, signals)
    if failure is not None:
        log.publish(ErrorRaised(failure.error, failure.kind, failure.retryable))
    log_turn(log)
    turn = log.turn
    error_text = turn.error.error if turn.error else None
    log.publish(
        TurnEnd(
            turn.state, answer_of(log.messages), turn.usage, error_text, turn.limit or None, finish_of(turn)
        )
    )


def _last_fact(log: TurnLog, failure: TurnFailed | None) -> TurnFailed | TurnCancelled | TurnCompleted:
    """Build the last fact for each attempt: it may be stamped once, and a cancel may have arrived
    meanwhile."""
    if failure is not None:
        return replace(failure)
    if log.cancelled is None:
        return TurnCompleted()
    return TurnCancelled(log.cancelled, by=log.cancelled_by)


async def _recorded(log: TurnLog, fact: TurnFailed | TurnCancelled | TurnCompleted) -> bool:
    """Record the fact. Return False if a signal arrived that the turn has not read."""
    told = _told_last(log, fact) if isinstance(fact, TurnFailed) else []
    try:
        await log.record(fact, change=Change(messages=list(told)))
    except Unread:
        return False
    for message in told:
        log.publish(MessageAdded(message))
    return True


def _told_last(log: TurnLog, failed: TurnFailed) -> list[Message]:
    """Return the error as a message at the end of the branch, if the branch does not end with one already.

    It is missing if no reply had started, or if a user sent a message after the reply.
    """
    tip = log.path[-1] if log.path else None
    if tip is not None and any(isinstance(part, Error) for part in tip.parts):
        return []
    error = Error(failed.error, failed.kind, failed.retryable)
    return [
        Message(
            _told_last_id(log.id, log.tip),
            log.conversation.id,
            log.tip,
            "assistant",
            (error,),
            turn=log.id,
            finish="error",
            created=log.now(),
        )
    ]


def _told_last_id(turn: str | None, parent: str | None) -> str:
    return derived_id("msg", turn, "failed", parent)


def finish_of(turn: Turn) -> str:
    """Return how the last reply ended, as the end of the whole turn."""
    if turn.state is State.CANCELLED:
        return "cancelled"
    if turn.error is not None:
        return "filter" if turn.error.kind == "filter" else "error"
    return turn.finish


def answer_of(messages: Sequence[Message]) -> str:
    """Return the turn's answer: its last reply, with the truncated replies that it continues."""
    texts: list[str] = []
    for message in reversed(messages):
        if message.id == _told_last_id(message.turn, message.parent):
            continue  # This message reports the end and is not part of the answer.
        if message.role == "user":
            if message.author is None:
                break
            continue
        if texts and (message.finish not in INCOMPLETE or message.calls):
            break
        texts.append(message.text)
    return "".join(reversed(texts))


def failure_of(error: BaseException) -> TurnFailed:
    main = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error
    if isinstance(main, ProviderError):
        return TurnFailed(str(main), main.kind, main.retryable)
    if isinstance(main, DragomanError):  # Its text is complete.
        return TurnFailed(str(main))
    return TurnFailed(f"{_hook_that_failed(main)}{type(main).__name__}: {main}")


def _hook_that_failed(error: BaseException) -> str:
    """Name the plugin and hook that failed, from the error's frames, so that no bookkeeping is
    needed before."""
    for frame, _ in walk_tb(error.__traceback__):
        plugin = frame.f_locals.get("self")
        if isinstance(plugin, Plugin) and frame.f_code.co_name in vars(Plugin):
            return f"plugin {plugin.name}, {frame.f_code.co_name}: "
    return ""


def _open_questions(log: TurnLog, why: str) -> dict[str, str]:
    open = (question.id for question in log.questions.values() if question.open)
    return dict.fromkeys(open, f"the turn ended: {why}")
