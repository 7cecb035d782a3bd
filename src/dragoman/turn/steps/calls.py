"""Runs the calls of a reply to their results, and handles those that a crash interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from dragoman.messages.asked import call_asked, call_end
from dragoman.messages.boundary import check_json
from dragoman.messages.endings import INCOMPLETE, REFUSED, notice_kind, notice_of
from dragoman.messages.events import MessageAdded, StepEnd
from dragoman.messages.fold import Appending
from dragoman.messages.ids import derived_id
from dragoman.messages.message import CallState, Message, ToolCall, ToolResult
from dragoman.messages.usage import Usage
from dragoman.sentences import sentence
from dragoman.store.store import Change, Unread
from dragoman.tools.tool import Tool
from dragoman.tools.toolbox import Offer
from dragoman.turn.facts import (
    CallFinished,
    CallInterrupted,
    Fact,
    MessageAppended,
    QuestionWithdrawn,
    StepFinished,
)
from dragoman.turn.live.log import TurnLog, log_call
from dragoman.turn.live.signals import take_in_steering
from dragoman.turn.plugin import Appended, Appender, PlannedCalls, Plugin
from dragoman.turn.steps.ask import question_about
from dragoman.turn.steps.authority import load_grants
from dragoman.turn.steps.call import INTERRUPTED, CallRun
from dragoman.turn.steps.prepare import PreparedTurn
from dragoman.turn.steps.slots import Lanes
from dragoman.turn.steps.stream import Streamed


@dataclass(slots=True, frozen=True)
class Settled:
    """The outcome of a finished step."""

    prepared: PreparedTurn
    again: bool


async def run_calls(streamed: Streamed, lanes: Lanes) -> Settled:
    """Carry every call to its result while `on_after_request` runs, and finish the step."""
    prepared, log = streamed.prepared, streamed.prepared.log
    was_closing, finish = log.turn.closes, log.turn.finish
    if finish in REFUSED:
        await _cancel_calls(prepared)
    work: list[Callable[[], Coroutine[Any, Any, None]]] = []
    if unsettled := log.turn.unsettled:
        skipped = {} if was_closing else (await _limits(prepared)).skipped
        grants = await load_grants(
            prepared.services, log.conversation.id, log.turn.options.workspace, log.sender
        )
        work += [
            CallRun(prepared, streamed.offer, lanes, id, grants=grants, limit=skipped.get(id)).carry
            for id in unsettled
            if log.turn.calls[id].parent is None  # Programs carry their inner calls themselves.
        ]
    appenders: list[tuple[Plugin, Appender]] = []
    if streamed.message is not None:
        hooks = prepared.hooks
        for plugin in hooks.after_calls if streamed.message.calls else hooks.after_request:
            append = Appender(_at_once(prepared, plugin))
            appenders.append((plugin, append))
            work.append(_hook(plugin, streamed.message, prepared, append))
    await all_of(work)
    await _append_deferred(prepared, appenders)
    await take_in_steering(log, prepared.signals)
    had_calls = any(
        call.step == log.turn.step and not log.call(id).is_text for id, call in log.turn.calls.items()
    )
    if log.turn.closing and not was_closing:
        prepared.view.notice(sentence("limit.reached", limit=log.turn.limit), "limit")
    if had_calls and was_closing:
        prepared.view.notice(sentence("reply.more_calls"), "no_answer")
    goes_on = had_calls and not was_closing and finish not in REFUSED and not _stopped(prepared)
    goes_on = goes_on or log.turn.steered
    limit = ""
    if not goes_on and (log.turn.goes_on or any(append.again for _, append in appenders)):
        # If a plugin wants to continue, the turn's limits take precedence.
        limit = (await _limits(prepared)).limit
        goes_on = not limit
    _tell_the_end(prepared, streamed.message, goes_on, limit)
    return await _finish(prepared, goes_on, streamed.message, limit)


def _tell_the_end(prepared: PreparedTurn, reply: Message | None, goes_on: bool, limit: str) -> None:
    """Notify users how a reply ended, if the end is abnormal and the reply is not continued."""
    finish = prepared.log.turn.finish
    reason = str(reply.metadata.get("reason", "")) if reply is not None else ""
    text = notice_of(finish, prepared.model.name, reason)
    if text is not None and not (goes_on and finish in INCOMPLETE):
        told = sentence("ending.at_limit", ending=text, limit=limit) if limit else text
        prepared.view.notice(told, notice_kind(finish))


NOT_RUN = "The reply was refused or filtered before it was complete: this call did not run."


async def _cancel_calls(prepared: PreparedTurn) -> None:
    """Cancel the calls of a reply that was refused or filtered."""
    log = prepared.log
    calls = [
        replace(log.call(id), state=CallState.CANCELLED, result=ToolResult(NOT_RUN), ended=log.now())
        for id in reversed(log.turn.unsettled)  # calls of a program before the program's call
    ]
    if calls:
        facts = [CallFinished(call.id, call.state) for call in calls]
        await log.record(*facts, change=Change(calls=calls))
        for call in calls:
            log.publish(call_end(call))
            log_call(log, call)


async def _limits(prepared: PreparedTurn) -> PlannedCalls:
    """Return the plugins' limits for the calls of this reply: which to skip, and the limit each exceeds."""
    log, step = prepared.log, prepared.log.turn.step
    made = log.turn.calls.items()
    calls = PlannedCalls([log.call(id) for id, one in made if one.step == step and one.parent is None])
    for plugin in prepared.hooks.before_calls:
        await plugin.before_calls(calls, prepared.view)
    return calls


