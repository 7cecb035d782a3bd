"""Routes to make, read, follow, cancel and delete responses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import JsonValue
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from dragoman.server.context import Context, Person, TheContext
from dragoman.server.protocols.openai.attempts import attempt_of, is_retry
from dragoman.server.protocols.openai.begin import ReplyPlace, ReplyRequest, begin, options_for
from dragoman.server.protocols.openai.errors import NEVER_AGAIN, OpenAIRoute, error_response, json_response
from dragoman.server.protocols.openai.follow import (
    STOPPING,
    WELCOME,
    cancel,
    cancelled_if_left,
    frame,
    pieces_of,
    reader_of,
    while_connected,
)
from dragoman.server.protocols.openai.names import headers_of
from dragoman.server.protocols.openai.reply import STOPPED, ReplyOver, ReplyReader
from dragoman.server.protocols.openai.response_bodies import ResponseBody
from dragoman.server.protocols.openai.response_shapes import TERMINAL, ResponseObject
from dragoman.server.protocols.openai.stored import (
    find_place,
    input_items,
    new_object,
    parent_of,
    read_object,
)
from dragoman.server.stream import EventStream
from dragoman.store.store import SendKey

router = APIRouter(route_class=OpenAIRoute, include_in_schema=False)
_PATIENCE = 10.0  # seconds for a turn to end once it is cancelled


@router.post("/responses")
async def create_response(
    context: TheContext, person: Person, request: Request, body: ResponseBody
) -> Response:
    """Who hangs up cancels the turn, unless it was to run in the background."""
    key = await attempt_of(request, context.runtime.services.clock())
    wanted = replace(await _wanted(context, person, body, key), retried=is_retry(request))
    place = await begin(context, person, wanted)
    found = await new_object(context, place)
    if body.background and not body.stream:
        return json_response((await read_object(context, place)).whole(), headers=headers_of(place))
    reader = await reader_of(context.runtime, place)
    if body.stream:
        chunks = _events(context, place, reader, found)
        if not body.background:
            chunks = cancelled_if_left(context, place, reader, chunks)
        return EventStream(chunks, context.publisher.streams, headers_of(place))
    await while_connected(request, _write(context, place, reader, found), lambda: cancel(context, place))
    return json_response(found.whole(), headers=headers_of(place))


async def _wanted(context: Context, person: str, body: ResponseBody, key: SendKey) -> ReplyRequest:
    asked = body.request_options()
    output = body.text.format.spec("text.format") if body.text and body.text.format else None
    brought = body.brought(context.upload_limit)
    options = options_for(context, body, asked, brought.prompt, output)
    metadata: dict[str, JsonValue] = {
        "metadata": {**(body.metadata or {})},
        "previous_response_id": body.previous_response_id,
        "instructions": body.instructions,
        "background": bool(body.background),
    }
    conversation, parent = body.conversation_id, None
    if conversation is not None:
        await context.check_owner(conversation, person)
    if body.previous_response_id is not None:
        previous = await find_place(context, person, body.previous_response_id)
        conversation = previous.conversation
        parent = await parent_of(context, previous) if not brought.outputs else None
    return ReplyRequest(brought, options, conversation, parent, metadata, key)


@router.get("/responses/{id}")
async def read_response(
    context: TheContext,
    person: Person,
    id: str,
    stream: bool = False,
    starting_after: Annotated[int | None, Query(ge=0, le=10**15)] = None,
) -> Response:
    """As it is now; or, streamed, from its beginning or after an event on. Who hangs up cancels nothing."""
    place = await find_place(context, person, id)
    if not stream:
        return json_response((await read_object(context, place)).whole(), headers=headers_of(place))
    reader = await reader_of(context.runtime, place)
    found = await new_object(context, place)
    after = -1 if starting_after is None else starting_after
    chunks = _events(context, place, reader, found, after)
    return EventStream(chunks, context.publisher.streams, headers_of(place))


@router.post("/responses/{id}/cancel")
async def cancel_response(context: TheContext, person: Person, id: str) -> Response:
    place = await find_place(context, person, id)
    await cancel(context, place, "cancelled by the caller")
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            await context.runtime.turn(place.turn).reached("cancelled")
    return json_response((await read_object(context, place)).whole(), headers=headers_of(place))


@router.delete("/responses/{id}")
async def delete_response(context: TheContext, person: Person, id: str) -> Response:
    """With its conversation, if there is nothing else in it."""
    place = await find_place(context, person, id)
    if len(await context.runtime.store.turns(place.conversation)) > 1:
        what = f"the response is part of conversation {place.conversation}, which can only be deleted whole"
        return error_response(409, what, code="response_in_conversation", headers=NEVER_AGAIN)
    inner = await context.runtime.store.within(place.conversation)
    await context.runtime.delete(place.conversation)
    for each in inner:
        context.publisher.deleted(each, person)
    return json_response({"id": id, "object": "response", "deleted": True})


@router.get("/responses/{id}/input_items")
async def list_input_items(
    context: TheContext, person: Person, id: str, order: Literal["asc", "desc"] = "desc"
) -> dict[str, Any]:
    items = await input_items(context, await find_place(context, person, id))
    data = items if order == "asc" else items[::-1]
    ends = {"first_id": data[0]["id"] if data else None, "last_id": data[-1]["id"] if data else None}
    return {"object": "list", "data": data, "has_more": False, **ends}


# ── writing it ────────────────────────────────────────────────────────────────────────────────────


async def _events(
    context: Context, place: ReplyPlace, reader: ReplyReader, found: ResponseObject, after: int = -1
) -> AsyncGenerator[bytes, None]:
    """The same turn gives the same numbers. Of one that went on in another process, or is over, what is left
    may be shorter: its end comes all the same, and has everything in it."""
    yield WELCOME
    for event in found.begin():
        if event["sequence_number"] > after:
            yield frame(event, event["type"])
    async for piece in pieces_of(context.runtime, place, reader):
        if isinstance(piece, ReplyOver) and piece.kind == STOPPED:
            return  # it is not over: who comes back gets the rest
        for event in found.events(piece):
            if event["type"] in TERMINAL:
                event["sequence_number"] = max(event["sequence_number"], after + 1)
            if event["sequence_number"] > after:
                yield frame(event, event["type"])


async def _write(context: Context, place: ReplyPlace, reader: ReplyReader, found: ResponseObject) -> None:
    async for piece in pieces_of(context.runtime, place, reader):
        if isinstance(piece, ReplyOver) and piece.kind == STOPPED:
            raise HTTPException(503, STOPPING, headers=NEVER_AGAIN)
        for _ in found.events(piece):
            pass
