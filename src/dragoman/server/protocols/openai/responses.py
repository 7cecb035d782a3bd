"""Serve responses: routes to create, read, follow, cancel and delete them, and the body of a request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import APIRouter, Query
from pydantic import Discriminator, Field, JsonValue, Tag
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from dragoman.conversation.sharing import Right
from dragoman.errors import NotFound
from dragoman.messages.message import Message
from dragoman.server.context import Context, TheContext
from dragoman.server.event_stream import STOPS, EventStream
from dragoman.server.protocols.openai.api_errors import (
    NEVER_AGAIN,
    ApiRefusal,
    OpenAIRoute,
    error_response,
    json_response,
)
from dragoman.server.protocols.openai.begin_turn import (
    ReplyPlace,
    ReplyRequest,
    attempt_of,
    begin,
    headers_of,
    is_retry,
    options_for,
)
from dragoman.server.protocols.openai.reply import (
    STOPPED,
    STOPPING,
    WELCOME,
    ReplyOver,
    ReplyReader,
    cancel,
    cancelled_if_left,
    frame,
    pieces_of,
    reader_of,
    while_connected,
)
from dragoman.server.protocols.openai.request_input import (
    MANY,
    AnswerFormat,
    AnswerOptions,
    AnyContent,
    AssistantEntry,
    Brought,
    BroughtCall,
    CallOutput,
    Entry,
    Lenient,
    Refusals,
    UserEntry,
    read_content,
    refuse,
    text_alone,
)
from dragoman.server.protocols.openai.response_object import (
    SEALED,
    TERMINAL,
    ResponseObject,
    find_place,
    input_items,
    new_object,
    open_reasoning,
    parent_of,
    read_object,
)
from dragoman.store.store import SendKey


class MessageItem(Lenient):
    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: AnyContent


class FunctionCallItem(Lenient):
    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str


class OutputItem(Lenient):
    type: Literal["function_call_output"]
    call_id: str
    output: AnyContent


class ReasoningItem(Lenient):
    """Reasoning from clients that send the whole history. Models receive it from the store instead."""

    type: Literal["reasoning"]
    encrypted_content: str | None = None


class ItemReference(Lenient):
    """An item by its ID. The server has stored it."""

    type: Literal["item_reference"]
    id: str


def _type(item: Any) -> str | None:
    given = item.get("type", "message") if isinstance(item, dict) else getattr(item, "type", None)
    return given if isinstance(given, str) else None


InputItem: TypeAlias = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[FunctionCallItem, Tag("function_call")]
    | Annotated[OutputItem, Tag("function_call_output")]
    | Annotated[ReasoningItem, Tag("reasoning")]
    | Annotated[ItemReference, Tag("item_reference")],
    Discriminator(
        _type,
        custom_error_type="item_type",
        custom_error_message="items are of type message, function_call, function_call_output, reasoning or "
        "item_reference",
    ),
]


class TextSettings(Lenient):
    format: AnswerFormat | None = None
    verbosity: str | None = None


class ReasoningSettings(Lenient):
    effort: str | None = None
    summary: str | None = None


class ConversationName(Lenient):
    id: str


# Only reasoning occurs here. The other values belong to tools that OpenAI runs.
_INCLUDED = frozenset(
    {
        SEALED,
        "code_interpreter_call.outputs",
        "computer_call_output.output.image_url",
        "file_search_call.results",
        "message.input_image.image_url",
        "web_search_call.action.sources",
        "web_search_call.results",
    }
)


def _unknown_parts(include: object) -> bool:
    return not isinstance(include, list) or any(one not in _INCLUDED for one in include)


_REFUSALS: Refusals = (
    ("include", _unknown_parts, f"A response can include {', '.join(sorted(_INCLUDED))}."),
    ("max_tool_calls", bool, "The agent sets the limits of calls."),
    ("prompt", bool, "Dragoman does not support prompts by ID."),
    ("top_logprobs", bool, "Dragoman does not return log probabilities."),
    (
        "truncation",
        lambda how: how != "disabled",
        "Dragoman compacts a history that is too long, and does not truncate it.",
    ),
    ("context_management", bool, "Dragoman compacts a history that is too long."),
    ("moderation", bool, "Dragoman does not offer moderation."),
)


class ResponseBody(AnswerOptions):
    input: str | Annotated[list[InputItem], Field(min_length=1, max_length=MANY)]
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: str | ConversationName | None = None
    background: bool | None = None
    max_output_tokens: int | None = None
    text: TextSettings | None = None
    reasoning: ReasoningSettings | None = None
    stream_options: JsonValue = None
    # refused fields
    include: JsonValue = None
    max_tool_calls: JsonValue = None
    prompt: JsonValue = None
    top_logprobs: JsonValue = None
    truncation: str | None = None
    context_management: JsonValue = None
    moderation: JsonValue = None

    def request_options(self) -> dict[str, JsonValue]:
        refuse(self, _REFUSALS)
        if self.background and self.store is False:
            what = (
                "A background response must be stored, so that you can read it later. "
                "Leave out `store`, or `background`."
            )
            raise ApiRefusal(what, "store", code="mutually_exclusive_parameters")
        if self.previous_response_id and self.conversation:
            what = "`previous_response_id` and `conversation` both name where to continue. Send one of them."
            raise ApiRefusal(what, "conversation", code="mutually_exclusive_parameters")
        thinking = self.reasoning or ReasoningSettings()
        return self.options(
            {
                "max_tokens": self.max_output_tokens,
                "reasoning_effort": thinking.effort,
                "reasoning_summary": thinking.summary,
                "verbosity": self.text.verbosity if self.text else None,
            }
        )

    @property
    def seals(self) -> bool:
        return isinstance(self.include, list) and SEALED in self.include

    @property
    def conversation_id(self) -> str | None:
        named = self.conversation
        return named.id if isinstance(named, ConversationName) else named

    async def brought(self, context: Context) -> Brought:
        found = Brought([self.instructions] if self.instructions else [])
        items = [MessageItem(role="user", content=self.input)] if isinstance(self.input, str) else self.input
        await read_items(context, items, found, "input")
        if not found.outputs and not found.sent:
            what = "The input must end with a user's message, or the outputs of calls."
            raise ApiRefusal(what, "input", code="invalid_value")
        return found


async def read_items(context: Context, items: Sequence[InputItem], found: Brought, field: str) -> None:
    """Add the content of these items to `found`."""
    told: set[str] = set()  # messages already added: each of their texts has a separate item
    # messages already added: each of their reasoning items seals all of their reasoning
    sealed_by: set[str] = set()
    for at, item in enumerate(items):
        param = f"{field}[{at}]"
        match item:
            case MessageItem(role="user", content=content):
                found.add(UserEntry(await read_content(content, param, context)))
            case MessageItem(role="assistant", content=content):
                found.add(AssistantEntry((text_alone(content, param),)))
            case MessageItem(content=content):
                found.system.append(text_alone(content, param))
            case FunctionCallItem(call_id=call, name=name, arguments=arguments):
                found.add(AssistantEntry(calls=(BroughtCall(call, name, arguments),)))
            case OutputItem(call_id=call, output=output):
                found.add(CallOutput(call, await read_content(output, param, context)))
            case ReasoningItem(encrypted_content=str(sealed)):
                message, reasoning = await open_reasoning(context, sealed, param)
                if message not in sealed_by:
                    found.add(AssistantEntry(reasoning=reasoning))
                sealed_by.add(message)
            case ItemReference(id=id):
                for entry in await _referred(context, id, told, param):
                    found.add(entry)
            case _:
                pass


async def _referred(context: Context, id: str, told: set[str], param: str) -> list[Entry]:
    """Return the entries of a stored item. Raises ApiRefusal if it does not exist for this user. Reasoning is
    left out, because models get it from the store."""
    noun, _, rest = id.partition("_")
    try:
        match noun:
            case "rs":
                return []
            case "fc":
                call = await context.call(f"call_{rest}", Right.READ)
                arguments = json.dumps(call.arguments, ensure_ascii=False)
                return [AssistantEntry(calls=(BroughtCall(call.id, call.tool, arguments),))]
            case "fco":
                call = await context.call(f"call_{rest}", Right.READ)
                return [CallOutput(call.id, (call.result.text if call.result is not None else "",))]
            case "msg":
                message = await _message_of(context, rest)
                if message.id in told:
                    return []
                told.add(message.id)
                if message.role == "user":
                    return [UserEntry((message.text,))]
                return [AssistantEntry((message.text,))]
    except NotFound:
        pass
    raise ApiRefusal(f"Unknown item {id!r}.", param, code="invalid_value")


async def _message_of(context: Context, rest: str) -> Message:
    """Return a message by an item's ID: the message's ID, or that and the item's index in its response."""
    try:
        return await context.message(f"msg_{rest}", Right.READ)
    except NotFound:
        return await context.message(f"msg_{rest.rpartition('_')[0]}", Right.READ)


