"""Reads `<function=NAME><parameter=KEY>value</parameter>…</function>`, or JSON in place of the parameters.

Values stand as they are, with nothing escaped: a closing tag inside one is distinguished from its end by what
follows. Without a tag around it, a call without arguments counts only in a line of its own: in a sentence it
is an example.
"""

from __future__ import annotations

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.grammar import Dialect, ends_line, tool_named
from dragoman.dialects.scanner import Reading, TextCall, Tools
from dragoman.dialects.values import may_have, read_value, value_of, within_lines
from dragoman.messages.parts import Arguments

OPEN, CLOSE = "<tool_call>", "</tool_call>"
FUNCTION, FUNCTION_END = "<function=", "</function>"
PARAMETER, PARAMETER_END = "<parameter=", "</parameter>"

_BEHIND_NAME = " \t=,:("  # or nothing at all: what Llama now and then puts in the place of `>`
_ENDS = (FUNCTION_END, *(f"{one}{FUNCTION_END}" for one in (">", ")", ")>")))


def read_function(dialect: Dialect, cursor: Cursor, tools: Tools | None, *, wrapped: bool) -> Reading:
    """`<function=` was read. `wrapped` says that it stands in another tag, and so is certainly meant."""
    alone, start = cursor.fresh, cursor.taken
    name, mark = yield from cursor.until(">", "<", "\n", "{")
    name = (name.rstrip(_BEHIND_NAME) if mark == "{" else name).strip("\"'")
    if mark not in (">", "{") or (mark == "{" and tool_named(name, tools) is None):
        return (yield from dialect.stray(cursor, FUNCTION, FUNCTION_END, start))
    cursor.at += mark == ">"
    yield from cursor.space()
    tool = tool_named(name, tools)
    meant = wrapped or alone or tool is not None or not tools
    if meant and (yield from cursor.sees("{")):
        return (yield from dialect.named(cursor, name, "", _ENDS, (FUNCTION, OPEN)))
    begins = yield from cursor.sees(PARAMETER, FUNCTION_END)
    if not begins or not meant:
        return (yield from dialect.stray(cursor, FUNCTION, FUNCTION_END, start)) if meant else None
    texts: dict[str, str] = {}
    while (yield from cursor.accept(PARAMETER)):
        key, _ = yield from cursor.until(">", "\n")
        key = key.strip("\"'")
        yield from cursor.accept(">")
        value = yield from read_value(
            cursor,
            PARAMETER,
            PARAMETER_END,
            (FUNCTION_END, CLOSE),
            lambda new: new not in texts and may_have(new, tool, tools),
        )
        if value is None or key in texts:
            yield from cursor.until(FUNCTION_END, CLOSE, OPEN)
            yield from cursor.accept(FUNCTION_END)
            why = "is there twice" if key in texts else f"is not closed with {PARAMETER_END}"
            return [dialect.bad(f"its parameter {key} {why}", name)]
        texts[key] = within_lines(value)
        yield from cursor.space()
    if not (yield from cursor.accept(FUNCTION_END)) and not (yield from cursor.sees(CLOSE)):
        yield from cursor.until(FUNCTION_END, CLOSE, OPEN)
        yield from cursor.accept(FUNCTION_END)
        return [dialect.bad(f"it is not closed with {FUNCTION_END}", name)]
    if not texts and not wrapped and not (alone and (yield from ends_line(cursor))):
        return None
    space = yield from cursor.space()
    if not (yield from cursor.accept(CLOSE)):
        cursor.back(len(space))
    arguments: Arguments = {key: value_of(text, key, tool) for key, text in texts.items()}
    return [TextCall(name.strip(), arguments) if name.strip() else dialect.bad("it has no name")]
