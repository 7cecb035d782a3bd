"""Find the end of a JSON value or a Python list in a stream of characters, and what is wrong with it.

Brackets, quotes and commas are followed as in JSON, so the content of strings cannot end a value. Text that
only looks like JSON is recognized at the first character that does not fit.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.dialects.cursor import SPACE, Cursor, Steps
from dragoman.messages.message import Arguments

Members: TypeAlias = Mapping[str, str]
"""The keys of an object, or of the newest in a list of them, each with the first character of its value."""

_IN_STRING = re.compile(r'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_LONGEST_ESCAPE = 6
_WORD = re.compile(r"[-+.\w]*+")
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
_LONGEST_SCALAR = 1000

_VALUE, _KEY, _COLON, _COMMA, _CLOSE = 1, 2, 4, 8, 16  # what may come next
_CLOSER = {"{": "}", "[": "]"}


@dataclass(slots=True, frozen=True)
class JsonText:
    """A value as it was written.

    `flaw` says why it is unusable, `certain` whether it was meant as a value.
    """

    text: str
    flaw: str
    certain: bool
    swallowed: int  # number of last characters that may not belong to it: it broke in or after a string


def read_json(cursor: Cursor, certain: Callable[[Members], bool] | None = None) -> Steps[JsonText]:
    """Read an object or a list.

    If text may only look like it, `certain` decides by the keys whether it is meant. Until then, reading
    stops at the first fault. Afterwards faults inside strings are noted, and the end is still found.
    """
    machine = _JsonMachine(certain)
    text = yield from cursor.value(machine)
    flaw = f"it is no longer JSON after {text[-20:]!r}" if machine.state == "broken" else machine.flaw
    return JsonText(text, flaw, machine.certain, machine.swallowed)


class _JsonMachine:
    def __init__(self, certain: Callable[[Members], bool] | None) -> None:
        self.state = ""
        self.flaw = ""
        self.certain = certain is None
        self._is_certain = certain
        self._members: dict[str, str] = {}
        self._member = ""
        self._closers: list[str] = []
        self._want = _VALUE
        self._in_string = False
        self._level = 0  # number of open brackets at the level whose members are noted
        self._key: list[str] | None = None  # the member's key that is being read
        self._string_size = -1  # of the current or last string; -1 if something followed it

    @property
    def swallowed(self) -> int:
        return max(self._string_size - 1, 0)

    def advance(self, text: str, at: int, over: bool) -> int:
        size = len(text)
        while not self.state:
            start = at
            if self._in_string:
                at = self._string(text, at, over)
                self._string_size += at - start
            else:
                found = SPACE.match(text, at)
                at = found.end() if found else at
                if self._string_size >= 0:
                    self._string_size += at - start
                if at < size:
                    at = self._token(text, at, over)
            if at in (start, size):  # not enough text to continue
                break
        if over and not self.state and at == size:
            self.flaw = "the reply ends before its JSON does"
            self._stop("cut")
        return at

    def _string(self, text: str, at: int, over: bool) -> int:
        found = _IN_STRING.match(text, at)
        end = found.end() if found else at
        if self._key is not None:
            self._key.append(text[at:end])
        if end == len(text):
            return end
        if text[end] == '"':
            self._in_string = False
            if self._key is not None:
                self._member, self._key = "".join(self._key), None
            return end + 1
        if text[end] == "\\":
            if not over and len(text) - end < _LONGEST_ESCAPE:
                return end
            self._fault(f"{text[end : end + 2]!r} in a string is not an escape that JSON knows")
        else:
            self._fault("a line break or control character in a string has to be escaped, as in \\n")
        return end + 1

    def _token(self, text: str, at: int, over: bool) -> int:
        char, want = text[at], self._want
        if char == '"' and want & (_KEY | _VALUE):
            self._begins(char)
            self._in_string = True
            self._string_size = 1
            is_key = bool(want & _KEY)
            self._want = _COLON if is_key else _COMMA | _CLOSE
            self._key = [] if is_key and len(self._closers) == self._level else None
        elif char in _CLOSER and want & _VALUE:
            self._begins(char)
            self._closers.append(_CLOSER[char])
            self._want = (_KEY if char == "{" else _VALUE) | _CLOSE
            if self._closers in (["}"], ["]", "}"]):
                self._level = len(self._closers)
                self._members.clear()
        elif want & _CLOSE and char == self._closers[-1]:
            self._closers.pop()
            self._want = _COMMA | _CLOSE
            if not self._closers:
                self._stop("whole")
        elif char == ":" and want & _COLON:
            self._want = _VALUE
        elif char == "," and want & _COMMA:  # An extra comma is accepted: it can be left out.
            self._want = (_KEY if self._closers[-1] == "}" else _VALUE) | _CLOSE
        else:
            return self._scalar(text, at, over)
        if not self._in_string:
            self._string_size = -1
        return at + 1

    def _scalar(self, text: str, at: int, over: bool) -> int:
        found = _WORD.match(text, at)
        end = found.end() if found else at
        if self._want & _VALUE and self._closers and 0 < end - at < _LONGEST_SCALAR:
            if end == len(text) and not over:
                return at
            if _SCALAR.fullmatch(text, at, end):
                self._begins(text[at])
                self._want = _COMMA | _CLOSE
                self._string_size = -1
                return end
        self._stop("broken")
        return at

    def _begins(self, char: str) -> None:
        """Note the start of a value, under the name of its member."""
        if self._want & _VALUE and self._level and len(self._closers) == self._level:
            self._members[self._member] = char
        if not self.certain and self._is_certain:
            self.certain = self._is_certain(self._members)

    def _fault(self, flaw: str) -> None:
        self.flaw = self.flaw or flaw
        if not self.certain:
            self._stop("broken")

    def _stop(self, state: str) -> None:
        self.state = state
        if not self.certain and self._is_certain:
            self.certain = self._is_certain(self._members)


# ── Python ────────────────────────────────────────────────────────────────────────────────────────

_NOTABLE = re.compile(r"[\"'()\[\]{}]|\n[ \t\r]*+\n")
_IN_PYTHON_STRING = {quote: re.compile(rf"[\\\n]|{quote}") for quote in ("'", '"', "'''", '"""')}
_STRING = re.compile(r"""'{3}.*?'{3}|"{3}.*?"{3}|'(?:\\.|[^'\\])*+'|"(?:\\.|[^"\\])*+\"""", re.DOTALL)
_STRING_OR_PADDED = re.compile(rf"{_STRING.pattern}|(?<![\w.])0+(?=[0-9])", re.DOTALL)
_LINE_ENDS = {"\n": "\\n", "\r": "\\r"}
_ESCAPE_OR_END = re.compile(r"\\.|[\r\n]", re.DOTALL)
_PYTHON_CLOSER = {"(": ")", "[": "]", "{": "}"}
_JSON_NAMES = {"true": True, "false": False, "null": None}


