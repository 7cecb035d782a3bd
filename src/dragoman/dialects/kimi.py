"""`<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`: Kimi K2.

All calls of a reply stand between two more tokens. `functions.NAME:0` is the call's id as well as its name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.grammar import Dialect
from dragoman.dialects.scanner import Reading, TextCall, Tools
from dragoman.dialects.wording import compact

ALL, ALL_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
ONE, ONE_END = "<|tool_call_begin|>", "<|tool_call_end|>"
ARGUMENTS = "<|tool_call_argument_begin|>"

_ID = re.compile(r"(?:functions\.)?(?P<name>.*?)(?::\d+)?", re.DOTALL)


class Kimi(Dialect):
    name = "kimi"
    how = (
        "To call tools, write each call between its markers and all of them between the outer ones, as "
        "below: `functions.`, the name of the tool, a colon, how many calls there were before it, and its "
        "arguments as a JSON object. Write nothing behind them."
    )
    opens = (ONE,)
    drops = (ALL, ALL_END, ONE_END, ARGUMENTS)
    reserved = True
    ids = "kimi"

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        id, mark = yield from cursor.until(ARGUMENTS, ONE_END, ALL_END, ONE)
        found = _ID.fullmatch(id.strip())
        name = found["name"] if found else ""
        if mark != ARGUMENTS:
            yield from cursor.accept(ONE_END)
            return [self.bad(f"{ARGUMENTS} is missing", name)]
        cursor.at += len(ARGUMENTS)
        return (yield from self.named(cursor, name, id.strip(), (ONE_END,), (ONE, ALL_END)))

    def calls(self, calls: Sequence[TextCall]) -> str:
        written = "".join(
            f"{ONE}{_id(call, place)}{ARGUMENTS}{compact(call.arguments)}{ONE_END}"
            for place, call in enumerate(calls)
        )
        return f"{ALL}{written}{ALL_END}"

    def result(self, id: str, tool: str, text: str) -> str:
        return f"## Return of {id}\n{text}"


def _id(call: TextCall, place: int) -> str:
    return call.id if call.id.startswith("functions.") else f"functions.{call.name}:{place}"
