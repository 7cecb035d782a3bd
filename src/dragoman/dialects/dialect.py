"""Define the dialects by name. A new one is a file next to this one, and a line in the table.

A dialect is a way to write calls as text, for models whose server has no native calls. Dragoman reads only
the dialect that a model was told to write, or that its family is known for (D6). `any` reads them all, for
users who set it. `scanner.py` begins with the theory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from pydantic import JsonValue

from dragoman.dialects.cursor import Cursor, Form
from dragoman.dialects.gemma import GEMMA_DIALECTS
from dragoman.dialects.grammar import Dialect, Parsed
from dragoman.dialects.invoke import INVOKE_DIALECTS, MinimaxM3
from dragoman.dialects.llama import Functionary, JsonTags, LlamaJson, LlamaPythonic, Olmo
from dragoman.dialects.scanner import BadCall, Reading, TextCall, Tools
from dragoman.dialects.special_tokens import (
    MARKED_JSON_DIALECTS,
    Deepseek,
    Harmony,
    Kimi,
    Mistral,
    Plamo,
    Solar,
)
from dragoman.dialects.told import JsonStrict, XmlTag
from dragoman.dialects.tool_call_tag import GLM_DIALECTS, Hermes, QwenCoder
from dragoman.errors import ConfigError

__all__ = [
    "ANY",
    "NAMES",
    "NATIVE",
    "BadCall",
    "Dialect",
    "Parsed",
    "TextCall",
    "dialect",
    "formats",
    "parse_report",
]

_WRAPPERS = ("<｜tool_calls_begin｜>",)  # around calls that several models distinguish by what is inside


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


_ALL: tuple[Dialect, ...] = (
    JsonStrict(),
    XmlTag(),
    Hermes(),
    QwenCoder(),
    LlamaJson(),
    LlamaPythonic(),
    Mistral(),
    Deepseek(),
    *GLM_DIALECTS,
    Kimi(),
    Harmony(),
    *INVOKE_DIALECTS,
    MinimaxM3(),
    *GEMMA_DIALECTS,
    Olmo(),
    *MARKED_JSON_DIALECTS,
    Plamo(),
    Functionary(),
    JsonTags(),
    Solar(),
)
# Muse and Functionary begin with marks that are plain text to all other models.
ANY = Formats("any", (Hermes(), *(one for one in _ALL if one.name not in ("muse", "functionary"))))
_DIALECTS: dict[str, Dialect] = {one.name: one for one in (*_ALL, ANY)}

NAMES = tuple(_DIALECTS)
NATIVE = "native"  # not a dialect: the wire has native calls


def dialect(name: str) -> Dialect:
    try:
        return _DIALECTS[name]
    except KeyError:
        raise ConfigError(f"Unknown dialect {name!r}. Choose one of {', '.join(NAMES)}.") from None


@cache
def formats(*names: str) -> Dialect:
    """Return a dialect that reads all of these at the same time, and writes the first."""
    known = [dialect(name) for name in dict.fromkeys(names)]
    return known[0] if len(known) == 1 else Formats("+".join(one.name for one in known), known)


def parse_report(name: str, text: str, tools: Tools | None = None) -> dict[str, JsonValue]:
    """Return a reply as a dialect reads it, for display."""
    parsed = dialect(name).parse(text, tools)
    return {
        "calls": [{"name": call.name, "arguments": call.arguments} for call in parsed.calls],
        "text": parsed.text,
        "errors": list(parsed.errors),
    }
