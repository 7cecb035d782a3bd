"""Build chat completions bodies: frames of replies, bodies of requests."""

from __future__ import annotations

from typing import Any

from dragoman.messages.message import CallState, Text, ToolCall, ToolResult
from dragoman.messages.request import Request, RequestMessage
from dragoman.wire.endpoint import Quirks
from dragoman.wire.openai_chat import WIRE
from tests.wire.histories import (
    ATTACHMENTS,
    MODEL,
)
from tests.wire.replies import Reply, decode, sse

DONE = b"[DONE]"


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def read(*frames: object) -> Reply:
    return decode(WIRE(), [sse(*frames)])


def call(name: str, arguments: str, *, index: int = 0, id: str | None = None) -> dict[str, Any]:
    return {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}


def body_of(request: Request, **quirks: Any) -> dict[str, Any]:
    return WIRE(Quirks(**quirks)).encode(request, ATTACHMENTS)


def sent(*messages: RequestMessage, **quirks: Any) -> list[dict[str, Any]]:
    messages_sent: list[dict[str, Any]] = body_of(Request(MODEL, messages), **quirks)["messages"]
    return messages_sent


def user(text: str) -> RequestMessage:
    return RequestMessage("user", (Text(text),))


def done(id: str, text: str = "21 °C", **fields: Any) -> ToolCall:
    return ToolCall(
        id, "get_weather", {"city": "Rome"}, state=CallState.COMPLETED, result=ToolResult(text), **fields
    )