# ── routes ────────────────────────────────────────────────────────────────────────────────────────


router = APIRouter(route_class=OpenAIRoute, include_in_schema=False)
_PATIENCE = 10.0  # seconds for a cancelled turn to end


@router.post("/responses")
async def create_response(context: TheContext, request: Request, body: ResponseBody) -> Response:
    """Create a response. A client that disconnects cancels the turn, unless the response runs in the
    background."""
    key = await attempt_of(request, context.runtime.services.clock())
    wanted = replace(await _wanted(context, body, key), retried=is_retry(request))
    place = await begin(context, wanted)
    found = await new_object(context, place, seals=body.seals)
    if body.background and not body.stream:
        whole = (await read_object(context, place, seals=body.seals)).whole()
        return json_response(whole, headers=headers_of(place))
    reader = await reader_of(context.runtime, place)
    if body.stream:
        chunks = _events(context, place, reader, found)
        if not body.background:
            chunks = cancelled_if_left(context, place, reader, chunks)
        return EventStream(
            chunks,
            context.publisher.streams,
            headers_of(place),
            reader=context.reader(place.conversation),
            farewell=partial(_farewell, found),
        )
    await while_connected(request, _write(context, place, reader, found), lambda: cancel(context, place))
    return json_response(found.whole(), headers=headers_of(place))


