"""Sends one request to the model. Each event of the reply is folded, published, and shown to plugins."""

from __future__ import annotations

import asyncio
from binascii import Error, a2b_base64
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from pydantic import JsonValue

from dragoman.errors import ProviderError
from dragoman.messages.endings import notice_of
from dragoman.messages.events import (
    CallInputStart,
    Event,
    FileAdded,
    FilePartial,
    MessageEnd,
    ReasoningEnd,
    ReasoningStart,
    StepStart,
)
from dragoman.messages.fold import Appending, Draft, DraftView
from dragoman.messages.media import parse_data_url
from dragoman.messages.message import File, Message
from dragoman.messages.usage import Usage
from dragoman.sentences import said_of, sentence
from dragoman.store.store import Change, Store
from dragoman.tools.toolbox import Offer
from dragoman.trace_context import within
from dragoman.turn.facts import CallMade, ModelAsked, ReplyReceived, RequestBuilt
from dragoman.turn.live.log import TurnLog
from dragoman.turn.steps.prepare import PreparedTurn, RequestReady

# Stores the files that a model made, so that messages and events name them and hold no bytes.


SMALL = 64 << 10  # Up to this many characters, decoding is faster than starting a thread.
_PIECE = 1 << 20  # Characters decoded per step: the thread yields between two steps.


async def store_made(event: FileAdded | FilePartial, store: Store, owner: str, now: float) -> None:
    """Store the file's bytes.

    The conversation's owner can view the file immediately: its message is not stored yet, and partial files
    never appear in one.
    """
    event.file = file = await store_file(event.file, store)
    if file.blob is not None:
        await store.add_upload(file.blob, owner, now)


async def store_file(file: File, store: Store) -> File:
    """Return the file with its bytes among the blobs. A file that is only a URL stays unchanged."""
    found = parse_data_url(file.url) if file.url is not None else None
    if file.url is None or found is None or not found.base64:
        return file
    try:
        if len(file.url) <= SMALL:
            data = a2b_base64(file.url[found.begins :])
            return replace(file, url=None, blob=await store.put_blob(data), size=len(data))
        blob, size = await store.put_blob_pieces(_decoded(file.url, found.begins))
    except Error:
        return replace(file, url=None)  # The data is invalid. The part shows that there was a file.
    return replace(file, url=None, blob=blob, size=size)


async def _decoded(text: str, begins: int) -> AsyncIterator[bytes]:
    """Yield the decoded bytes from `begins` on. They can be hundreds of megabytes, so never decode all
    together."""
    for at in range(begins, len(text), _PIECE):
        yield await asyncio.to_thread(a2b_base64, text[at : at + _PIECE])


MOST_CALLS = 500  # Maximum number of calls in one reply.


@dataclass(slots=True, frozen=True)
class Streamed:
    """A stored reply. `message` is None if a plugin kept it from being added."""

    prepared: PreparedTurn
    offer: Offer
    message: Message | None


async def stream(ready: RequestReady) -> Streamed:
    """Request a reply. If this fails, `log.draft` holds what arrived, which the caller keeps."""
    prepared, log = ready.prepared, ready.prepared.log
    model = ready.request.model
    log.count_draft()
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
        metadata=_limit(log.turn.limit) if log.turn.closing else {},
    )
    log.draft = draft = Draft(empty)
    log.draft_seen = None
    timing = log.timing
    timing.begin(ready.attempt)
    log.publish(StepStart(ready.step, ready.attempt, draft.id, log.tip, model))
    end = MessageEnd("unknown")
    take, read = _taker(prepared, draft), ready.request.read_reply if ready.request.filters else None
    try:
        with within(log.trace, "request", ready.step, ready.attempt):
            async with aclosing(prepared.model.stream(ready.request, ready.reply)) as replies:
                async for arrived in replies:
                    if not timing.first:
                        timing.see(arrived, log.now)
                        log.count_lost(ready.request)  # Count before the wait for the next attempt.
                    events = arrived if read is None else [one for each in arrived for one in read(each)]
                    for event in events:
                        if type(event) is FileAdded or type(event) is FilePartial:
                            await store_made(event, log.store, log.sender, log.now())
                        if isinstance(event, MessageEnd):
                            end = event
                        else:
                            take(event)
    except BaseException:
        for event in read(None) if read is not None else ():
            take(event)  # T8: keep what has arrived.
        raise
    finally:
        log.count_lost(ready.request)
    end = _told_as_it_is(end, draft.message)
    draft.apply(end)
    message = await _received(prepared, draft.message, end)
    await _remember_native(prepared, draft.message)
    end.message = ready.reply
    log.publish(end)
    if end.unfinished:
        prepared.view.notice(sentence("reply.maybe_cut", model=model), "unfinished")
    return Streamed(prepared, ready.offer, message)


