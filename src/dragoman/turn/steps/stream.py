"""One request to the model: each event of the reply is folded, published, and seen by the plugins."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from dragoman.errors import ProviderError
from dragoman.messages.events import (
    CallInputStart,
    Event,
    MessageEnd,
    ReasoningEnd,
    ReasoningStart,
    StepStart,
)
from dragoman.messages.fold import Draft
from dragoman.messages.message import Message
from dragoman.store.store import Change
from dragoman.tools.toolbox import Offer
from dragoman.turn.facts import CallMade, ReplyReceived, RequestBuilt
from dragoman.turn.plugin import Appending
from dragoman.turn.steps.prepare import PreparedTurn, RequestReady

MOST_CALLS = 500  # of one reply


@dataclass(slots=True, frozen=True)
class Streamed:
    """A reply, stored. `message` is None where a plugin kept it from being added."""

    prepared: PreparedTurn
    offer: Offer
    message: Message | None


async def stream(ready: RequestReady) -> Streamed:
    """Ask the model. What has arrived when this fails is in `log.draft`, and is kept by whoever catches."""
    prepared, log = ready.prepared, ready.prepared.log
    model = ready.request.model
    log.record_soon(RequestBuilt(ready.step, ready.attempt, ready.reply, model))
    empty = Message(
        ready.reply,
        log.conversation.id,
        log.tip,
        "assistant",
        (),
        turn=log.id,
        model=model,
        created=log.now(),
        metadata={"limit": log.turn.limit} if log.turn.closing else {},
    )
    log.draft = draft = Draft(empty)
    log.draft_seen = None
    log.publish(StepStart(ready.step, ready.attempt, draft.id, log.tip, model))
    end = MessageEnd("unknown")
    take = _taker(prepared, draft)
    async with aclosing(prepared.model.stream(ready.request, ready.reply)) as replies:
        async for events in replies:
            for event in events:
                if isinstance(event, MessageEnd):
                    end = event
                else:
                    take(event)
    draft.apply(end)
    message = await _received(prepared, draft.message, end)
    end.message = ready.reply
    log.publish(end)
    if end.unfinished:
        prepared.view.notice(f"{model} did not say that its reply was over: it may be cut off", "unfinished")
    if message is None or message.says_nothing:
        prepared.view.notice(f"{model} sent an empty reply", "empty_reply")
    return Streamed(prepared, ready.offer, message)


async def _received(prepared: PreparedTurn, reply: Message, end: MessageEnd) -> Message | None:
    """Record the reply, as the plugins leave it."""
    log = prepared.log
    appending = Appending(reply)
    log.draft_seen = appending
    await prepared.hooks.see_message(appending, prepared.view)
    added = appending.added
    message = next((placed for placed in added if placed.id == reply.id), None)
    log.record_soon(
        received(log.turn.step, message, end),
        change=Change(messages=[placed for placed in added if placed.parts]),
    )
    log.draft = None
    return message


def received(step: int, message: Message | None, end: MessageEnd) -> ReplyReceived:
    """The fact that a reply is here, whole or torn."""
    if message is None or not message.parts:
        return ReplyReceived(step, None, (), end.finish, end.usage)
    calls = tuple(CallMade(call.id, call.tool) for call in message.calls)
    return ReplyReceived(step, message.id, calls, end.finish, end.usage)


def _taker(prepared: PreparedTurn, draft: Draft) -> Callable[[Event], None]:
    """What is done with each event of a reply: as little as possible, looked up once for the whole stream."""
    log, view = prepared.log, prepared.view
    apply, publish = draft.apply, log.publish
    calls = 0
    watchers = prepared.hooks.stream_data
    began = 0.0

    def take(event: Event) -> None:
        nonlocal began, calls
        if type(event) is ReasoningStart:
            began = log.now()
        elif type(event) is CallInputStart:
            calls += 1
            if calls > MOST_CALLS:
                raise ProviderError(
                    f"the model made more than {MOST_CALLS} calls in one reply", kind="too_many_calls"
                )
        elif type(event) is ReasoningEnd:
            event.seconds = round(log.now() - began, 3)
        apply(event)
        publish(event)
        for plugin in watchers:
            plugin.on_stream_data(event, draft, view)

    return take
