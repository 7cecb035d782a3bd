"""Serve chat completions: the route, the body of a request, and the answer in chunks or whole."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import APIRouter, Header
from pydantic import Field, JsonValue
from starlette.requests import Request
from starlette.responses import Response

from dragoman.conversation.sharing import Right
from dragoman.messages.endings import REFUSED
from dragoman.messages.usage import Usage
from dragoman.server.context import Context, TheContext
from dragoman.server.event_stream import STOPS, EventStream
from dragoman.server.problems import without_paths
from dragoman.server.protocols.event_reader import CallForClient, PartDelta
from dragoman.server.protocols.openai.api_errors import (
    NEVER_AGAIN,
    ApiRefusal,
    OpenAIRoute,
    error_body,
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
    suffix_of,
)
from dragoman.server.protocols.openai.reply import (
    STOPPED,
    WELCOME,
    OutputOpened,
    Piece,
    ReplyOver,
    ReplyReader,
    TextBecameReasoning,
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
    CallerMessage,
    CallOutput,
    Function,
    Lenient,
    Refusals,
    UserEntry,
    read_content,
    refuse,
    text_alone,
)


class PromptMessage(CallerMessage):
    role: Literal["system", "developer"]
    content: AnyContent


class UserMessage(CallerMessage):
    role: Literal["user"]
    content: AnyContent


class FunctionOfCall(Function):
    arguments: str = ""


class CallOfMessage(Lenient):
    id: str
    type: Literal["function"] = "function"
    function: FunctionOfCall


class AssistantMessage(Lenient):
    role: Literal["assistant"]
    content: AnyContent | None = None
    refusal: str | None = None
    tool_calls: Annotated[list[CallOfMessage] | None, Field(max_length=MANY)] = None
    # refused fields
    audio: JsonValue = None
    function_call: JsonValue = None


class ToolMessage(CallerMessage):
    role: Literal["tool"]
    tool_call_id: str
    content: AnyContent


ChatMessage: TypeAlias = Annotated[
    PromptMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")
]


class StreamOptions(Lenient):
    include_usage: bool | None = None


_REFUSALS: Refusals = (
    ("n", lambda n: n != 1, "Dragoman gives one answer per request. Set n to 1."),
    ("logprobs", bool, "Dragoman does not return log probabilities."),
    ("top_logprobs", bool, "Dragoman does not return log probabilities."),
    ("logit_bias", bool, "Dragoman does not support logit_bias."),
    ("modalities", lambda kinds: kinds != ["text"], "Answers are text only."),
    ("audio", bool, "Answers are text only."),
    ("prediction", bool, "Dragoman does not support predicted outputs."),
    ("functions", bool, "`functions` is deprecated. Send them as `tools`."),
    ("function_call", bool, "`function_call` is deprecated. Send `tool_choice`."),
    (
        "web_search_options",
        bool,
        "Dragoman does not offer the provider's search. Give the agent a search tool.",
    ),
    ("moderation", bool, "Dragoman does not offer moderation."),
)


_REFUSALS_OF_ANSWERS: Refusals = (
    ("audio", bool, "Dragoman does not know audio by ID. Send its text."),
    ("function_call", bool, "`function_call` is deprecated. Send `tool_calls`."),
)


class ChatBody(AnswerOptions):
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MANY)]
    stream_options: StreamOptions | None = None
    response_format: AnswerFormat | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    # refused fields
    n: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    logit_bias: JsonValue = None
    modalities: list[str] | None = None
    audio: JsonValue = None
    prediction: JsonValue = None
    functions: JsonValue = None
    function_call: JsonValue = None
    web_search_options: JsonValue = None
    moderation: JsonValue = None

    def request_options(self) -> dict[str, JsonValue]:
        refuse(self, _REFUSALS)
        stop: JsonValue = [self.stop] if isinstance(self.stop, str) else [*self.stop] if self.stop else None
        return self.options(
            {
                "max_tokens": self.max_completion_tokens or self.max_tokens,
                "presence_penalty": self.presence_penalty or None,  # 0 has no effect
                "frequency_penalty": self.frequency_penalty or None,
                "seed": self.seed,
                "stop": stop,
                "reasoning_effort": self.reasoning_effort,
                "verbosity": self.verbosity,
            }
        )

    async def brought(self, context: Context) -> Brought:
        found = Brought()
        for at, message in enumerate(self.messages):
            param = f"messages[{at}].content"
            match message:
                case PromptMessage(content=content):
                    found.system.append(text_alone(content, param))
                case UserMessage(content=content):
                    found.add(UserEntry(await read_content(content, param, context)))
                case ToolMessage(content=content, tool_call_id=call):
                    found.add(CallOutput(call, await read_content(content, param, context)))
                case AssistantMessage():
                    refuse(message, _REFUSALS_OF_ANSWERS)
                    text = text_alone(message.content, param) or message.refusal or ""
                    calls = [_brought_call(call) for call in message.tool_calls or ()]
                    found.add(AssistantEntry((text,) if text else (), tuple(calls)))
        if not found.outputs and not found.sent:
            what = "The last message must be from the user, or have the results of the calls before it."
            raise ApiRefusal(what, "messages", code="invalid_value")
        return found


def _brought_call(made: CallOfMessage) -> BroughtCall:
    return BroughtCall(made.id, made.function.name, made.function.arguments)


# ── the answer ────────────────────────────────────────────────────────────────────────────────────


BREAK = "\n\n"  # between the text before one of the server's calls and the text after it


@dataclass(slots=True)
class ChatCompletion:
    """One answer. `chunks` yields its stream, and `whole` returns the final object."""

    id: str
    model: str
    created: int
    with_usage: bool = False  # whether the last chunk contains the usage
    over: ReplyOver | None = None
    _texts: list[str] = field(default_factory=list)
    _message: str = ""  # the message of the last text
    _begins: int = 0  # the index where its texts begin
    _calls: list[dict[str, Any]] = field(default_factory=list)

    def begin(self) -> dict[str, Any]:
        return self._chunk({"role": "assistant", "content": ""})

    def chunks(self, piece: Piece) -> Iterator[dict[str, Any]]:
        match piece:
            case OutputOpened(kind="text", message=message, continues=continues):
                if message != self._message:
                    self._message, self._begins = message, len(self._texts)
                if self._texts and not continues:
                    yield self._text(BREAK)
            case PartDelta(kind="text", text=text):
                yield self._text(text)
            case TextBecameReasoning(message=message) if message == self._message:
                del self._texts[self._begins :]
            case CallForClient():
                call = _call_object(piece)
                yield self._chunk({"tool_calls": [{"index": len(self._calls), **call}]})
                self._calls.append(call)
            case ReplyOver(outcome="completed" | "tool_calls"):
                self.over = piece
                yield self._chunk({}, finish_of(piece.finish))
                if self.with_usage:
                    yield {
                        **self._head("chat.completion.chunk"),
                        "choices": [],
                        "usage": usage_of(piece.usage),
                    }
            case ReplyOver():
                self.over = piece
                yield {"error": failure_body(piece)}
            case _:
                pass

    def whole(self) -> dict[str, Any]:
        over = self.over or ReplyOver("completed")
        message: dict[str, Any] = {
            "role": "assistant",
            "content": "".join(self._texts) if self._texts or not self._calls else None,
            "refusal": None,
        }
        if self._calls:
            message["tool_calls"] = self._calls
        choice = {"index": 0, "message": message, "finish_reason": finish_of(over.finish), "logprobs": None}
        return {**self._head("chat.completion"), "choices": [choice], "usage": usage_of(over.usage)}

    def _text(self, text: str) -> dict[str, Any]:
        self._texts.append(text)
        return self._chunk({"content": text})

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        chunk = {**self._head("chat.completion.chunk"), "choices": [choice]}
        return chunk | {"usage": None} if self.with_usage else chunk


def _call_object(handed: CallForClient) -> dict[str, Any]:
    arguments = json.dumps(handed.arguments, ensure_ascii=False)
    function = {"name": handed.tool, "arguments": arguments}
    return {"id": handed.call, "type": "function", "function": function}


def finish_of(finish: str) -> str:
    if finish in ("length", "context"):
        return "length"
    if finish in REFUSED:
        return "content_filter"
    return "tool_calls" if finish == "tool_calls" else "stop"


def usage_of(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def status_of(over: ReplyOver) -> int:
    """Return the HTTP status of a failed reply."""
    if over.outcome == "cancelled":
        return 409
    if over.kind in REFUSED:
        return 400
    return {"context_overflow": 400, "rate_limit": 429, STOPPED: 503}.get(over.kind, 502)


def failure_body(over: ReplyOver) -> dict[str, Any]:
    codes = {"context_overflow": "context_length_exceeded", **dict.fromkeys(REFUSED, "content_filter")}
    code = "cancelled" if over.outcome == "cancelled" else codes.get(over.kind, over.kind)
    return error_body(status_of(over), without_paths(over.error), code=code)


# ── the route ─────────────────────────────────────────────────────────────────────────────────────


router = APIRouter(route_class=OpenAIRoute, include_in_schema=False)
_DONE = b"data: [DONE]\n\n"


@router.post("/chat/completions")
async def create_completion(
    context: TheContext,
    request: Request,
    body: ChatBody,
    x_dragoman_conversation: Annotated[str | None, Header(max_length=100)] = None,
) -> Response:
    """Answer a message or the outputs of calls. A client that disconnects cancels the turn."""
    output = body.response_format.spec("response_format.json_schema") if body.response_format else None
    brought = await body.brought(context)
    options = await options_for(context, body, body.request_options(), brought.prompt, output)
    metadata = body.metadata or {}
    conversation = x_dragoman_conversation or metadata.get("conversation")
    if conversation is not None:
        await context.check(conversation, Right.TAKE_PART)
    to_store: dict[str, JsonValue] = {"metadata": {**metadata}}
    key = await attempt_of(request, context.runtime.services.clock(), conversation)
    wanted = ReplyRequest(
        brought, options, conversation, metadata=to_store, key=key, retried=is_retry(request)
    )
    place = await begin(context, wanted)
    row = await context.runtime.store.turn(place.turn)
    reader = await reader_of(context.runtime, place)
    with_usage = bool(body.stream and body.stream_options and body.stream_options.include_usage)
    completion = ChatCompletion(
        f"chatcmpl-{suffix_of(place)}", body.model, int(row.created), with_usage=with_usage
    )
    if body.stream:
        chunks = cancelled_if_left(context, place, reader, _chunks(context, place, reader, completion))
        return EventStream(
            chunks,
            context.publisher.streams,
            headers_of(place),
            reader=context.reader(place.conversation),
            farewell=_farewell,
        )
    await while_connected(request, _write(context, place, reader, completion), lambda: cancel(context, place))
    return _answer(completion, place)


def _farewell() -> bytes:
    return frame({"error": error_body(503, str(STOPS), code="server_stops")})


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
    # A client that retried automatically would repeat the actions of the turn.
    failed = {"error": failure_body(over)}
    return json_response(failed, status_of(over), {**headers_of(place), **NEVER_AGAIN})
