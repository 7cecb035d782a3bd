"""`<tool_code>{"name": …, "arguments": {…}}</tool_code>`, one pair of tags for each call."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.grammar import Dialect
from dragoman.dialects.scanner import Reading, TextCall, Tools
from dragoman.dialects.wording import described

OPEN, CLOSE = "<tool_code>", "</tool_code>"


class XmlTag(Dialect):
    name = "xml_tag"
    how = (
        f"To call a tool, write a JSON object with its name and its arguments between {OPEN} and {CLOSE}; "
        "for several calls, several of these."
    )
    opens = (OPEN,)
    drops = (CLOSE,)

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        return (yield from self.tagged(cursor, OPEN, CLOSE))

    def calls(self, calls: Sequence[TextCall]) -> str:
        return "\n".join(f"{OPEN}{described(call)}{CLOSE}" for call in calls)