def _told_as_it_is(end: MessageEnd, reply: Message) -> MessageEnd:
    """Return the end of a reply. One without an answer is marked as such if nothing else explains it."""
    if end.finish not in ("stop", "tool_calls", "unknown") or reply.answers:
        return end
    return replace(end, finish="thoughts" if reply.reasoning.strip() else "empty")


def _is_kept(message: Message) -> bool:
    """Return whether the message has content, or a notice that explains its absence."""
    return bool(message.parts) or (message.finish is not None and notice_of(message.finish, "") is not None)


async def _received(prepared: PreparedTurn, reply: Message, end: MessageEnd) -> Message | None:
    """Record the reply, as the plugins leave it."""
    log = prepared.log
    appending = Appending(reply)
    log.draft_seen = appending
    await prepared.hooks.see_message(appending, prepared.view)
    added = appending.added
    message = next((placed for placed in added if placed.id == reply.id), None)
    log.record_soon(
        *received(log, message, reply, end, stored=message is not None and _is_kept(message)),
        change=Change(messages=[placed for placed in added if _is_kept(placed)]),
    )
    log.draft = None
    return message


async def _remember_native(prepared: PreparedTurn, reply: Message) -> None:
    """Remember permanently that this model makes native calls, once it made one (D6)."""
    model, known = reply.model or prepared.model.name, prepared.services.native_models
    if model not in known and any(call.format == "" for call in reply.calls):
        await prepared.log.store.add_native_model(model)
        known.add(model)


def received(
    log: TurnLog, message: Message | None, reply: Message, end: MessageEnd, *, stored: bool
) -> list[ModelAsked | ReplyReceived]:
    """Return the fact that a complete or partial reply has arrived.

    If no message records its usage, a fact with the usage precedes it.
    """
    step, first, retries = log.turn.step, log.timing.first, tuple(log.timing.retries)
    told = stored or end.usage.is_empty
    usage = end.usage if told else Usage()
    beside = [] if told else [ModelAsked("", reply.model or "", end.usage)]
    says = message if message is not None and message.parts else None
    calls = tuple(CallMade(call.id, call.tool) for call in says.calls) if says is not None else ()
    id = says.id if says is not None else None
    return [*beside, ReplyReceived(step, id, calls, end.finish, usage, first, retries)]


def _taker(prepared: PreparedTurn, draft: Draft) -> Callable[[Event], None]:
    """Return the handler for each event of a reply.

    Lookups happen once per stream to keep the handler cheap.
    """
    log, view = prepared.log, prepared.view
    apply, publish = draft.apply, log.publish
    calls = 0
    watchers, seen = prepared.hooks.stream_data, DraftView(draft)
    began = 0.0

    def take(event: Event) -> None:
        nonlocal began, calls
        if type(event) is ReasoningStart:
            began = log.now()
        elif type(event) is CallInputStart:
            calls += 1
            if calls > MOST_CALLS:
                raise ProviderError(sentence("reply.too_many_calls", most=MOST_CALLS), kind="too_many_calls")
        elif type(event) is ReasoningEnd:
            event.seconds = round(log.now() - began, 3)
        apply(event)
        publish(event)
        for plugin in watchers:
            plugin.on_stream_data(event, seen, view)

    return take


def _limit(limit: str) -> dict[str, JsonValue]:
    """Return the reason why calls ended, for readers of the stored answer."""
    said = said_of(limit)
    return {"limit": limit, **({"said": {"limit": {"text": limit, **said}}} if said else {})}
