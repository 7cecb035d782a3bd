"""`<tool_call>{"name": …, "arguments": {…}}</tool_call>`: Hermes, Qwen and many others."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.grammar import Dialect
from dragoman.dialects.scanner import Reading, TextCall, Tools
from dragoman.dialects.tool_call_tag import PLAIN, read_tool_call
from dragoman.dialects.wording import compact, described, enclosed

OPEN, CLOSE = "<tool_call>", "</tool_call>"


class Hermes(Dialect):
    name = "hermes"
    how = (
        f"To call a tool, write a JSON object with its name and its arguments between {OPEN} and {CLOSE}; "
        "for several calls, several of these."
    )
    opens = (OPEN,)
    drops = (CLOSE,)

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        return (yield from read_tool_call(self, cursor, PLAIN, tools, lone_name=False))

    def calls(self, calls: Sequence[TextCall]) -> str:
        return "\n".join(f"{OPEN}\n{described(call, id=False)}\n{CLOSE}" for call in calls)

    def result(self, id: str, tool: str, text: str) -> str:
        return enclosed("tool_response", compact({"name": tool, "content": text}))
