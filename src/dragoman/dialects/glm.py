"""`<tool_call>NAME<arg_key>k</arg_key><arg_value>v</arg_value>…</tool_call>`: GLM 4.5 and later.

Values stand as they are, with nothing escaped: a closing tag inside one is distinguished from its end by what
follows it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.grammar import Dialect, tool_named
from dragoman.dialects.scanner import Reading, TextCall, Tools
from dragoman.dialects.values import read_value, value_of
from dragoman.dialects.wording import compact, enclosed
from dragoman.messages.parts import Arguments

OPEN, CLOSE = "<tool_call>", "</tool_call>"
KEY, KEY_END, VALUE, VALUE_END = "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"

_NAME = re.compile(r"[\w.:/-]+")


class Glm(Dialect):
    name = "glm"
    how = (
        "To call a tool, write its name and each argument between tags, as below; for several calls, "
        "several of these. Write values as they are, without quotes; lists and objects as JSON."
    )
    opens = (OPEN,)
    drops = (CLOSE,)

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        yield from cursor.space()
        if (yield from cursor.sees("{")):
            return (yield from self.tagged(cursor, OPEN, CLOSE))
        name, _ = yield from cursor.until(KEY, CLOSE, OPEN, "\n")
        yield from cursor.space()
        if not _NAME.fullmatch(name.strip()) or not (yield from cursor.sees(KEY, CLOSE)):
            return (yield from self.stray(cursor, OPEN, CLOSE))
        texts: dict[str, str] = {}
        while (yield from cursor.accept(KEY)):
            key, _ = yield from cursor.until(KEY_END, CLOSE, OPEN)
            yield from cursor.accept(KEY_END)
            yield from cursor.space()
            begun = yield from cursor.accept(VALUE)
            value = (yield from read_value(cursor, KEY, VALUE_END, (CLOSE,))) if begun else None
            if value is None or key.strip() in texts:
                yield from cursor.until(CLOSE, OPEN)
                yield from cursor.accept(CLOSE)
                why = "is there twice" if key.strip() in texts else f"has no {VALUE} that is closed"
                return [self.bad(f"its argument {key.strip()} {why}", name)]
            texts[key.strip()] = value
            yield from cursor.space()
        if not (yield from cursor.accept(CLOSE)):
            yield from cursor.until(CLOSE, OPEN)
            yield from cursor.accept(CLOSE)
            return [self.bad(f"it is not closed with {CLOSE}", name)]
        tool = tool_named(name, tools)
        arguments: Arguments = {key: value_of(text, key, tool) for key, text in texts.items()}
        return [TextCall(name.strip(), arguments)]

    def calls(self, calls: Sequence[TextCall]) -> str:
        return "\n".join(_written(call) for call in calls)

    def result(self, id: str, tool: str, text: str) -> str:
        return enclosed("tool_response", text)


def _written(call: TextCall) -> str:
    arguments = "".join(
        f"\n{KEY}{key}{KEY_END}\n{VALUE}{value if isinstance(value, str) else compact(value)}{VALUE_END}"
        for key, value in call.arguments.items()
    )
    return f"{OPEN}{call.name}{arguments}\n{CLOSE}"
