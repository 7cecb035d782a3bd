"""Several formats read at the same time: what a model was told or is known for, and what was granted.

Each marker is read by the dialect that has it; if several have it, by the first that can read what follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dragoman.dialects.cursor import Cursor, Form
from dragoman.dialects.grammar import Dialect
from dragoman.dialects.scanner import BadCall, Reading, TextCall, Tools

_WRAPPERS = ("<｜tool_calls_begin｜>",)  # around calls that several models tell apart inside


class Formats(Dialect):
    """Reads all of these, and writes the first."""

    def __init__(self, name: str, dialects: Sequence[Dialect]) -> None:
        self._written = dialects[0]
        self._unmarked = [(one, (*one.begins, *((one.bare,) if one.bare else ()))) for one in dialects]
        self._owners: dict[str, list[Dialect]] = {}
        for one in dialects:
            for opener in one.opens:
                if opener not in _WRAPPERS:
                    self._owners.setdefault(opener, []).append(one)
        self.name = name
        self.sections = (*(mark for one in dialects for mark in one.sections),)
        self.how = self._written.how
        self.ids = self._written.ids
        self.opens = (*self._owners,)
        self.drops = (
            *dict.fromkeys(mark for one in dialects for mark in one.drops if mark not in self._owners),
        )
        self.begins: tuple[Form, ...] = (
            *dict.fromkeys(form for _, forms in self._unmarked for form in forms),
        )
        self.thoughts = {begin: end for one in dialects for begin, end in one.thoughts.items()}
        self.turns = (*dict.fromkeys(mark for one in dialects for mark in one.turns),)

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        owners = [*self._owners[opener]] if opener else []
        if not opener:
            for one, forms in self._unmarked:
                if forms and (yield from cursor.sees(*forms)):
                    owners.append(one)
        start = cursor.taken
        for one in owners:
            found = yield from one.read(cursor, opener, tools)
            if isinstance(found, str) or found == []:
                return found
            if found and (one is owners[-1] or not any(isinstance(call, BadCall) for call in found)):
                return [replace(call, format=one.name) for call in found]
            cursor.back(cursor.taken - start)
        return None

    def calls(self, calls: Sequence[TextCall]) -> str:
        return self._written.calls(calls)

    def result(self, id: str, tool: str, text: str) -> str:
        return self._written.result(id, tool, text)
