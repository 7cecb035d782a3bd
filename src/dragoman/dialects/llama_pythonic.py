"""`[name(a=1, b="x"), other()]`, a list of Python calls with plain values: Llama 3.2, Llama 4, LFM2, ToolACE.

Such a list is a call if all its items are calls with named arguments; of those without any, and of those
that are malformed or cut off, only the ones that name a tool there is. Any other is text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from keyword import iskeyword

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.grammar import Dialect, tool_named
from dragoman.dialects.python_calls import read_python_calls
from dragoman.dialects.python_text import NotALiteral, PythonMachine, keywords, listed_calls
from dragoman.dialects.scanner import FoundCall, Reading, TextCall, Tools

TAGS = ("<|python_start|>", "<|python_tag|>", "<|tool_call_start|>")
ENDS = ("<|python_end|>", "<|tool_call_end|>", "<|eom_id|>", "<|eot_id|>", "<|eom|>", "<|eot|>")

_GAP = r"\s{0,64}"
_FIRST_NAME = re.compile(r"\[\s*([\w.]+)")


class LlamaPythonic(Dialect):
    name = "llama_pythonic"
    how = (
        "To call tools, write a list of calls as in Python, and nothing else. Name every argument; values "
        "are strings, numbers, True, False, None, lists and dicts."
    )
    opens: tuple[str, ...] = TAGS
    drops: tuple[str, ...] = ENDS
    bare: tuple[str, ...] = (r"\[", _GAP, r"[A-Za-z_]", r"[\w.]{0,99}", _GAP, r"\(")
    sure: tuple[str, ...] = bare

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        if opener:
            yield from cursor.space()
            if found := (yield from read_python_calls(self, cursor, tools)):
                return found
            if not (yield from cursor.sees("[")):
                yield from cursor.until(*ENDS, *TAGS)
                return [self.bad(f"no list of calls stands behind {opener}")]
        machine = PythonMachine(lines=bool(opener))
        text = yield from cursor.value(machine)
        first = _FIRST_NAME.match(text)
        known = bool(opener) or (first is not None and tool_named(first[1], tools) is not None)
        if machine.state != "whole":
            if known:
                yield from cursor.until(*ENDS, *TAGS, "\n\n")
                why = "the reply ends before it does" if machine.state == "cut" else "it is no Python"
                return [self.bad(why, first[1] if first else "")]
            return None
        calls = listed_calls(text)
        if not opener and (yield from cursor.sees("(")):  # a link, as Markdown has them
            return None
        if calls is None:
            return [self.bad("it is no list of calls", first[1] if first else "")] if known else None
        found = self.checked(calls)
        meant = known or all(isinstance(one, TextCall) and one.arguments for one in found)
        return found if meant else None

    def checked(self, calls: Sequence[tuple[str, ast.Call]]) -> list[FoundCall]:
        found: list[FoundCall] = []
        for name, call in calls:
            try:
                found.append(TextCall(name, keywords(call)))
            except NotALiteral as error:
                found.append(self.bad(str(error), name))
        return found

    def system(self, prompt: str, tools: Tools) -> str:
        return super().system(prompt, [replace(tool, name=_identifier(tool.name)) for tool in tools])

    def calls(self, calls: Sequence[TextCall]) -> str:
        return f"[{', '.join(written_call(call) for call in calls)}]"


def _identifier(name: str) -> str:
    """A name as Python can have it. Whoever looks the tool up knows that `-` and `_` are alike."""
    return re.sub(r"[^\w.]", "_", name)


def written_call(call: TextCall) -> str:
    named = [f"{key}={value!r}" for key, value in call.arguments.items() if _is_name(key)]
    others = {key: value for key, value in call.arguments.items() if not _is_name(key)}
    return f"{_identifier(call.name)}({', '.join([*named, *([f'**{others!r}'] if others else [])])})"


def _is_name(key: str) -> bool:
    return key.isidentifier() and not iskeyword(key)
