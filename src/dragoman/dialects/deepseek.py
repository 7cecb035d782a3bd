"""`<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{…}<｜tool▁call▁end｜>`: DeepSeek V3.1.

V3 and R1 have the word `function` where the name is, and the name behind the separator, in front of fenced
JSON. Two more tokens stand around all calls. The distilled models write the tokens as ordinary characters,
with others in place of the ▁.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.grammar import Dialect
from dragoman.dialects.scanner import Reading, TextCall, Tools
from dragoman.dialects.wording import compact


def _token(words: str) -> tuple[str, ...]:
    return tuple(f"<｜{words.replace(' ', joint)}｜>" for joint in ("▁", "_", " ", "\\_"))


ALL, ALL_END = _token("tool calls begin"), _token("tool calls end")
ONE, ONE_END = _token("tool call begin"), _token("tool call end")
SEPARATOR = _token("tool sep")


class Deepseek(Dialect):
    name = "deepseek"
    how = (
        "To call tools, write each call between its markers and all of them between the outer ones, as "
        "below: the name of the tool, and its arguments as a JSON object. Write nothing behind them."
    )
    opens = (*ALL, *ONE)
    drops = (*ALL_END, *ONE_END, *SEPARATOR, *_token("end of sentence"))
    reserved = True

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        yield from cursor.space()
        if opener in ALL:
            yield from cursor.accept(*ONE)
        head, mark = yield from cursor.until(*SEPARATOR, *ONE_END, *ALL_END, *ONE)
        if mark not in SEPARATOR:
            yield from cursor.accept(*ONE_END)
            return [] if mark in ALL_END and not head.strip() else [self.bad("no name stands in it")]
        cursor.at += len(mark)
        yield from cursor.space()
        name = head
        if not (yield from cursor.sees("{")) and head.strip() in ("function", ""):
            name, _ = yield from cursor.until("\n", "```", "{", *ONE_END, *ALL_END)
        return (yield from self.named(cursor, name, "", ONE_END, (*ONE, *ALL_END)))

    def calls(self, calls: Sequence[TextCall]) -> str:
        written = "".join(
            f"{ONE[0]}{call.name}{SEPARATOR[0]}{compact(call.arguments)}{ONE_END[0]}" for call in calls
        )
        return f"{ALL[0]}{written}{ALL_END[0]}"
