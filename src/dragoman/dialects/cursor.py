"""Track a position in a streaming reply, from which grammars read literals, runs and whole JSON values.

A step is a generator that yields when it needs more text, and then continues. So a grammar is written as if
the whole reply were present, and each character is read about once. A reply in one chunk is read exactly like
one that comes character by character.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Protocol, TypeAlias, TypeVar

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]
Form: TypeAlias = str | tuple[str, ...]
"""The form to search for: a literal, or a tuple of regular expressions that match one after another."""

SPACE = re.compile(r"[ \t\r\n]*+")
BLANK = re.compile(r"[ \t]*+")
TICKS = re.compile(r"`*+")
TILDES = re.compile(r"~*+")
WORD = re.compile(r"[\w.+-]*+")

_AT_LEAST = re.compile(r"\{[2-9],")
REACH = 512  # maximum length of a form


@dataclass(slots=True, frozen=True)
class Marks:
    """Patterns for the forms to search for.

    `whole` matches a complete form, `begun` a form cut off at the end of the text, `first` its first
    character. `longest` are the literals that are not a prefix of another one.
    """

    whole: re.Pattern[str]
    begun: re.Pattern[str]
    first: re.Pattern[str]
    longest: frozenset[str]

    def may_grow(self, found: re.Match[str]) -> bool:
        """Return whether this is complete, but may be the start of a longer form."""
        return found[0] not in self.longest and self.begun.match(found.string, found.start()) is not None


@lru_cache(maxsize=4096)
def marks(*forms: Form) -> Marks:
    literals = sorted({form for form in forms if isinstance(form, str)})
    steps = sorted((form for form in forms if not isinstance(form, str)), key=len, reverse=True)
    whole = [*([_tree(literals)] if literals else ()), *("".join(form) for form in steps)]
    begun = [*([_tree(literals, begun=True)] if literals else ()), *map(_begun, steps)]
    first = dict.fromkeys([*(re.escape(one[0]) for one in literals), *(form[0] for form in steps)])
    return Marks(
        re.compile("|".join(whole)),
        re.compile(rf"(?:{'|'.join(begun)})\Z"),
        re.compile("|".join(first)),
        frozenset(one for one, next in pairwise([*literals, ""]) if not next.startswith(one)),
    )


def _tree(literals: Sequence[str], at: int = 0, *, begun: bool = False) -> str:
    """Return a pattern for any of these sorted literals from here on, preferring the longest.

    It reads each character once, however many literals share a prefix. With `begun`, it also matches
    prefixes.
    """
    branches = []
    for char, group in groupby((one for one in literals if len(one) > at), key=lambda one: one[at]):
        rest = _tree(list(group), at + 1, begun=begun)
        branches.append(re.escape(char) + rest)
    if not branches:
        return ""
    ends = (begun and at > 0) or any(len(one) == at for one in literals)
    either = "|".join(branches)
    return f"(?:{either}){'?' if ends else ''}" if ends or len(branches) > 1 else either


def _begun(steps: tuple[str, ...]) -> str:
    pattern = ""
    for step in reversed(steps[:-1] or steps):
        begun = _AT_LEAST.sub("{1,", step)
        pattern = f"{begun}(?:{pattern})?" if pattern else begun
    return pattern


class Machine(Protocol):
    """Follows one bracketed value. `state` is empty until it is whole, broken or cut (the reply ended)."""

    state: str

    def advance(self, text: str, at: int, over: bool) -> int:
        """Continue from here to the end of the text. Return the position where it stopped."""


class Cursor:
    """The text of a reply so far. `text[at:]` is unread. `over` means that nothing more will come."""

    def __init__(self) -> None:
        self.text = ""
        self.at = 0
        self.over = False
        self.broken_off = False  # it is over, but there may have been more to come
        self._from = 0  # start in `text` of what was read since the last cut
        self._kept: list[str] = []  # text read since then that has left `text`
        self._kept_size = 0

    def feed(self, piece: str) -> None:
        if self.at > self._from:
            self._kept.append(self.text[self._from : self.at])
            self._kept_size += self.at - self._from
        self.text = self.text[self.at :] + piece
        self.at = self._from = 0

    # ── parsed values ─────────────────────────────────────────────────────────────────────────────

    @property
    def taken(self) -> int:
        """The number of characters read since the last cut."""
        return self._kept_size + self.at - self._from

    def peek(self) -> str:
        """Return everything read since the last cut, without cutting."""
        return "".join(self._kept) + self.text[self._from : self.at]

    def cut(self) -> str:
        """Return everything read since the last cut, and cut here."""
        text = self.peek()
        self._kept, self._kept_size, self._from = [], 0, self.at
        return text

    def back(self, count: int) -> None:
        """Unread the last characters, at most those since the last cut."""
        if count > self.at - self._from:
            rest = self.text[self.at :]
            taken = self.cut()
            self.text, self.at, self._from = taken + rest, len(taken), 0
        self.at -= count

    # ── steps ─────────────────────────────────────────────────────────────────────────────────────

    def seek(self, wanted: Marks) -> str:
        """Read up to a wanted form and return it, or up to where one may begin. Never waits."""
        found, near = wanted.whole.search(self.text, self.at), max(self.at, len(self.text) - REACH)
        if not self.over and (found is None or found.start() > near):
            begun = wanted.begun.search(self.text, near)
            if begun is not None and (found is None or begun.start() < found.start()):
                self.at = begun.start()
                return ""
        if found is None:
            self.at = len(self.text)
            return ""
        self.at = found.start()
        return found[0] if self.over or not wanted.may_grow(found) else ""

    def until(self, *forms: Form) -> Steps[tuple[str, str]]:
        """Read up to the first of these. Return what was read, and which form is next: "" at the end."""
        wanted = marks(*forms)
        parts: list[str] = []
        while True:
            start = self.at
            found = self.seek(wanted)
            parts.append(self.text[start : self.at])
            if found or self.over:
                return "".join(parts), found
            yield

    def sees(self, *forms: Form) -> Steps[str]:
        """Return which of these is next, "" if none."""
        wanted = marks(*forms)
        while True:
            found = wanted.whole.match(self.text, self.at)
            if found and (self.over or not wanted.may_grow(found)):
                return found[0]
            begun = found or self.at == len(self.text) or wanted.begun.match(self.text, self.at)
            if self.over or not begun:
                return ""
            yield

    def accept(self, *forms: Form) -> Steps[str]:
        """Read one of these if it is next."""
        found = yield from self.sees(*forms)
        self.at += len(found)
        return found

    def run(self, characters: re.Pattern[str]) -> Steps[str]:
        """Read as many of these characters as there are."""
        parts: list[str] = []
        while True:
            found = characters.match(self.text, self.at)
            assert found is not None  # A run may be empty.
            self.at = found.end()
            parts.append(found[0])
            if self.over or self.at < len(self.text):
                return "".join(parts)
            yield

    def space(self) -> Steps[str]:
        return (yield from self.run(SPACE))

    def value(self, machine: Machine) -> Steps[str]:
        """Read what the machine follows. Its state has the outcome."""
        parts: list[str] = []
        while True:
            end = machine.advance(self.text, self.at, self.over)
            parts.append(self.text[self.at : end])
            self.at = end
            if machine.state:
                return "".join(parts)
            yield
