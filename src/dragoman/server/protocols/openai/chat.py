"""Route to make chat completions: the whole history comes with each request."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Header
from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import Response

from dragoman.server.context import Context, Person, TheContext
from dragoman.server.protocols.openai.attempts import attempt_of, is_retry
from dragoman.server.protocols.openai.begin import ReplyPlace, ReplyRequest, begin, options_for
from dragoman.server.protocols.openai.chat_bodies import ChatBody
from dragoman.server.protocols.openai.chat_shapes import ChatCompletion, failure_body, status_of
from dragoman.server.protocols.openai.errors import NEVER_AGAIN, OpenAIRoute, json_response
from dragoman.server.protocols.openai.follow import (
    WELCOME,
    cancel,
    cancelled_if_left,
    frame,
    pieces_of,
    reader_of,
    while_connected,
)
from dragoman.server.protocols.openai.names import headers_of, suffix_of
from dragoman.server.protocols.openai.reply import ReplyReader
from dragoman.server.stream import EventStream

router = APIRouter(route_class=OpenAIRoute, include_in_schema=False)
_DONE = b"data: [DONE]\n\n"


@router.post("/chat/completions")
async def create_completion(
    context: TheContext,
    person: Person,
    request: Request,
    body: ChatBody,
    x_dragoman_conversation: Annotated[str | None, Header(max_length=100)] = None,
) -> Response:
    """Say something, or bring the results of calls. Who hangs up cancels the turn."""
    output = body.response_format.spec("response_format.json_schema") if body.response_format else None
    brought = body.brought(context.upload_limit)
    options = options_for(context, body, body.request_options(), brought.prompt, output)
    metadata = body.metadata or {}
    conversation = x_dragoman_conversation or metadata.get("conversation")
    if conversation is not None:
        await context.check_owner(conversation, person)
    to_store: dict[str, JsonValue] = {"metadata": {**metadata}}
    key = await attempt_of(request, context.runtime.services.clock(), conversation)
    wanted = ReplyRequest(
        brought, options, conversation, metadata=to_store, key=key, retried=is_retry(request)
    )
    place = await begin(context, person, wanted)
    row = await context.runtime.store.turn(place.turn)
    reader = await reader_of(context.runtime, place)
    with_usage = bool(body.stream and body.stream_options and body.stream_options.include_usage)
    completion = ChatCompletion(
        f"chatcmpl-{suffix_of(place)}", body.model, int(row.created), with_usage=with_usage
    )
    if body.stream:
        chunks = cancelled_if_left(context, place, reader, _chunks(context, place, reader, completion))
        return EventStream(chunks, context.publisher.streams, headers_of(place))
    await while_connected(request, _write(context, place, reader, completion), lambda: cancel(context, place))
    return _answer(completion, place)


async def _chunks(
    context: Context, place: ReplyPlace, reader: ReplyReader, completion: ChatCompletion
) -> AsyncGenerator[bytes, None]:
    yield WELCOME
    yield frame(completion.begin())
    async for piece in pieces_of(context.runtime, place, reader):
        for chunk in completion.chunks(piece):
            yield frame(chunk)
    yield _DONE


async def _write(
    context: Context, place: ReplyPlace, reader: ReplyReader, completion: ChatCompletion
) -> None:
    async for piece in pieces_of(context.runtime, place, reader):
        for _ in completion.chunks(piece):
            pass


def _answer(completion: ChatCompletion, place: ReplyPlace) -> Response:
    over = completion.over
    if over is None or over.outcome in ("completed", "tool_calls"):
        return json_response(completion.whole(), headers=headers_of(place))
    # What the turn did is done: repeated by a client of its own accord, it would be done twice.
    failed = {"error": failure_body(over)}
    return json_response(failed, status_of(over), {**headers_of(place), **NEVER_AGAIN})
