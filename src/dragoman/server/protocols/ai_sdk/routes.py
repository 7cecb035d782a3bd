"""Routes for `useChat`: a message and its answer as a stream, the rest of one after a reload, and an end.

`/ai-sdk/chat` is for versions 6 and 7. Version 5 has no word for approvals: at `/ai-sdk/v5/chat` the stream
stays open meanwhile, and questions are answered at `/questions/ID/answer`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from fastapi import APIRouter
from starlette.responses import Response

from dragoman.errors import AlreadyAnswered, BadRequest, NotFound, TurnBusy
from dragoman.messages.events import TurnEnd
from dragoman.messages.parts import Part, Text, ToolResult, canonical
from dragoman.messages.questions import allow_once, reject
from dragoman.server import shapes
from dragoman.server.context import Context, Person, TheContext
from dragoman.server.protocols.ai_sdk.bodies import UIChatBody, UIMessage
from dragoman.server.protocols.ai_sdk.chunks import Chunk, UIMessageStream
from dragoman.server.protocols.threads import Said, attach, conversation_of, say, stop_what_was_left, write
from dragoman.server.stream import EventStream
from dragoman.store.store import TurnRow
from dragoman.turn.facts import options_in
from dragoman.turn.handles import TurnHandle
from dragoman.turn.live.log import Snapshot

router = APIRouter(tags=["AI SDK"])

PROTOCOL = "ai-sdk"
_HEADER = "x-vercel-ai-ui-message-stream"
_STREAM_ID = "x-resumable-stream-id"  # assistant-ui keeps it over a reload, and asks for the rest by it
_STREAM: dict[int | str, dict[str, object]] = {
    200: {"description": "Chunks of a UI message", "content": {"text/event-stream": {}}}
}
_REST: dict[int | str, dict[str, object]] = {**_STREAM, 204: {"description": "Nothing is being written"}}
_DONE = b"data: [DONE]\n\n"


@router.post("/ai-sdk/chat", response_class=Response, responses=_STREAM)
async def chat(context: TheContext, person: Person, body: UIChatBody) -> Response:
    """What `DefaultChatTransport` posts: something new, an answer once more, or what a call waited for."""
    return await _chat(context, person, body, approvals=True)


@router.post("/ai-sdk/v5/chat", response_class=Response, responses=_STREAM)
async def chat_v5(context: TheContext, person: Person, body: UIChatBody) -> Response:
    """The same for version 5, which knows no approvals."""
    return await _chat(context, person, body, approvals=False)


@router.get("/ai-sdk/chat/{id}/stream", response_class=Response, responses=_REST)
async def resume(context: TheContext, person: Person, id: str) -> Response:
    """The answer that is being written, from its beginning. 204 where there is none."""
    return await _resume(context, person, id, approvals=True)


@router.get("/ai-sdk/v5/chat/{id}/stream", response_class=Response, responses=_REST)
async def resume_v5(context: TheContext, person: Person, id: str) -> Response:
    return await _resume(context, person, id, approvals=False)


@router.post("/ai-sdk/chat/{id}/stop")
async def stop(context: TheContext, person: Person, id: str) -> shapes.Cancelled:
    """Stop what is being written in this chat, at once."""
    turn = await _live_turn(context, person, id)
    cancelled = turn is not None and await context.runtime.commands.cancel(turn.id, "stopped")
    if turn is not None:
        context.publisher.changed(turn.conversation)
    return shapes.Cancelled(cancelled)


async def _chat(context: Context, person: str, body: UIChatBody, *, approvals: bool) -> Response:
    last = body.messages[-1]
    if body.trigger == "submit-message" and last.role == "assistant":
        row = await context.turn(last.id, person)
        turn = context.runtime.turn(row.id)
        snapshot = await turn.snapshot()
        brought = await _brought(context, row.id)
        stream = UIMessageStream(row.id, row.conversation, brought=brought, approvals=approvals)
        lacking = [*stream.catch_up(snapshot, last)]
        await _bring(context, person, last, stream)
        return _respond(context, row, _follow(turn, stream, lacking, snapshot))
    row = await _start(context, person, body)
    brought = await _brought(context, row.id)
    stream = UIMessageStream(row.id, row.conversation, brought=brought, approvals=approvals)
    context.readers.began(row.id)
    return _respond(context, row, _follow(context.runtime.turn(row.id), stream))


async def _resume(context: Context, person: str, id: str, *, approvals: bool) -> Response:
    row = await _live_turn(context, person, id)
    if row is None:
        return Response(status_code=204)
    await context.runtime.driver.adopt(row.id)  # 409 where it cannot go on here
    stream = UIMessageStream(
        row.id, row.conversation, brought=await _brought(context, row.id), approvals=approvals
    )
    return _respond(context, row, _from_the_start(context.runtime.turn(row.id), stream))


async def _live_turn(context: Context, person: str, name: str) -> TurnRow | None:
    conversation = await conversation_of(context, person, name, PROTOCOL)
    live = await context.runtime.store.live_turns(conversation) if conversation is not None else []
    return live[-1] if live else None


async def _brought(context: Context, turn: str) -> set[str]:
    options = options_in(await context.runtime.store.facts(turn))
    return {spec.name for spec in options.client_tools}


# ── something new ─────────────────────────────────────────────────────────────────────────────────


async def _start(context: Context, person: str, body: UIChatBody) -> TurnRow:
    """The turn that answers the last message, or answers it once more."""
    dialogue = [one for one in body.messages if one.role != "system"]
    place = next((n for n, one in reversed([*enumerate(dialogue)]) if one.role == "user"), None)
    if place is None:
        raise BadRequest("there is no message of a person to answer")
    options = body.turn_options()
    if body.trigger == "regenerate-message":
        again = await _turn_to_repeat(context, person, body)
        if again is not None:
            turn = await context.runtime.commands.rerun(again.message, options=options)
            context.publisher.changed(again.conversation)
            return await context.runtime.store.turn(turn)
    before = [
        Said("user" if one.role == "user" else "assistant", one.id, partial(_content, context, person, one))
        for one in dialogue[:place]
    ]
    content = await _content(context, person, dialogue[place])
    return await say(context, person, body.id, PROTOCOL, before=before, content=content, options=options)


async def _turn_to_repeat(context: Context, person: str, body: UIChatBody) -> TurnRow | None:
    conversation = await conversation_of(context, person, body.id, PROTOCOL)
    if conversation is None:
        return None
    await stop_what_was_left(context, conversation)
    turns = await context.runtime.store.turns(conversation)
    named = [turn for turn in turns if turn.id == body.message] or turns[-1:]
    if named and named[0].live:
        raise TurnBusy(named[0].id)
    return named[0] if named else None


async def _content(context: Context, person: str, message: UIMessage) -> tuple[Part, ...]:
    parts: list[Part] = []
    for part in message.parts:
        if part.type == "text":
            parts.append(Text(part.text))
        elif part.type == "file":
            parts.append(await attach(context, person, part.url, part.media_type, part.filename))
    return tuple(parts)


# ── what a call was waiting for ───────────────────────────────────────────────────────────────────


async def _bring(context: Context, person: str, message: UIMessage, stream: UIMessageStream) -> None:
    """Answers and results in a message that the client has gone on with. What is settled already, is."""
    commands = context.runtime.commands
    for part in message.calls:
        with suppress(AlreadyAnswered, NotFound):
            approval = part.approval
            if part.state == "approval-responded" and approval is not None and approval.approved is not None:
                await context.question(approval.id, person)
                stream.was_brought(approval.id)
                given = allow_once() if approval.approved else reject(approval.reason)
                await context.runtime.answer(approval.id, replace(given, by=context.user(person)))
            elif part.state in ("output-available", "output-error"):
                call = await context.call(part.call, person)
                stream.was_brought(call.id)
                if call.state.settled:
                    continue
                failed = part.state == "output-error"
                output = part.error if failed else part.output
                text = output if isinstance(output, str) else canonical(output)
                value = None if isinstance(output, str) else output
                await commands.deliver(part.call, ToolResult(text, value=value), failed=failed)


# ── streams ───────────────────────────────────────────────────────────────────────────────────────


def _respond(context: Context, turn: TurnRow, chunks: AsyncIterator[Chunk]) -> Response:
    response = EventStream(write(context, turn.id, chunks, _DONE), context.publisher.streams)
    response.headers[_HEADER] = "v1"
    response.headers[_STREAM_ID] = turn.conversation
    return response


async def _from_the_start(turn: TurnHandle, stream: UIMessageStream) -> AsyncIterator[Chunk]:
    """All that was said in it, then the rest."""
    snapshot = await turn.snapshot()
    async for chunk in _follow(turn, stream, stream.replay(snapshot), snapshot):
        yield chunk


async def _follow(
    turn: TurnHandle, stream: UIMessageStream, lacking: Iterable[Chunk] = (), known: Snapshot | None = None
) -> AsyncIterator[Chunk]:
    """What the client lacks of what is known, then the rest: until the turn ends, or waits for it."""
    yield stream.begin()
    for chunk in lacking:
        yield chunk
    if stream.waits_for_client:  # nothing new was brought
        for chunk in stream.pause():
            yield chunk
        return
    async for chunk in _rest(turn, stream, known):
        yield chunk


async def _rest(turn: TurnHandle, stream: UIMessageStream, known: Snapshot | None) -> AsyncIterator[Chunk]:
    async for event in turn.events(known.last if known is not None else 0):
        if known is not None and known.state.ended and not isinstance(event, TurnEnd):
            continue  # of one that is over, all that it said is told again
        for chunk in stream.chunks(event):
            yield chunk
        if stream.waits_for_client:
            for chunk in stream.pause():
                yield chunk
            return
