"""Python calls with plain values: `[name(a=1), other()]` of Llama 4 and LFM2, and those of OLMo 3.

A list without a marker is a call if the reply begins with it and all its items are calls with named
arguments; of those without any, and of those that are malformed or cut off, only the ones that name a tool.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from keyword import iskeyword

from dragoman.dialects.cursor import Cursor, Form
from dragoman.dialects.grammar import Dialect, tool_named
from dragoman.dialects.literals import NotALiteral, PythonMachine, keywords, listed_calls
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
    begins: tuple[Form, ...] = ((r"\[", _GAP, r"[A-Za-z_]", r"[\w.]{0,99}", _GAP, r"\("),)

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        if opener:
            yield from cursor.space()
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


OPEN, CLOSE = "<function_calls>", "</function_calls>"

_BEGINS = (r"[A-Za-z_]", r"[\w.]{0,99}", r"\s{0,64}", r"\(")
_ANY_NAME = re.compile(r"[\w.]+")


class Olmo(LlamaPythonic):
    name = "olmo"
    how = (
        f"To call tools, write the calls as in Python between {OPEN} and {CLOSE}, each in a line of its own. "
        "Name every argument; values are strings, numbers, True, False, None, lists and dicts."
    )
    opens = (OPEN,)
    drops = (CLOSE,)
    begins = ()

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        found: list[FoundCall] = []
        space = yield from cursor.space()
        if not (yield from cursor.sees(_BEGINS, "[")):
            return (yield from self.stray(cursor, OPEN, CLOSE))
        while (yield from cursor.sees(_BEGINS, "[")):
            machine = PythonMachine(lines=True)
            text = yield from cursor.value(machine)
            calls = listed_calls(text if text.startswith("[") else f"[{text}]")
            if machine.state != "whole" or calls is None:
                yield from cursor.until(CLOSE, OPEN)
                yield from cursor.accept(CLOSE)
                why = "the reply ends before it does" if machine.state == "cut" else "it is no Python"
                name = _ANY_NAME.search(text)
                return [*found, self.bad(why, name[0] if name else "")]
            found += self.checked(calls)
            space = yield from cursor.space()
        if (yield from self.closed(cursor, space, (CLOSE,), (OPEN,))):
            return found
        return [self.bad("something else stands behind it", found[-1].name)]

    def calls(self, calls: Sequence[TextCall]) -> str:
        written = "\n".join(map(written_call, calls))
        return f"{OPEN}{written}{CLOSE}"
