"""Reads calls as Python has them, one after the other and in no list: `add(a=1, b=2)`.

Also behind a namespace (`functions.add(…)`, `default_api.add(…)`), in `print(…)`, with `.call`, behind a name
for what it gives (`x = add(…)`), and with all arguments in one object, as JavaScript has it.
"""

from __future__ import annotations

import ast
import re

from dragoman.dialects.cursor import Cursor, Form, Steps
from dragoman.dialects.grammar import Dialect, tool_named
from dragoman.dialects.loose_json import plain_name
from dragoman.dialects.python_text import NotALiteral, PythonMachine, keywords, listed_calls
from dragoman.dialects.scanner import FoundCall, TextCall, Tools
from dragoman.dialects.values import arguments_in_order
from dragoman.messages.request import ToolSpec

CALL: Form = (r"[A-Za-z_]", r"[\w.-]{0,99}", r"[ \t]{0,9}", r"\(")
_VARIABLE = (r"[A-Za-z_]", r"\w{0,60}")
_ASSIGNMENT: Form = (*_VARIABLE, r"[ \t]{0,4}", "=", r"[ \t]{0,4}")
ASSIGNED: Form = (*_ASSIGNMENT, *CALL)
COMMENT: tuple[str, ...] = ("#", r"[^\n]{0,200}", "\n", r"[ \t]{0,8}")
_ASIDE: tuple[Form, ...] = ((*"final_answer", r"\(", *_VARIABLE, r"\)"), COMMENT)

_NAME = re.compile(r"[\w.-]+")
_BETWEEN = re.compile(r"[ \t\r\n;,]*+")
_PRINT = "print"


def read_python_calls(
    dialect: Dialect, cursor: Cursor, tools: Tools | None, *, certain: bool = False
) -> Steps[list[FoundCall]]:
    """The calls that stand here, as many as follow each other; none if the first is of no tool there is.

    `certain` says that a marker stood in front of the first, so that it counts whatever it calls, and is an
    error if it cannot be read.
    """
    found: list[FoundCall] = []
    while begun := (yield from cursor.sees(CALL, ASSIGNED)):
        before = cursor.taken
        assigned = yield from cursor.accept(_ASSIGNMENT)
        name = _name_in(begun)
        if (not certain or found) and name != _PRINT and tool_named(name, tools) is None:
            cursor.back(len(assigned))
            break
        machine = PythonMachine(lines=certain and not found)
        text = yield from cursor.value(machine)
        one = _found(dialect, text, machine.state, tools, certain=certain and not found)
        if one is None:
            cursor.back(cursor.taken - before)
            break
        found.append(one)
        behind = before = cursor.taken
        yield from cursor.accept("()")  # `.call()` that was read already
        yield from cursor.run(_BETWEEN)
        while (yield from _read_aside(cursor, tools)):
            before = cursor.taken
            yield from cursor.run(_BETWEEN)
        if before > behind and not (yield from _is_program(cursor, tools)):
            cursor.back(cursor.taken - behind)
            break
        if not (yield from cursor.sees(CALL, ASSIGNED)):
            cursor.back(cursor.taken - before)
            break
    return found


def _name_in(begun: str) -> str:
    return plain_name(begun.rpartition("=")[2].strip("( \t")).removesuffix(".call")


def _is_program(cursor: Cursor, tools: Tools | None) -> Steps[bool]:
    """Whether a program ends here, or calls another tool. Else what looked like a comment is a heading."""
    if (yield from cursor.sees("```", "~~~", "</")) or cursor.at == len(cursor.text):
        return True
    name = _name_in((yield from cursor.sees(CALL, ASSIGNED)))
    return name == _PRINT or tool_named(name, tools) is not None


def _read_aside(cursor: Cursor, tools: Tools | None) -> Steps[bool]:
    """Read what a program does with what a call gave, or a comment; not what holds another call."""
    if (yield from cursor.accept(*_ASIDE)):
        return True
    if not (yield from cursor.sees((*_PRINT, r"\("))):
        return False
    before, machine = cursor.taken, PythonMachine()
    text = yield from cursor.value(machine)
    calls = listed_calls(f"[{text}]") if machine.state == "whole" else None
    if calls and not _calls_tool(calls[0][1], tools):
        return True
    cursor.back(cursor.taken - before)
    return False


def _calls_tool(program: ast.AST, tools: Tools | None) -> bool:
    called = (ast.unparse(one.func) for one in ast.walk(program) if isinstance(one, ast.Call))
    return any(tool_named(plain_name(name), tools) for name in called)


def _found(
    dialect: Dialect, text: str, state: str, tools: Tools | None, *, certain: bool
) -> FoundCall | None:
    named = _NAME.match(text.strip())
    name = plain_name(named[0] if named else "")
    calls = listed_calls(f"[{_identified(text)}]") if state == "whole" else None
    if calls is None or len(calls) != 1:
        if not certain and tool_named(name, tools) is None:
            return None
        why = "the reply ends before it does" if state == "cut" else "it is no call with plain values"
        return dialect.bad(why, name if name != _PRINT else "")
    ((name, call),) = calls
    if name == _PRINT and len(call.args) == 1 and isinstance(inner := call.args[0], ast.Call):
        return _found(dialect, ast.unparse(inner), state, tools, certain=certain)
    name = plain_name(name).removesuffix(".call")
    known = tool_named(name, tools)
    if known is None and not certain:
        return None
    named_call = _with_names(call, None if certain else known)
    try:
        return TextCall(known.name if known else name, keywords(named_call))
    except NotALiteral as error:
        return dialect.bad(str(error), name)


def _identified(text: str) -> str:
    """A name with a hyphen, as tools may have them, is no name in Python."""
    head, bracket, rest = text.partition("(")
    return head.replace("-", "_") + bracket + rest


def _with_names(call: ast.Call, tool: ToolSpec | None) -> ast.Call:
    """All arguments in one object: its keys are their names. Of a tool there is, also in its order."""
    if len(call.args) == 1 and isinstance(call.args[0], ast.Dict) and not call.keywords:
        return ast.Call(call.func, [], [ast.keyword(None, call.args[0])])
    names = arguments_in_order(len(call.args), tool) if tool and call.args else None
    given = [ast.keyword(name, value) for name, value in zip(names or (), call.args, strict=False)]
    return ast.Call(call.func, [], [*given, *call.keywords]) if names else call
