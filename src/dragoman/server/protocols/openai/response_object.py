"""Write a reply as a response of the Responses API: as events, as a whole, and from the store."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dragoman.conversation.sharing import Right
from dragoman.errors import NotFound, TurnBusy
from dragoman.messages import events as e
from dragoman.messages.endings import REFUSED
from dragoman.messages.message import (
    CallState,
    Citation,
    File,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.messages.request import OutputSpec
from dragoman.messages.usage import Usage
from dragoman.server.context import Context
from dragoman.server.problems import without_paths
from dragoman.server.protocols.event_reader import CallForClient, PartDelta
from dragoman.server.protocols.openai.api_errors import ApiRefusal
from dragoman.server.protocols.openai.begin_turn import ReplyPlace, parse_response_id, response_id
from dragoman.server.protocols.openai.find_conversation import MARK
from dragoman.server.protocols.openai.reply import (
    OutputClosed,
    OutputOpened,
    Piece,
    ReplyOver,
    TextBecameReasoning,
    messages_of_turn,
    options_of,
    pieces_of,
    reader_of,
)
from dragoman.server.protocols.openai.request_input import missing_output
from dragoman.turn.facts import TurnOptions

_CODES = {"rate_limit": "rate_limit_exceeded", **dict.fromkeys(REFUSED, "invalid_prompt")}
SEALED = "reasoning.encrypted_content"  # the value by which callers request it
TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed"})


@dataclass(slots=True)
class ResponseObject:
    """One response. `head` has its fields other than output, status and usage. `seals` adds to reasoning a
    reference that the caller sends back."""

    head: dict[str, Any]
    seals: bool = False
    output: list[dict[str, Any]] = field(default_factory=list)
    over: ReplyOver | None = None
    number: int = 0  # the number of the next event
    _text: list[str] = field(default_factory=list)
    _message: str = ""  # the message of the last item

    def begin(self) -> Iterator[dict[str, Any]]:
        yield self._event("response.created", response=self.whole())
        yield self._event("response.in_progress", response=self.whole())

    def events(self, piece: Piece) -> Iterator[dict[str, Any]]:
        match piece:
            case OutputOpened(kind="text", message=message):
                yield from self._open(_message(self._id("msg", message), "in_progress"))
                part = {"type": "output_text", "text": "", "annotations": []}
                yield self._part("response.content_part.added", content_index=0, part=part)
            case OutputOpened(message=message):
                yield from self._open(self._reasoning(self._id("rs", message), message, "in_progress"))
                part = {"type": "summary_text", "text": ""}
                yield self._part("response.reasoning_summary_part.added", summary_index=0, part=part)
            case PartDelta(kind="text", text=text):
                self._text.append(text)
                yield self._part("response.output_text.delta", content_index=0, delta=text, logprobs=[])
            case PartDelta(text=text):
                self._text.append(text)
                yield self._part("response.reasoning_summary_text.delta", summary_index=0, delta=text)
            case OutputClosed(kind="text", citations=citations):
                yield from self._close_text("".join(self._text), citations)
            case OutputClosed():
                yield from self._close_reasoning("".join(self._text))
            case TextBecameReasoning(message=message):
                self._make_thoughts(f"msg_{_suffix(message)}_", message)
            case CallForClient():
                yield from self._hand(piece)
            case ReplyOver():
                self.over = piece
                yield self._event(f"response.{_ending(self.status)}", response=self.whole())

    @property
    def status(self) -> str:
        match self.over:
            case None:
                return "in_progress"
            case ReplyOver(outcome="error"):
                return "failed"
            case ReplyOver(outcome="cancelled"):
                return "cancelled"
            case ReplyOver(finish=finish):
                return "incomplete" if _why_incomplete(finish) else "completed"

    def whole(self) -> dict[str, Any]:
        why = _why_incomplete(self.over.finish) if self.status == "incomplete" and self.over else None
        return {
            **self.head,
            "object": "response",
            "status": self.status,
            "error": self._error(),
            "incomplete_details": {"reason": why} if why else None,
            "output": [*self.output],
            "usage": _usage(self.over.usage) if self.over is not None else None,
        }

    def _error(self) -> dict[str, Any] | None:
        if self.over is None or self.over.outcome != "error":
            return None
        code = _CODES.get(self.over.kind, "server_error")
        # The AI SDK reads no error without a type. OpenAI's SDKs ignore the field.
        return {"code": code, "message": without_paths(self.over.error), "type": code}

    # ── items ─────────────────────────────────────────────────────────────────────────────────────

    def _open(self, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
        self._text.clear()
        self.output.append(item)
        yield self._event("response.output_item.added", output_index=len(self.output) - 1, item=item)

    def _close(self, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
        self.output[-1] = item
        yield self._event("response.output_item.done", output_index=len(self.output) - 1, item=item)

    def _close_text(self, text: str, citations: tuple[Citation, ...]) -> Iterator[dict[str, Any]]:
        item = _message(self.output[-1]["id"], "completed", text, citations)
        for at, source in enumerate(item["content"][0]["annotations"]):
            yield self._part(
                "response.output_text.annotation.added",
                content_index=0,
                annotation_index=at,
                annotation=source,
            )
        yield self._part("response.output_text.done", content_index=0, text=text, logprobs=[])
        yield self._part("response.content_part.done", content_index=0, part=item["content"][0])
        yield from self._close(item)

    def _close_reasoning(self, text: str) -> Iterator[dict[str, Any]]:
        item = self._reasoning(self.output[-1]["id"], self._message, "completed", text)
        yield self._part("response.reasoning_summary_text.done", summary_index=0, text=text)
        yield self._part("response.reasoning_summary_part.done", summary_index=0, part=item["summary"][0])
        yield from self._close(item)

    def _make_thoughts(self, ids: str, message: str) -> None:
        """Turn message items into reasoning. No event exists for that, but the final response is correct."""
        for at, item in enumerate(self.output):
            if item["id"].startswith(ids):
                text = item["content"][0]["text"]
                id = f"rs{item['id'].removeprefix('msg')}"
                self.output[at] = self._reasoning(id, message, "completed", text)

    def _hand(self, handed: CallForClient) -> Iterator[dict[str, Any]]:
        arguments = json.dumps(handed.arguments, ensure_ascii=False)
        item = _function_call(handed.call, handed.tool, "in_progress")
        yield from self._open(item)
        yield self._part("response.function_call_arguments.delta", delta=arguments)
        yield self._part("response.function_call_arguments.done", name=handed.tool, arguments=arguments)
        yield from self._close({**item, "arguments": arguments, "status": "completed"})

    def _id(self, noun: str, message: str) -> str:
        self._message = message
        return f"{noun}_{_suffix(message)}_{len(self.output)}"

    def _reasoning(self, id: str, message: str, status: str, text: str | None = None) -> dict[str, Any]:
        summary = [{"type": "summary_text", "text": text}] if text is not None else []
        sealed = {"encrypted_content": _seal(message)} if self.seals and text is not None else {}
        return {"type": "reasoning", "id": id, "summary": summary, "status": status, **sealed}

    # ── events ────────────────────────────────────────────────────────────────────────────────────

    def _part(self, type: str, **fields: Any) -> dict[str, Any]:
        place = len(self.output) - 1
        return self._event(type, item_id=self.output[place]["id"], output_index=place, **fields)

    def _event(self, type: str, **fields: Any) -> dict[str, Any]:
        event = {"type": type, "sequence_number": self.number, **fields}
        self.number += 1
        return event


def _ending(status: str) -> str:
    """Return the name of the final event. Cancelled responses have no separate event."""
    return status if status in ("completed", "failed") else "incomplete"


def _why_incomplete(finish: str) -> str | None:
    if finish in ("length", "context"):
        return "max_output_tokens"
    return "content_filter" if finish in REFUSED else None


def _message(
    id: str, status: str, text: str | None = None, citations: tuple[Citation, ...] = ()
) -> dict[str, Any]:
    sources = [_annotation(source) for source in citations if _is_whole(source)]
    part = {"type": "output_text", "text": text, "annotations": sources, "logprobs": []}
    content = [part] if text is not None else []
    return {"type": "message", "id": id, "role": "assistant", "status": status, "content": content}


def _is_whole(source: Citation) -> bool:
    """Return whether a citation has all fields of an annotation."""
    return source.url is not None and source.start is not None and source.end is not None


def _annotation(source: Citation) -> dict[str, Any]:
    return {
        "type": "url_citation",
        "url": source.url,
        "title": source.title or "",
        "start_index": source.start,
        "end_index": source.end,
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.cache_written,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total,
    }


def _suffix(id: str) -> str:
    return id.partition("_")[2] or id


# ── reasoning returned by the caller ──────────────────────────────────────────────────────────────


_SEAL = "dragoman 1 "


def _seal(message: str) -> str:
    """Return a reference to reasoning. The reasoning itself stays in the store, with the provider's
    signature."""
    return base64.urlsafe_b64encode(f"{_SEAL}{message}".encode()).decode()


async def open_reasoning(context: Context, sealed: str, param: str) -> tuple[str, tuple[Reasoning, ...]]:
    """Return the message that a seal names, and its reasoning. Raises ApiRefusal if the caller cannot have
    received it."""
    try:
        mark, found, id = base64.urlsafe_b64decode(sealed).decode().partition(_SEAL)
        message = await context.message(id if found and not mark else "", Right.READ)
    except (binascii.Error, ValueError, NotFound):
        what = "Cannot verify the encrypted content. Send reasoning items as you received them."
        raise ApiRefusal(what, f"{param}.encrypted_content", code="invalid_encrypted_content") from None
    return message.id, tuple(part for part in message.parts if isinstance(part, Reasoning))


# ── read from the store ───────────────────────────────────────────────────────────────────────────


async def find_place(context: Context, id: str, right: Right) -> ReplyPlace:
    """Return the place of a response. Raises NotFound or Forbidden if the user lacks this right."""
    turn, after = parse_response_id(id)
    try:
        row = await context.turn(turn, right)
    except NotFound:
        raise NotFound("response", id) from None
    if not _asked(await context.runtime.store.message(row.message)).get("store", True):
        raise NotFound("response", id, "It was created with `store: false`.")
    place = ReplyPlace(turn, row.conversation, after)
    if after is not None and all(m.id != after for m in await messages_of_turn(context.runtime, place)):
        raise NotFound("response", id)
    return place


async def parent_of(context: Context, place: ReplyPlace) -> str:
    """Return the message that continues a response. Raises TurnBusy if its turn has not ended, and ApiRefusal
    if a call waits for its output."""
    messages = await messages_of_turn(context.runtime, place)
    tools = {spec.name for spec in (await options_of(context.runtime, place.turn)).client_tools}
    for call in messages[-1].calls if messages else ():
        if not call.state.settled and call.started is not None and call.tool in tools:
            raise missing_output(call.id)
    row = await context.runtime.store.turn(place.turn)
    if row.live:
        raise TurnBusy(place.turn)
    return messages[-1].id if messages else row.message  # A regenerated answer can be empty.


async def new_object(context: Context, place: ReplyPlace, *, seals: bool = False) -> ResponseObject:
    """Return a response without output."""
    row = await context.runtime.store.turn(place.turn)
    options = await options_of(context.runtime, place.turn)
    messages = await messages_of_turn(context.runtime, place)
    first = await context.runtime.store.message(row.message)
    return ResponseObject(_head(place, options, messages, first, row.created), seals)


async def read_object(context: Context, place: ReplyPlace, *, seals: bool = False) -> ResponseObject:
    """Return a response as it is now."""
    found = await new_object(context, place, seals=seals)
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
    """Return the input of a response, oldest first: a message, or the outputs of calls."""
    if place.after is None:
        row = await context.runtime.store.turn(place.turn)
        message = await context.runtime.store.message(row.message)
        return [_input_message(message)]
    messages = await messages_of_turn(context.runtime, place)
    tools = {spec.name for spec in (await options_of(context.runtime, place.turn)).client_tools}
    calls = next(message for message in messages if message.id == place.after).calls
    # A refused call never reached the caller. Calls of the caller's own history are complete from the start.
    brought = [call for call in calls if call.started is not None or call.state is CallState.COMPLETED]
    return [_output(call, call.result) for call in brought if call.tool in tools and call.result is not None]


def items_of(message: Message, tools: Collection[str] | None) -> Iterator[dict[str, Any]]:
    """Yield a stored message as items, with the calls of these tools. None stands for all tools."""
    if message.role == "user":
        yield _input_message(message)
    elif message.role == "assistant":
        if message.text:
            yield _message(message.id, "completed", message.text)
        for call in message.calls:
            if call.result is not None and (tools is None or call.tool in tools):
                arguments = json.dumps(call.arguments, ensure_ascii=False)
                yield {**_function_call(call.id, call.tool, "completed"), "arguments": arguments}
                yield _output(call, call.result)


def _function_call(call: str, tool: str, status: str) -> dict[str, Any]:
    named = {"type": "function_call", "id": f"fc_{_suffix(call)}", "call_id": call, "name": tool}
    return {**named, "arguments": "", "status": status}


def _output(call: ToolCall, result: ToolResult) -> dict[str, Any]:
    named = {"type": "function_call_output", "id": f"fco_{_suffix(call.id)}", "call_id": call.id}
    return {**named, "output": result.text, "status": "completed"}


def _input_message(message: Message) -> dict[str, Any]:
    content = [item for part in message.parts if (item := _input(part)) is not None]
    return {"type": "message", "id": message.id, "role": "user", "status": "completed", "content": content}


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


# ── the request ───────────────────────────────────────────────────────────────────────────────────


def _head(
    place: ReplyPlace, options: TurnOptions, messages: Sequence[Message], first: Message, created: float
) -> dict[str, Any]:
    asked = _asked(first)
    asked_options = options.options
    return {
        "id": response_id(place),
        "created_at": int(created),
        "model": options.agent or options.model or options.started_with or "",
        "previous_response_id": _before(place, options, messages) or asked.get("previous_response_id"),
        "conversation": {"id": place.conversation},
        "background": bool(asked.get("background")),
        "store": asked.get("store", True),
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


def _asked(first: Message) -> dict[str, Any]:
    request = first.metadata.get(MARK)
    return request if isinstance(request, dict) else {}


def _before(place: ReplyPlace, options: TurnOptions, messages: Sequence[Message]) -> str | None:
    """Return the previous response of the same turn, whose calls this one has the outputs of. None if it is
    the first."""
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