async def _finish(prepared: PreparedTurn, goes_on: bool, reply: Message | None, limit: str = "") -> Settled:
    log = prepared.log
    fact = StepFinished(log.turn.step, goes_on, limit)
    if goes_on:
        log.record_soon(fact)
    else:
        try:
            await log.record(fact)
        except Unread:  # A user sent a message at the last moment.
            await prepared.signals.collect()
            await take_in_steering(log, prepared.signals)
            return await _finish(prepared, log.turn.steered, reply)
    usage = reply.usage if reply is not None else None
    log.publish(StepEnd(fact.step, usage or Usage()))
    return Settled(prepared, goes_on)


def _stopped(prepared: PreparedTurn) -> bool:
    """Return whether a user rejected a call and a rejection ends the turn."""
    turn = prepared.log.turn
    return prepared.services.on_reject == "stop" and any(
        call.state is CallState.REJECTED and call.asked
        for call in turn.calls.values()
        if call.step == turn.step
    )


async def all_of(work: Sequence[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    """Run all of this work concurrently. The first error stops the rest and is raised unchanged.

    The first item runs in this task, so its immediate records share a write with earlier ones.
    """
    if not work:
        return None
    first, *others = work
    if not others:
        return await first()
    try:
        async with asyncio.TaskGroup() as group:
            for other in others:
                group.create_task(other())
            await first()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


# ── text that plugins append ──────────────────────────────────────────────────────────────────────


def _hook(
    plugin: Plugin, reply: Message, prepared: PreparedTurn, append: Appender
) -> Callable[[], Coroutine[Any, Any, None]]:
    return lambda: plugin.on_after_request(reply, prepared.view, append)


def _at_once(prepared: PreparedTurn, plugin: Plugin) -> Callable[[int, Appended], Awaitable[None]]:
    async def append(place: int, wanted: Appended) -> None:
        await _append(prepared, [(plugin, place, wanted)])

    return append


async def _append_deferred(prepared: PreparedTurn, appenders: list[tuple[Plugin, Appender]]) -> None:
    """Append deferred messages: higher priority first, then by registration, then in the order appended."""
    deferred = [
        (plugin, place, wanted) for plugin, appender in appenders for place, wanted in appender.deferred
    ]
    deferred.sort(key=lambda one: -one[2].priority)  # The sort is stable, which keeps the remaining order.
    if deferred:
        await _append(prepared, deferred)


async def _append(prepared: PreparedTurn, wanted: Sequence[tuple[Plugin, int, Appended]]) -> None:
    """Add each message once: one added before the process died already has its ID."""
    log = prepared.log
    facts: list[Fact] = []
    messages: list[Message] = []
    for plugin, place, one in wanted:
        id = derived_id("msg", log.id, log.turn.step, plugin.name, place)
        if id in log.turn.appended:
            continue
        check_json([asdict(part) for part in one.parts], f"what plugin {plugin.name} appends")
        parent = messages[-1].id if messages else log.tip
        message = Message(
            id,
            log.conversation.id,
            parent,
            one.role,
            one.parts,
            turn=log.id,
            author=plugin.name,
            created=log.now(),
        )
        appending = Appending(message)
        await prepared.hooks.see_message(appending, prepared.view)
        messages += appending.added
        facts.append(MessageAppended(id, plugin.name, one.request and bool(appending.added)))
    if facts:
        await log.record(*facts, change=Change(messages=messages))
        for message in messages:
            log.publish(MessageAdded(message))


# Handles calls that were running when the process of their turn died.


async def recover(log: TurnLog, offer: Offer) -> None:
    """Handle interrupted calls as each tool declares: run again, ask a user, or report an unknown outcome.

    Everything else follows from its state: an interrupted step is requested again, an approval request stays
    open, and a client can still deliver.
    """
    for id in log.turn.unsettled:
        known = log.turn.calls[id]
        if known.state is CallState.RUNNING and not known.client:
            call = log.call(id)
            found = offer.find(call.tool)
            if found is None or found[1].replay == "never":
                await _give_up(log, call)
            elif found[1].replay == "ask":
                await _ask(log, call, found[1])


async def _ask(log: TurnLog, call: ToolCall, tool: Tool) -> None:
    """Ask whether to repeat the call. Requests by the stopped tool are withdrawn."""
    starts = log.turn.calls[call.id].starts
    question = question_about(log, call, tool, "interrupted", place=starts)
    withdrawn = [QuestionWithdrawn(call.id, id) for id in log.turn.calls[call.id].questions]
    await log.record(
        *withdrawn,
        CallInterrupted(call.id, question.id),
        change=Change(
            calls=[replace(call, state=CallState.ASKED)], questions=[question], closed=_closed(log, call)
        ),
    )
    log.publish(call_asked(question))


async def _give_up(log: TurnLog, call: ToolCall) -> None:
    result = ToolResult(INTERRUPTED)
    settled = replace(call, state=CallState.INTERRUPTED, result=result, ended=log.now())
    await log.record(
        CallFinished(call.id, CallState.INTERRUPTED),
        change=Change(calls=[settled], closed=_closed(log, call)),
    )
    log.publish(call_end(settled))
    log_call(log, settled)


def _closed(log: TurnLog, call: ToolCall) -> dict[str, str]:
    """Return the requests to close, because the tool that made them has stopped."""
    return dict.fromkeys(log.turn.calls[call.id].questions, "the program stopped while the tool waited")
