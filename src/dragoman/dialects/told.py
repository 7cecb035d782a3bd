"""The two dialects that were made for prompts: any model can be told to write them.

`xml_tag` is `<tool_code>{"name": …, "arguments": {…}}</tool_code>` for each call, `json_strict` one object
`{"tool_calls": [{"name": …, "arguments": {…}}]}`. Any other object is text.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.grammar import Dialect, described, name_in
from dragoman.dialects.literals import Members, read_json
from dragoman.dialects.scanner import Reading, TextCall, Tools
from dragoman.wire.calls import parse_arguments

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


class JsonStrict(Dialect):
    name = "json_strict"
    how = (
        "To call tools, write one JSON object and nothing else. Its `tool_calls` is a list of calls, each "
        "with the name of a tool and its arguments."
    )
    bare = (r"\{", r"\s{0,64}", '"')

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        payload = yield from read_json(cursor, _lists_calls)
        if not payload.certain:
            cursor.back(payload.swallowed)
            return None
        whole = parse_arguments(payload.text) if not payload.flaw else None
        entries = whole.get("tool_calls") if whole else None
        if isinstance(entries, list):
            return [self.entry(entry) for entry in entries]
        if payload.flaw:
            yield from cursor.until("\n\n", "```")
        return [self.bad(payload.flaw or "its JSON cannot be read", name_in(payload.text))]

    def calls(self, calls: Sequence[TextCall]) -> str:
        return f'{{"tool_calls": [{", ".join(described(call) for call in calls)}]}}'


def _lists_calls(members: Members) -> bool:
    return members.get("tool_calls") == "["