class NotALiteral(ValueError):
    """An argument is not a plain value. The text tells the model which."""


class PythonMachine:
    """Follows brackets and strings. A blank line, or a line end inside a string, breaks it.

    With `lines`, neither does: then a call is certainly meant, and models forget to escape line ends.
    """

    def __init__(self, *, lines: bool = False) -> None:
        self.state = ""
        self._lines = lines
        self._closers: list[str] = []
        self._quote = ""

    def advance(self, text: str, at: int, over: bool) -> int:
        while not self.state:
            found = (_IN_PYTHON_STRING[self._quote] if self._quote else _NOTABLE).search(text, at)
            if found is None:
                at = len(text) if over else self._certain(text, at)
                break
            at, mark = found.start(), found[0]
            if mark in "\"'\\" and not over and len(text) - at < 3:  # one of three quotes, or half an escape
                return at
            at = self._in_string(text, at, mark) if self._quote else self._in_code(text, at, mark)
        if over and not self.state:
            self.state = "cut"
        return at

    def _certain(self, text: str, at: int) -> int:
        """Return the position up to which nothing special can be: before a possible blank line or triple
        quote."""
        return max(at, len(text.rstrip(self._quote[0] if self._quote else " \t\r\n")))

    def _in_string(self, text: str, at: int, mark: str) -> int:
        if mark == "\\":
            return min(at + 2, len(text))
        if mark == "\n" and len(self._quote) == 1 and not self._lines:
            self.state = "broken"
            return at
        if mark == self._quote:
            self._quote = ""
        return at + len(mark)

    def _in_code(self, text: str, at: int, mark: str) -> int:
        if mark[0] == "\n" and self._lines:
            return at + len(mark)
        if mark in ("'", '"'):
            if text.startswith(mark * 3, at):
                self._quote = mark * 3
            elif text.startswith(mark * 2, at):
                return at + 2
            else:
                self._quote = mark
            return at + len(self._quote)
        if mark in _PYTHON_CLOSER:
            self._closers.append(_PYTHON_CLOSER[mark])
        elif not self._closers or mark != self._closers.pop():
            self.state = "broken"
            return at
        elif not self._closers:
            self.state = "whole"
        return at + 1


