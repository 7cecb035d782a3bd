"""Finds the end of a Python list in a stream of characters, and the calls in it."""

from __future__ import annotations

import ast
import re
import warnings
from math import isfinite

from pydantic import JsonValue

from dragoman.messages.parts import Arguments

_NOTABLE = re.compile(r"[\"'()\[\]{}]|\n[ \t\r]*+\n")
_IN_STRING = {quote: re.compile(rf"[\\\n]|{quote}") for quote in ("'", '"', "'''", '"""')}
_STRING = re.compile(r"""'{3}.*?'{3}|"{3}.*?"{3}|'(?:\\.|[^'\\])*+'|"(?:\\.|[^"\\])*+\"""", re.DOTALL)
_STRING_OR_PADDED = re.compile(rf"{_STRING.pattern}|(?<![\w.])0+(?=[0-9])", re.DOTALL)
_LINE_ENDS = {"\n": "\\n", "\r": "\\r"}
_ESCAPE_OR_END = re.compile(r"\\.|[\r\n]", re.DOTALL)
_CLOSER = {"(": ")", "[": "]", "{": "}"}
_JSON_NAMES = {"true": True, "false": False, "null": None}


class NotALiteral(ValueError):
    """An argument is no plain value. The text says which, for the model."""


class PythonMachine:
    """Follows brackets and strings. A blank line, or a line that ends inside a string, breaks it.

    With `lines` neither does: it is certain then that a call is meant, and models forget to escape them.
    """

    def __init__(self, *, lines: bool = False) -> None:
        self.state = ""
        self._lines = lines
        self._closers: list[str] = []
        self._quote = ""

    def advance(self, text: str, at: int, over: bool) -> int:
        while not self.state:
            found = (_IN_STRING[self._quote] if self._quote else _NOTABLE).search(text, at)
            if found is None:
                at = len(text) if over else self._certain(text, at)
                break
            at, mark = found.start(), found[0]
            if mark in "\"'\\" and not over and len(text) - at < 3:  # one quote of three, or half an escape
                return at
            at = self._in_string(text, at, mark) if self._quote else self._in_code(text, at, mark)
        if over and not self.state:
            self.state = "cut"
        return at

    def _certain(self, text: str, at: int) -> int:
        """How far nothing notable can stand: up to what may become a blank line or a triple quote."""
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
        if mark in _CLOSER:
            self._closers.append(_CLOSER[mark])
        elif not self._closers or mark != self._closers.pop():
            self.state = "broken"
            return at
        elif not self._closers:
            self.state = "whole"
        return at + 1


def listed_calls(text: str) -> list[tuple[str, ast.Call]] | None:
    """The calls in a list of calls, with their names. None if it is no such list."""
    tree = _parsed(text) or _parsed(_STRING_OR_PADDED.sub(_mended, text))
    items = tree.elts if isinstance(tree, ast.List) else []
    calls = [(_dotted(item.func), item) for item in items if isinstance(item, ast.Call)]
    return calls if calls and len(calls) == len(items) and all(name for name, _ in calls) else None


def _parsed(text: str) -> ast.expr | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Python thinks of escapes in strings helps nobody here
            return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _mended(found: re.Match[str]) -> str:
    """A string in which no line ends, unless three quotes allow it; a number without zeros in front."""
    text = found[0]
    if text[0] == "0":
        return ""
    if text.startswith(("'''", '"""')):
        return text
    return _ESCAPE_OR_END.sub(lambda found: _LINE_ENDS.get(found[0], found[0]), text)


def keywords(call: ast.Call) -> Arguments:
    """The arguments of a call. Raises NotALiteral where one has no name, or is no plain value."""
    if call.args:
        raise NotALiteral("its arguments have to be named")
    arguments: Arguments = {}
    for keyword in call.keywords:
        try:
            value = _literal(keyword.value)
        except RecursionError:
            raise NotALiteral("its arguments are nested too deep") from None
        named = {keyword.arg: value} if keyword.arg is not None else value
        if not isinstance(named, dict):  # **{"from": 1} is fine: a name that Python keeps for itself
            raise NotALiteral("its arguments have to be named")
        if twice := arguments.keys() & named.keys():
            raise NotALiteral(f"its argument {min(twice)} is there twice")
        arguments |= named
    return arguments


def literal_in(text: str) -> JsonValue:
    """A plain value as Python writes it, such as `['a', 'b']`. Raises NotALiteral where it is none."""
    if (tree := _parsed(text)) is None:
        raise NotALiteral("it is no Python")
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
            raise NotALiteral("one of its arguments is no plain value")


def _key(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise NotALiteral("the keys of a dict have to be strings")


def _is_unicode(text: str) -> bool:
    """Half a surrogate pair can be written in Python, but is no text."""
    return not any("\ud800" <= char <= "\udfff" for char in text)
