"""Build Responses bodies: items of replies, bodies of requests."""

from __future__ import annotations

from typing import Any

from dragoman.messages.message import CallState, Text, ToolCall, ToolResult
from dragoman.messages.request import Request, RequestMessage
from dragoman.wire.endpoint import Quirks
from dragoman.wire.openai_responses import WIRE
from tests.wire.histories import (
    ATTACHMENTS,
    MODEL,
)
from tests.wire.replies import Reply, decode, sse


def happens(type: str, place: int | None = None, **fields: Any) -> dict[str, Any]:
    where = {} if place is None else {"output_index": place}
    return {"type": f"response.{type}", **where, **fields}


def message(*texts: str) -> dict[str, Any]:
    return {
        "type": "message",
        "id": "msg_1",
        "content": [{"type": "output_text", "text": text} for text in texts],
    }


def thought(**fields: Any) -> dict[str, Any]:
    return {"type": "reasoning", "id": "rs_1", "summary": [], **fields}


def call(name: str, arguments: str, **fields: Any) -> dict[str, Any]:
    ids = {"id": f"fc_{name}", "call_id": f"call_{name}"}
    return {"type": "function_call", **ids, "name": name, "arguments": arguments, **fields}


def over(status: str = "completed", **fields: Any) -> dict[str, Any]:
    return happens(status, response={"status": status, **fields})


def read(*frames: object) -> Reply:
    return decode(WIRE(), [sse(*frames)])


SEALED_THOUGHT = thought(encrypted_content="gAAAAAB==")


def body_of(request: Request, **quirks: Any) -> dict[str, Any]:
    return WIRE(Quirks(**quirks)).encode(request, ATTACHMENTS)


def sent(*messages: RequestMessage, **quirks: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = body_of(Request(MODEL, messages), **quirks)["input"]
    return items


def user(text: str) -> RequestMessage:
    return RequestMessage("user", (Text(text),))


def done(id: str, text: str = "21 °C") -> ToolCall:
    result = ToolResult(text)
    return ToolCall(id, "get_weather", {"city": "Rome"}, state=CallState.COMPLETED, result=result)
