"""`<|plamo:begin_tool_name:plamo|>NAME…{…}<|plamo:end_tool_arguments:plamo|>` and more tokens: PLaMo 3."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.grammar import Dialect
from dragoman.dialects.scanner import Reading, TextCall, Tools
from dragoman.dialects.wording import compact


def _tokens(word: str) -> tuple[str, str]:
    return f"<|plamo:begin_{word}:plamo|>", f"<|plamo:end_{word}:plamo|>"


ALL, ALL_END = _tokens("tool_requests")
ONE, ONE_END = _tokens("tool_request")
NAME, NAME_END = _tokens("tool_name")
ARGUMENTS, ARGUMENTS_END = _tokens("tool_arguments")
THOUGHT, THOUGHT_END = _tokens("think")
FORMAT = "<|plamo:constrain|>json<|plamo:msg|>"


class Plamo(Dialect):
    name = "plamo"
    how = (
        "To call tools, write each call between its markers and all of them between the outer ones, as "
        "below: the name of the tool, and its arguments as a JSON object. Write nothing behind them."
    )
    opens = (NAME, THOUGHT)
    drops = (ALL, ALL_END, ONE, ONE_END, NAME_END, ARGUMENTS, ARGUMENTS_END, THOUGHT_END, "<|plamo:tag|>")
    thoughts = MappingProxyType({THOUGHT: THOUGHT_END})

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        name, mark = yield from cursor.until(NAME_END, ARGUMENTS, NAME, ONE_END, ALL_END)
        yield from cursor.accept(NAME_END)
        yield from cursor.space()
        if mark not in (NAME_END, ARGUMENTS) or not (yield from cursor.accept(ARGUMENTS)):
            return [self.bad(f"{ARGUMENTS} is missing", name)]
        yield from cursor.accept(FORMAT)
        return (yield from self.named(cursor, name, "", (ARGUMENTS_END,), (NAME, ONE_END, ALL_END)))

    def calls(self, calls: Sequence[TextCall]) -> str:
        written = "".join(
            f"{ONE}{NAME}{call.name}{NAME_END}{ARGUMENTS}{FORMAT}{compact(call.arguments)}{ARGUMENTS_END}{ONE_END}"
            for call in calls
        )
        return f"{ALL}{written}{ALL_END}"