async def _wanted(context: Context, body: ResponseBody, key: SendKey) -> ReplyRequest:
    asked = body.request_options()
    output = body.text.format.spec("text.format") if body.text and body.text.format else None
    brought = await body.brought(context)
    options = await options_for(context, body, asked, brought.prompt, output)
    metadata: dict[str, JsonValue] = {
        "metadata": {**(body.metadata or {})},
        "previous_response_id": body.previous_response_id,
        "instructions": body.instructions,
        "background": bool(body.background),
        "store": body.store is not False,
    }
    conversation, parent = body.conversation_id, None
    if conversation is not None:
        await context.check(conversation, Right.TAKE_PART)
    if body.previous_response_id is not None:
        previous = await find_place(context, body.previous_response_id, Right.TAKE_PART)
        conversation = previous.conversation
        parent = await parent_of(context, previous) if not brought.outputs else None
    return ReplyRequest(brought, options, conversation, parent, metadata, key)


@router.get("/responses/{id}")
async def read_response(
    context: TheContext,
    id: str,
    stream: bool = False,
    starting_after: Annotated[int | None, Query(ge=0, le=10**15)] = None,
    include: Annotated[list[str] | None, Query()] = None,
) -> Response:
    """Return a response as it is now. With `stream`, stream it from its beginning or after an event. A client
    that disconnects cancels nothing."""
    place, seals = await find_place(context, id, Right.READ), SEALED in (include or ())
    if not stream:
        whole = (await read_object(context, place, seals=seals)).whole()
        return json_response(whole, headers=headers_of(place))
    reader = await reader_of(context.runtime, place)
    found = await new_object(context, place, seals=seals)
    after = -1 if starting_after is None else starting_after
    chunks = _events(context, place, reader, found, after)
    return EventStream(
        chunks,
        context.publisher.streams,
        headers_of(place),
        reader=context.reader(place.conversation),
        farewell=partial(_farewell, found),
    )


@router.post("/responses/{id}/cancel")
async def cancel_response(context: TheContext, id: str) -> Response:
    place = await find_place(context, id, Right.TAKE_PART)
    await cancel(context, place, "cancelled by the caller")
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            await context.runtime.turn(place.turn).reached("cancelled")
    return json_response((await read_object(context, place)).whole(), headers=headers_of(place))


@router.delete("/responses/{id}")
async def delete_response(context: TheContext, id: str) -> Response:
    """Delete a response with its conversation, if it is the only one in it."""
    place = await find_place(context, id, Right.OWN)
    if len(await context.runtime.store.turns(place.conversation)) > 1:
        what = (
            f"The response is part of conversation {place.conversation!r}, which can only be deleted whole."
        )
        return error_response(409, what, code="response_in_conversation", headers=NEVER_AGAIN)
    await context.delete(place.conversation)
    return json_response({"id": id, "object": "response", "deleted": True})


@router.get("/responses/{id}/input_items")
async def list_input_items(
    context: TheContext, id: str, order: Literal["asc", "desc"] = "desc"
) -> dict[str, Any]:
    items = await input_items(context, await find_place(context, id, Right.READ))
    data = items if order == "asc" else items[::-1]
    ends = {"first_id": data[0]["id"] if data else None, "last_id": data[-1]["id"] if data else None}
    return {"object": "list", "data": data, "has_more": False, **ends}


def _farewell(found: ResponseObject) -> bytes:
    stops = {"code": "server_stops", "message": str(STOPS), "param": None}
    return frame({"type": "error", "sequence_number": found.number, **stops}, "error")


# ── writing it ────────────────────────────────────────────────────────────────────────────────────


async def _events(
    context: Context, place: ReplyPlace, reader: ReplyReader, found: ResponseObject, after: int = -1
) -> AsyncGenerator[bytes, None]:
    """Yield the events of a response. The same turn yields the same numbers.

    For a turn that has ended or resumed in another process, fewer events can follow. The last event still
    comes and contains the whole response.
    """
    yield WELCOME
    for event in found.begin():
        if event["sequence_number"] > after:
            yield frame(event, event["type"])
    async for piece in pieces_of(context.runtime, place, reader):
        if isinstance(piece, ReplyOver) and piece.kind == STOPPED:
            yield _farewell(found)  # The turn continues, and a client that reconnects gets the rest.
            return
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
