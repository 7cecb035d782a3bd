"""Build Messages bodies: frames of replies, bodies of requests."""

from __future__ import annotations

from typing import Any

from dragoman.messages.message import CallState, Part, Text, ToolCall, ToolResult
from dragoman.messages.request import Request, RequestMessage
from dragoman.wire.anthropic_messages import WIRE
from dragoman.wire.endpoint import Quirks
from tests.wire.histories import (
    ATTACHMENTS,
    MODEL,
    SIGNED,
)
from tests.wire.replies import Reply, decode, sse

NAME = "anthropic_messages"
SIGNATURE = SIGNED[NAME][0]


def start(index: int, type: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": type, **fields}}


def delta(index: int, type: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": type, **fields}}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def ended(word: str | None, **usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": word}, "usage": usage}


def text_block(text: str, index: int = 0) -> list[dict[str, Any]]:
    return [start(index, "text", text=""), delta(index, "text_delta", text=text), stop(index)]


def called(name: str, *pieces: str, index: int = 0, **fields: Any) -> list[dict[str, Any]]:
    return [
        start(index, "tool_use", id=f"toolu_{index}", name=name, **{"input": {}, **fields}),
        *(delta(index, "input_json_delta", partial_json=piece) for piece in pieces),
        stop(index),
    ]


def read(*frames: object) -> Reply:
    return decode(WIRE(), [sse(*frames)])


REPLY = sse(
    {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}},
    start(0, "thinking", thinking="", signature=""),
    {"type": "ping"},
    delta(0, "thinking_delta", thinking="Where is "),
    delta(0, "thinking_delta", thinking="München?"),
    delta(0, "signature_delta", signature="EqQB"),
    delta(0, "signature_delta", signature="+/="),
    stop(0),
    start(1, "redacted_thinking", data="EtgB=="),
    stop(1),
    *text_block("One moment 🐉.", 2),
    *called("get_weather", "", '{"city":', ' "München"}', index=3),
    *called("clock", "", index=4),
    ended("tool_use", output_tokens=5),
    {"type": "message_stop"},
)


SEARCH: dict[str, Any] = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "rain"},
}
FOUND: dict[str, Any] = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"url": "x"}],
}


def body_of(request: Request, **quirks: Any) -> dict[str, Any]:
    return WIRE(Quirks(**quirks)).encode(request, ATTACHMENTS)


def sent(*messages: RequestMessage, **extra: Any) -> list[dict[str, Any]]:
    messages_sent: list[dict[str, Any]] = body_of(Request(MODEL, messages, extra=extra))["messages"]
    return [
        {**message, "content": [unmarked(one) for one in message["content"]]} for message in messages_sent
    ]


def unmarked(block: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key != "cache_control"}


def user(text: str) -> RequestMessage:
    return RequestMessage("user", (Text(text),))


def assistant(*parts: Part) -> RequestMessage:
    return RequestMessage("assistant", parts)


def done(id: str, text: str = "21 °C", **fields: Any) -> ToolCall:
    return ToolCall(
        id, "get_weather", {"city": "Rome"}, state=CallState.COMPLETED, result=ToolResult(text), **fields
    )


def blocks_of(body: dict[str, Any], type: str) -> list[dict[str, Any]]:
    return [block for turn in body["messages"] for block in turn["content"] if block["type"] == type]


def cache_marks(value: object) -> int:
    if isinstance(value, list):
        return sum(map(cache_marks, value))
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(map(cache_marks, value.values()))
    return 0


def thinking(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": SIGNATURE}


WITH_SEARCH = {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}
