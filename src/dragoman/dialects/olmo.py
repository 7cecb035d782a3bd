"""`<function_calls>name(a=1)</function_calls>`, Python calls with plain values, each in a line: OLMo 3."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.llama_pythonic import LlamaPythonic, written_call
from dragoman.dialects.python_text import PythonMachine, listed_calls
from dragoman.dialects.scanner import FoundCall, Reading, TextCall, Tools

OPEN, CLOSE = "<function_calls>", "</function_calls>"

_BEGINS = (r"[A-Za-z_]", r"[\w.]{0,99}", r"\s{0,64}", r"\(")
_NAME = re.compile(r"[\w.]+")


class Olmo(LlamaPythonic):
    name = "olmo"
    how = (
        f"To call tools, write the calls as in Python between {OPEN} and {CLOSE}, each in a line of its own. "
        "Name every argument; values are strings, numbers, True, False, None, lists and dicts."
    )
    opens = (OPEN,)
    drops = (CLOSE,)
    bare = ()
    sure = ()

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
                name = _NAME.search(text)
                return [*found, self.bad(why, name[0] if name else "")]
            found += self.checked(calls)
            space = yield from cursor.space()
        if (yield from self.closed(cursor, space, (CLOSE,), (OPEN,))):
            return found
        return [self.bad("something else stands behind it", found[-1].name)]

    def calls(self, calls: Sequence[TextCall]) -> str:
        written = "\n".join(map(written_call, calls))
        return f"{OPEN}{written}{CLOSE}"
