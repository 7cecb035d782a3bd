"""`[TOOL_CALLS] [{"name": …, "arguments": {…}}]`, or `[TOOL_CALLS]NAME[ARGS]{…}` for each: Mistral."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import MappingProxyType

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.grammar import Dialect, name_in, tool_named
from dragoman.dialects.json_text import read_json
from dragoman.dialects.scanner import Reading, TextCall, Tools
from dragoman.dialects.wording import compact

OPEN, ID, ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
THOUGHT, THOUGHT_END = "[THINK]", "[/THINK]"

_NAME = re.compile(r"[\w.:/-]{1,99}")


class Mistral(Dialect):
    name = "mistral"
    how = (
        f"To call tools, write {OPEN} and a JSON list of calls, each with the name of a tool and its "
        "arguments. Write nothing behind it."
    )
    opens = (OPEN, THOUGHT)
    drops = (ID, ARGUMENTS, THOUGHT_END)
    thoughts = MappingProxyType({THOUGHT: THOUGHT_END})
    reserved = True
    ids = "mistral"

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        yield from cursor.space()
        if (yield from cursor.sees(OPEN)):
            return []
        if (yield from cursor.sees("[{", "{", ("\\[", "\\s{1,64}", "[{\\]]"), "[]")):
            payload = yield from read_json(cursor)
            if payload.flaw:
                yield from cursor.until(OPEN)
                return [self.bad(payload.flaw, name_in(payload.text))]
            return self.entries(payload)
        name, mark = yield from cursor.until(ARGUMENTS, ID, "{", OPEN, "\n")
        id = ""
        if (yield from cursor.accept(ID)):
            id, mark = yield from cursor.until(ARGUMENTS, "{", OPEN, "\n")
        if mark not in (ARGUMENTS, "{"):
            whole = bool(mark) or not cursor.broken_off
            if whole and _NAME.fullmatch(name.strip()) and (not tools or tool_named(name, tools)):
                return [self.called(name, "", id.strip())]  # without arguments
            return [self.bad("no name and no arguments stand behind the marker")]
        yield from cursor.accept(ARGUMENTS)
        return (yield from self.named(cursor, name, id.strip(), (), (OPEN,)))

    def calls(self, calls: Sequence[TextCall]) -> str:
        written = (
            compact({"name": call.name, "arguments": call.arguments, **({"id": call.id} if call.id else {})})
            for call in calls
        )
        return f"{OPEN} [{', '.join(written)}]"
