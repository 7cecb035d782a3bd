"""The request of all contestants that only use the wire: one question, with a tool to call."""

from __future__ import annotations

from contest import model

from dragoman.messages.message import Text
from dragoman.messages.request import Request, RequestMessage, ToolSpec

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}


def request() -> Request:
    add = ToolSpec("add", "Add two numbers.", SCHEMA)
    return Request(model(), (RequestMessage("user", (Text("go"),)),), tools=(add,))
