"""`<tool_call><function=NAME><parameter=KEY>value</parameter>…</function></tool_call>`: Qwen3-Coder.

The outer tag is often missing, at least the opening one. Values stand as they are, with nothing escaped: a
closing tag inside one is distinguished from its end by what follows. A value that holds another `<parameter=`
cannot be distinguished from one that was never closed, and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.grammar import Dialect, tool_named
from dragoman.dialects.scanner import Reading, TextCall, Tools
from dragoman.dialects.values import read_value, value_of
from dragoman.dialects.wording import compact, enclosed
from dragoman.messages.parts import Arguments

OPEN, CLOSE = "<tool_call>", "</tool_call>"
SEED = ("<seed:tool_call>", "</seed:tool_call>")  # Seed-OSS has these around a call
SEED_THOUGHT = ("<seed:think>", "</seed:think>")
FUNCTION, FUNCTION_END = "<function=", "</function>"
PARAMETER, PARAMETER_END = "<parameter=", "</parameter>"


class QwenCoder(Dialect):
    name = "qwen_coder"
    how = (
        "To call a tool, write its name and each argument between tags, as below; for several calls, "
        "several of these. Write values as they are, without quotes; lists and objects as JSON."
    )
    opens = (OPEN, FUNCTION, SEED_THOUGHT[0])
    drops = (CLOSE, FUNCTION_END, *SEED, SEED_THOUGHT[1])
    thoughts = MappingProxyType(dict([SEED_THOUGHT]))

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        if opener == OPEN:
            yield from cursor.space()
            if not (yield from cursor.accept(FUNCTION)):
                return (yield from self.tagged(cursor, OPEN, CLOSE))
        name, mark = yield from cursor.until(">", "<", "\n")
        if mark != ">":
            return (yield from self.stray(cursor, FUNCTION, FUNCTION_END))
        cursor.at += 1
        yield from cursor.space()
        if (yield from cursor.sees("{")):
            return (yield from self.named(cursor, name, "", (FUNCTION_END,), (FUNCTION, OPEN)))
        if not (yield from cursor.sees(PARAMETER, FUNCTION_END)):
            return (yield from self.stray(cursor, FUNCTION, FUNCTION_END))
        texts: dict[str, str] = {}
        while (yield from cursor.accept(PARAMETER)):
            key, _ = yield from cursor.until(">", "\n")
            yield from cursor.accept(">")
            value = yield from read_value(cursor, PARAMETER, PARAMETER_END, (FUNCTION_END, CLOSE))
            if value is None or key in texts:
                yield from cursor.until(FUNCTION_END, CLOSE, OPEN)
                yield from cursor.accept(FUNCTION_END)
                why = "is there twice" if key in texts else f"is not closed with {PARAMETER_END}"
                return [self.bad(f"its parameter {key} {why}", name)]
            texts[key] = value.removeprefix("\n").removesuffix("\n")
            yield from cursor.space()
        if not (yield from cursor.accept(FUNCTION_END)) and not (yield from cursor.sees(CLOSE)):
            yield from cursor.until(FUNCTION_END, CLOSE, OPEN)
            yield from cursor.accept(FUNCTION_END)
            return [self.bad(f"it is not closed with {FUNCTION_END}", name)]
        space = yield from cursor.space()
        if not (yield from cursor.accept(CLOSE)):
            cursor.back(len(space))
        tool = tool_named(name, tools)
        arguments: Arguments = {key: value_of(text, key, tool) for key, text in texts.items()}
        return [TextCall(name.strip(), arguments) if name.strip() else self.bad("it has no name")]

    def calls(self, calls: Sequence[TextCall]) -> str:
        return "\n".join(_written(call) for call in calls)

    def result(self, id: str, tool: str, text: str) -> str:
        return enclosed("tool_response", text)


def _written(call: TextCall) -> str:
    parameters = "".join(
        f"{PARAMETER}{key}>\n{value if isinstance(value, str) else compact(value)}\n{PARAMETER_END}\n"
        for key, value in call.arguments.items()
    )
    return f"{OPEN}\n{FUNCTION}{call.name}>\n{parameters}{FUNCTION_END}\n{CLOSE}"
