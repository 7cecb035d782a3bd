"""Build Gemini bodies: frames of replies, bodies of requests."""

from __future__ import annotations

from typing import Any

from dragoman.messages.message import CallState, Part, Reasoning, Text, ToolCall, ToolResult
from dragoman.messages.request import Request, RequestMessage
from dragoman.wire.endpoint import Quirks
from dragoman.wire.gemini import WIRE
from tests.wire.histories import (
    ATTACHMENTS,
    MODEL,
    SIGNED,
)
from tests.wire.replies import Reply, decode, sse

SIGNATURE = SIGNED["gemini"][0]


def chunk(*parts: dict[str, Any], finish: str | None = None, **candidate: Any) -> dict[str, Any]:
    candidate |= {"finishReason": finish} if finish else {}
    return {"candidates": [{"content": {"role": "model", "parts": [*parts]}, "index": 0, **candidate}]}


def text(sent: str, **fields: Any) -> dict[str, Any]:
    return {"text": sent, **fields}


def call(name: str, arguments: Any, **fields: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": arguments}, **fields}


def thought(sent: str, signature: str | None = None) -> Reasoning:
    return Reasoning(sent, signature, "gemini", MODEL)


def read(*frames: object) -> Reply:
    return decode(WIRE(), [sse(*frames)])


REPLY = sse(
    chunk(text("Where is ", thought=True)),
    chunk(text("München?", thought=True)),
    chunk(text("One ", thoughtSignature="CiIB+/==")),
    chunk(text("moment 🐉.")),
    chunk(
        call("get_weather", {"city": "München"}, thoughtSignature="sig"),
        call("get_weather", {"city": "Rome"}),
    ),
    chunk(call("clock", None)),
    chunk(text(""), finish="STOP"),
    {"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 5, "thoughtsTokenCount": 4}},
)


def body_of(request: Request, **quirks: Any) -> dict[str, Any]:
    return WIRE(Quirks(**quirks)).encode(request, ATTACHMENTS)


def sent(*messages: RequestMessage, model: str = MODEL) -> list[dict[str, Any]]:
    contents: list[dict[str, Any]] = body_of(Request(model, messages))["contents"]
    return contents


def user(sent: str) -> RequestMessage:
    return RequestMessage("user", (Text(sent),))


def assistant(*parts: Part) -> RequestMessage:
    return RequestMessage("assistant", parts)


def done(id: str, sent: str = "21 °C", **fields: Any) -> ToolCall:
    return ToolCall(
        id, "get_weather", {"city": "Rome"}, state=CallState.COMPLETED, result=ToolResult(sent), **fields
    )


def asking(model: str = "gemini-3-pro", **fields: Any) -> dict[str, Any]:
    return body_of(Request(model, (user("Hi"),), **fields))
