"""Stored replies, as the Responses API shows them: found by their ids, with what was asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dragoman.errors import NotFound, TurnBusy
from dragoman.messages import events as e
from dragoman.messages.message import File, Message, Text
from dragoman.messages.request import OutputSpec
from dragoman.server.context import Context
from dragoman.server.protocols.openai.begin import ReplyPlace
from dragoman.server.protocols.openai.brought import missing_output
from dragoman.server.protocols.openai.follow import messages_of_turn, options_of, pieces_of, reader_of
from dragoman.server.protocols.openai.history import MARK
from dragoman.server.protocols.openai.names import parse_response_id, response_id
from dragoman.server.protocols.openai.response_shapes import ResponseObject
from dragoman.turn.facts import TurnOptions


async def find_place(context: Context, person: str, id: str) -> ReplyPlace:
    """Where a response is, if it is this person's."""
    turn, after = parse_response_id(id)
    try:
        row = await context.turn(turn, person)
    except NotFound:
        raise NotFound("response", id) from None
    place = ReplyPlace(turn, row.conversation, after)
    if after is not None and all(m.id != after for m in await messages_of_turn(context.runtime, place)):
        raise NotFound("response", id)
    return place


async def parent_of(context: Context, place: ReplyPlace) -> str:
    """The message below which what follows a response hangs. Its turn has to be over."""
    messages = await messages_of_turn(context.runtime, place)
    tools = {spec.name for spec in (await options_of(context.runtime, place.turn)).client_tools}
    for call in messages[-1].calls if messages else ():
        if not call.state.settled and call.started is not None and call.tool in tools:
            raise missing_output(call.id)
    row = await context.runtime.store.turn(place.turn)
    if row.live:
        raise TurnBusy(place.turn)
    return messages[-1].id if messages else row.message  # of an answer made once more there may be nothing


async def new_object(context: Context, place: ReplyPlace) -> ResponseObject:
    """A response of which nothing has come yet."""
    row = await context.runtime.store.turn(place.turn)
    options = await options_of(context.runtime, place.turn)
    messages = await messages_of_turn(context.runtime, place)
    first = await context.runtime.store.message(row.message)
    return ResponseObject(_head(place, options, messages, first, row.created))


async def read_object(context: Context, place: ReplyPlace) -> ResponseObject:
    """A response as it is now."""
    found = await new_object(context, place)
    reader = await reader_of(context.runtime, place)
    if (await context.runtime.store.turn(place.turn)).live:
        for message in (await context.runtime.turn(place.turn).snapshot()).messages:
            for piece in reader.feed(e.MessageAdded(message)):
                _ = [*found.events(piece)]
        return found
    async for piece in pieces_of(context.runtime, place, reader):
        _ = [*found.events(piece)]
    return found


async def input_items(context: Context, place: ReplyPlace) -> list[dict[str, Any]]:
    """What a response answers: a message, or the outputs of calls; the oldest first."""
    if place.after is None:
        row = await context.runtime.store.turn(place.turn)
        message = await context.runtime.store.message(row.message)
        content = [item for part in message.parts if (item := _input(part)) is not None]
        return [
            {"type": "message", "id": message.id, "role": "user", "status": "completed", "content": content}
        ]
    messages = await messages_of_turn(context.runtime, place)
    tools = {spec.name for spec in (await options_of(context.runtime, place.turn)).client_tools}
    calls = next(message for message in messages if message.id == place.after).calls
    return [
        {
            "type": "function_call_output",
            "id": f"fco_{call.id.removeprefix('call_')}",
            "call_id": call.id,
            "output": call.result.text,
            "status": "completed",
        }
        for call in calls
        if call.tool in tools and call.result is not None and (call.started is not None or call.provider_id)
    ]


def _input(part: object) -> dict[str, Any] | None:
    match part:
        case Text(text=text):
            return {"type": "input_text", "text": text}
        case File(blob=blob, media_type=kind) if kind.startswith("image/"):
            return {"type": "input_image", "detail": "auto", "file_id": blob}
        case File(blob=blob, name=name):
            return {"type": "input_file", "file_id": blob, "filename": name}
        case _:
            return None


# ── what was asked ────────────────────────────────────────────────────────────────────────────────


def _head(
    place: ReplyPlace, options: TurnOptions, messages: Sequence[Message], first: Message, created: float
) -> dict[str, Any]:
    request = first.metadata.get(MARK)
    asked: dict[str, Any] = request if isinstance(request, dict) else {}
    asked_options = options.options
    return {
        "id": response_id(place),
        "created_at": int(created),
        "model": options.agent or options.model or options.started_with or "",
        "previous_response_id": _before(place, options, messages) or asked.get("previous_response_id"),
        "conversation": {"id": place.conversation},
        "background": bool(asked.get("background")),
        "store": True,
        "metadata": asked.get("metadata") or {},
        "instructions": asked.get("instructions"),
        "temperature": asked_options.get("temperature"),
        "top_p": asked_options.get("top_p"),
        "max_output_tokens": asked_options.get("max_tokens"),
        "parallel_tool_calls": asked_options.get("parallel_tool_calls", True),
        "tool_choice": _choice(asked_options.get("tool_choice", "auto")),
        "tools": [
            {
                "type": "function",
                "name": spec.name,
                "description": spec.description,
                "parameters": spec.parameters,
                "strict": False,
            }
            for spec in options.client_tools
        ],
        "reasoning": {
            "effort": asked_options.get("reasoning_effort"),
            "summary": asked_options.get("reasoning_summary"),
        },
        "text": {"format": _format(options.output)},
        "truncation": "disabled",
    }


def _before(place: ReplyPlace, options: TurnOptions, messages: Sequence[Message]) -> str | None:
    """The response of the same turn before this one: the one whose calls this one has the outputs of."""
    if place.after is None:
        return None
    tools = {spec.name for spec in options.client_tools}
    ends = [
        message.id
        for message in messages
        if any(call.tool in tools and call.started is not None for call in message.calls)
    ]
    at = ends.index(place.after) if place.after in ends else 0
    return response_id(replace(place, after=ends[at - 1] if at else None))


def _choice(choice: object) -> Any:
    return choice if choice in ("auto", "none", "required") else {"type": "function", "name": choice}


def _format(output: OutputSpec | None) -> dict[str, Any]:
    if output is None:
        return {"type": "text"}
    return {"type": "json_schema", "name": "answer", "schema": output.schema, "strict": True}
