"""Finds the end of a JSON value in a stream of characters, and what is wrong with it if it is none.

Brackets, quotes and commas are followed as JSON has them, so a value ends where it ends, whatever its strings
hold, and text that only looks like JSON is recognised at the first character that does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from dragoman.dialects.cursor import SPACE, Cursor, Steps

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
    """A value as it was written. `flaw` says why it cannot be used, `certain` whether it was meant as one."""

    text: str
    flaw: str
    certain: bool
    swallowed: int  # the last characters, which may be no part of it: it broke in or behind a string


def read_json(cursor: Cursor, certain: Callable[[Members], bool] | None = None) -> Steps[JsonText]:
    """Read an object or a list.

    Where text may merely look like it, `certain` decides by the keys whether it is meant. Until then the
    reading stops at the first fault; afterwards faults inside strings are noted, and the end is still found.
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
        self._level = 0  # how many brackets are open where members are noted
        self._key: list[str] | None = None  # the member's key that is being read
        self._string_size = -1  # of the string that is read, or was read last; -1 if something followed it

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
            if at in (start, size):  # what is there is not enough to go on
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
            self._fault(f"{text[end : end + 2]!r} in a string is no escape that JSON knows")
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
        elif char == "," and want & _COMMA:  # a comma too many is forgiven: it can be left out
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
        """A value begins; of a member it is noted with what."""
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
