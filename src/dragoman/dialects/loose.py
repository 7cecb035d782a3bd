"""Calls in forms that no dialect claims: behind a tag or a token nobody knows, `Action:` or `Tool:`, a name.

They count only if they name tools there are. What names none is text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman.dialects.action import BOLD_ACTION, LABELS, read_action
from dragoman.dialects.cursor import BLANK, Cursor, Form, Steps, marks
from dragoman.dialects.grammar import Dialect, ends_line, tool_named
from dragoman.dialects.json_text import read_json
from dragoman.dialects.loose_json import AROUND, NAMES, loose_calls, plain_name
from dragoman.dialects.python_calls import ASSIGNED, CALL, COMMENT, read_python_calls
from dragoman.dialects.python_text import NotALiteral, PythonMachine, keywords, listed_calls, plain_value
from dragoman.dialects.scanner import BadCall, FoundCall, Reading, TextCall, Tools
from dragoman.dialects.wording import compact
from dragoman.wire.thinking import END_TOKENS

_GAP = r"\s{0,64}"
_BEGINS_JSON = (_GAP, r"[\[{]", _GAP, r"[\[{\"']")
_PYTHON_DICT: Form = (r"\{", _GAP, "'")
_PYTHON_DICTS: Form = (r"\[", _GAP, *_PYTHON_DICT)
_TAG: Form = ("<", r"[|｜]?", r"[A-Za-z]", r"[\w:.▁-]{0,40}", r"[|｜]?", ">", *_BEGINS_JSON)
_BRACKETS: Form = (r"\[", r"[A-Z]", r"[A-Z_]{2,30}", r"\]", *_BEGINS_JSON)
_OBJECT = (_GAP, r"\{", _GAP, r'["}]')
_NAMED: Form = (r"[A-Za-z_]", r"[\w.:-]{0,99}", *_OBJECT)
_WITH_MARK: Form = (r"[A-Za-z_]", r"[\w.:-]{0,99}", r"\[", *"ARGS", r"\]", *_OBJECT)
_PROMPTED: Form = (*">>>", *_NAMED)
_TO_FUNCTION = (*" to=functions", r"\.", r"[\w.:-]{1,99}", r"[ \w]{0,20}", r"\{")
_COMMENTARY: tuple[Form, ...] = (
    (*"commentary", *_TO_FUNCTION),
    (*"assistantcommentary", *_TO_FUNCTION),
)
_GORILLA: Form = (*"<<function>>", r"\[?", *CALL)
_INDENT = ("\n", r"[ \t]{0,8}")
_ACTION_LINE: Form = (*_INDENT, *BOLD_ACTION)
_LABEL_LINES: tuple[Form, ...] = (*((*_INDENT, *one) for one in LABELS),)
_STATEMENTS: tuple[Form, ...] = (CALL, ASSIGNED, (*COMMENT, *CALL), (*COMMENT, *ASSIGNED))
_CODE: tuple[Form, ...] = (*((*"<code>", r"[ \t\r]{0,8}", "\n", r"\s{0,20}", *one) for one in _STATEMENTS),)

_LAST_LINE: Form = ("\n", r"[ \t]{0,8}", r"[\[{]", _GAP, r'[{"A-Za-z_]')

LOOSE_BEGINS: tuple[Form, ...] = (
    *(BOLD_ACTION, *LABELS, _NAMED, _WITH_MARK, _PROMPTED, CALL),
    *(*_COMMENTARY, _PYTHON_DICTS, _PYTHON_DICT),
)
LOOSE_SUSPECTS: tuple[Form, ...] = (
    *(_TAG, _BRACKETS, _GORILLA, _ACTION_LINE),
    *(*_LABEL_LINES, *_CODE, _LAST_LINE),
)
LOOSE_BLOCKS = (
    *("tool_code", "tool_call", "tool_calls", "tool_use", "tool", "function_call", "function_calls"),
)
LOOSE_STATEMENTS: tuple[Form, ...] = _STATEMENTS[1:]
LOOSE_TYPESCRIPT: Form = (*CALL, _GAP, r"\{")  # MiniMax Text 01; people write other calls in it

_BEHIND_NAMES: tuple[Form, ...] = ("(", '"', "\n", " ", ",", "]", "}", ")", ":", "=")
_KEYS = tuple(f'"{key}"' for key in (*NAMES, *AROUND, "id", "type", "thought"))
_WORD = re.compile(r"\w+")
_TOKEN: Form = ("<", r"[|｜]", r"[^|｜<>\n]{1,40}", r"[|｜]", ">")
_ANY = marks(*LOOSE_BEGINS, *LOOSE_SUSPECTS, *LOOSE_STATEMENTS)


def is_loose(mark: str) -> bool:
    """Whether a call that began like this was found here."""
    return _ANY.whole.fullmatch(mark) is not None


def read_loose(dialect: Dialect, cursor: Cursor, tools: Tools | None) -> Reading:
    """One of the forms stands next."""
    if (yield from cursor.sees(BOLD_ACTION, _ACTION_LINE)):
        yield from cursor.space()
        opening = yield from cursor.accept(BOLD_ACTION)  # notes have such lines in bold, too
        return (yield from read_action(dialect, cursor, tools, known=True, alone="*" not in opening))
    if (yield from cursor.sees(*LABELS, *_LABEL_LINES)):
        return (yield from _labelled(dialect, cursor, tools))
    if (yield from cursor.sees(*_CODE)):
        return (yield from _code(dialect, cursor, tools))
    if (yield from cursor.sees(_GORILLA)):
        return (yield from _gorilla(dialect, cursor, tools))
    if (yield from cursor.sees(_TAG, _BRACKETS)):
        return (yield from _wrapped(cursor, tools))
    if (yield from cursor.sees(_LAST_LINE)):
        return (yield from _last(cursor, tools))
    if (yield from cursor.sees(*_STATEMENTS)):
        return (yield from _called(dialect, cursor, tools))
    if (yield from cursor.sees(_PYTHON_DICTS, _PYTHON_DICT)):
        return (yield from _json(cursor, tools))
    if (yield from cursor.sees(*_COMMENTARY)):
        return (yield from _addressed(dialect, cursor, tools))
    yield from cursor.accept(">>>")
    name, _ = yield from cursor.until("\n", "{", " ", "[")  # what stands here if a server left the tokens out
    if tool_named(plain_name(name), tools) is None:
        return None
    yield from cursor.accept("[ARGS]")
    return (yield from dialect.named(cursor, plain_name(name), "", ("<|observation|>",), ("\n\n",)))


def _addressed(dialect: Dialect, cursor: Cursor, tools: Tools | None) -> Reading:
    """What is left of a call of gpt-oss where a server left the tokens out."""
    yield from cursor.until(".")
    cursor.at += 1
    name, _ = yield from cursor.until(" ", "{")
    yield from cursor.until("{")
    return (yield from dialect.named(cursor, name, "", (), ())) if tool_named(name, tools) else None


def _wrapped(cursor: Cursor, tools: Tools | None) -> Reading:
    """JSON behind a tag or a token, and what closes it: the same tag with a slash, or another token."""
    tag, mark = yield from cursor.until(">", "]")
    yield from cursor.accept(mark)
    yield from cursor.space()
    found = yield from _json(cursor, tools)
    if found is None:
        return None
    word = _WORD.search(tag)
    name = word[0] if word else ""
    space = yield from cursor.space()
    closers: tuple[Form, ...] = (f"</{name}>", f"[/{name}]", f"[END_{name}]")
    if "|" in tag or "｜" in tag:
        closers = (*closers, _TOKEN)
    if not (yield from cursor.accept(*closers)):
        cursor.back(len(space))
    return found


def _labelled(dialect: Dialect, cursor: Cursor, tools: Tools | None) -> Reading:
    """`Tool: add` and what it is given. Behind other words only where the reply ends with it: with anything
    behind it, it is an example."""
    begins = not (yield from cursor.space())
    found: list[FoundCall] = []
    behind = cursor.taken  # the last call
    while (yield from cursor.accept(*LABELS)):
        calls = yield from read_action(dialect, cursor, tools, known=True, certain=False)
        if not calls or isinstance(calls, str) or any(isinstance(one, BadCall) for one in calls):
            break
        if not (yield from ends_line(cursor)):
            break
        found += calls
        behind = cursor.taken
        yield from cursor.space()
    if not found or not (begins or (yield from _ends(cursor))):
        return None
    cursor.back(cursor.taken - behind if begins else 0)
    return found


def _code(dialect: Dialect, cursor: Cursor, tools: Tools | None) -> Reading:
    """Calls in a program, as smolagents has them, with which the reply ends."""
    if not cursor.fresh:
        return None
    yield from cursor.accept("<code>")
    yield from cursor.space()
    yield from cursor.accept(COMMENT)
    found = yield from read_python_calls(dialect, cursor, tools)
    yield from cursor.space()
    closed = found and (yield from cursor.accept("</code>"))
    return found if closed and (yield from _ends(cursor)) else None


def _ends(cursor: Cursor) -> Steps[bool]:
    """Whether the reply ends here, as whoever wrote it wanted. Reads what may stand behind the last call."""
    yield from cursor.space()
    while (yield from cursor.accept(*END_TOKENS)):
        yield from cursor.space()
    return cursor.over and not cursor.broken_off and cursor.at == len(cursor.text)


def _gorilla(dialect: Dialect, cursor: Cursor, tools: Tools | None) -> Reading:
    """Calls as Python has them, or a list of them, behind `<<function>>`."""
    yield from cursor.accept("<<function>>")
    listed = yield from cursor.accept("[")
    found = yield from read_python_calls(dialect, cursor, tools)
    if found and listed:
        yield from cursor.accept("]")
    return found or None


def _last(cursor: Cursor, tools: Tools | None) -> Reading:
    """JSON or a list of Python calls in a line of its own, with which the reply ends: behind words that tell
    of it, this is how models call that have no marker. With anything behind it, it is an example."""
    start = cursor.taken
    found: Sequence[FoundCall] | None = None
    yield from cursor.space()
    opening = yield from cursor.accept("[", "{")
    yield from cursor.space()
    inner = opening == "[" and (yield from cursor.accept("{"))
    yield from cursor.space()
    name, mark = yield from cursor.until(*_BEHIND_NAMES)
    is_python = opening == "[" and not inner and mark == "(" and tool_named(name, tools) is not None
    is_json = mark == '"' and not name and bool((yield from cursor.sees(*_KEYS)))
    cursor.back(cursor.taken - start)
    if is_python or is_json:
        yield from cursor.space()
        found = yield from (_python_list(cursor) if is_python else _json(cursor, tools))
    if not found or not (yield from _ends(cursor)):
        cursor.back(cursor.taken - start)
        return None
    return found


def _json(cursor: Cursor, tools: Tools | None) -> Steps[Sequence[FoundCall] | None]:
    if (yield from cursor.sees(_PYTHON_DICTS, _PYTHON_DICT)):  # Sarashina
        machine = PythonMachine()
        text = yield from cursor.value(machine)
        value = plain_value(text) if machine.state == "whole" else None
        return None if value is None else loose_calls(compact(value), tools)
    payload = yield from read_json(cursor, lambda members: False)
    return None if payload.flaw else loose_calls(payload.text, tools)


def _python_list(cursor: Cursor) -> Steps[Sequence[FoundCall] | None]:
    machine = PythonMachine()
    text = yield from cursor.value(machine)
    calls = listed_calls(text) if machine.state == "whole" else None
    try:
        return [TextCall(name, keywords(call)) for name, call in calls or ()]
    except NotALiteral:
        return None


def _called(dialect: Dialect, cursor: Cursor, tools: Tools | None) -> Reading:
    """Calls as Python has them, with nothing else in their last line: else the text speaks of them."""
    yield from cursor.accept(COMMENT)
    found = yield from read_python_calls(dialect, cursor, tools)
    blank = yield from cursor.run(BLANK)
    yield from cursor.accept(";")
    if not found:
        return None
    ends = (yield from cursor.sees("\n", "\r", "`", "<")) or cursor.at == len(cursor.text)
    cursor.back(len(blank) if ends else 0)
    return found if ends else None