def listed_calls(text: str) -> list[tuple[str, ast.Call]] | None:
    """Return the calls in a list of calls, with their names. None if it is not such a list."""
    tree = _parsed(text) or _parsed(_STRING_OR_PADDED.sub(_repaired, text))
    items = tree.elts if isinstance(tree, ast.List) else []
    calls = [(_dotted(item.func), item) for item in items if isinstance(item, ast.Call)]
    return calls if calls and len(calls) == len(items) and all(name for name, _ in calls) else None


def _parsed(text: str) -> ast.expr | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Warnings about escapes in strings are useless here.
            return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _repaired(found: re.Match[str]) -> str:
    """Fix line ends in a string, unless it has three quotes, and remove leading zeros of a number."""
    text = found[0]
    if text[0] == "0":
        return ""
    if text.startswith(("'''", '"""')):
        return text
    return _ESCAPE_OR_END.sub(lambda found: _LINE_ENDS.get(found[0], found[0]), text)


def keywords(call: ast.Call) -> Arguments:
    """Return the arguments of a call. Raises NotALiteral if one has no name, or is not a plain value."""
    if call.args:
        raise NotALiteral("its arguments must be named")
    arguments: Arguments = {}
    for keyword in call.keywords:
        try:
            value = _literal(keyword.value)
        except RecursionError:
            raise NotALiteral("its arguments are nested too deep") from None
        named = {keyword.arg: value} if keyword.arg is not None else value
        if not isinstance(named, dict):  # **{"from": 1} is accepted: a name that Python reserves
            raise NotALiteral("its arguments must be named")
        if twice := arguments.keys() & named.keys():
            raise NotALiteral(f"its argument {min(twice)} occurs twice")
        arguments |= named
    return arguments


def literal_in(text: str) -> JsonValue:
    """Return a plain Python value, such as `['a', 'b']`. Raises NotALiteral for anything else."""
    if (tree := _parsed(text)) is None:
        raise NotALiteral("it is not valid Python")
    try:
        return _literal(tree)
    except RecursionError:
        raise NotALiteral("it is nested too deep") from None


def _dotted(node: ast.expr) -> str:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join(reversed([*names, node.id])) if isinstance(node, ast.Name) else ""


def _literal(node: ast.expr) -> JsonValue:
    match node:
        case ast.Constant(value=None | bool() | int() as value):
            return value
        case ast.Constant(value=float() as number) if isfinite(number):
            return number
        case ast.Constant(value=str() as text) if text.isascii() or _is_unicode(text):
            return text
        case ast.Name(id=name) if name in _JSON_NAMES:
            return _JSON_NAMES[name]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)) if isfinite(
            number
        ):
            return -number
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_literal(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            return {_key(key): _literal(value) for key, value in zip(keys, values, strict=True)}
        case _:
            raise NotALiteral("one of its arguments is not a plain value")


def _key(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise NotALiteral("the keys of a dict must be strings")


def _is_unicode(text: str) -> bool:
    """Return whether a text has no lone surrogate, which Python can write but text cannot contain."""
    return not any("\ud800" <= char <= "\udfff" for char in text)
