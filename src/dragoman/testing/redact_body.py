"""Remove secrets from recorded bodies so that they still play: JSON stays JSON, a stream stays a stream.

A secret that a stream splits into chunks is found, too: texts in the same place of its events are searched as
one.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dragoman.redaction import HIDDEN, redact_text

REDACTED = "‹redacted›"  # replaces matches of the caller's patterns
_MARK = re.compile(f"({HIDDEN}|{REDACTED})")
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
_PAYLOAD = re.compile(r"(?P<before>(?:data:)?\s*)(?P<payload>[{\[].*?)(?P<after>\s*)", re.DOTALL)

Redact: TypeAlias = Callable[[str], str]
Place: TypeAlias = tuple[object, ...]


def redact_known(text: str) -> str:
    """Return the text without secrets of a known shape. JSON, such as the arguments of a call, stays JSON."""
    safe = redact_text(text)
    if safe == text or not _is_json(text) or _is_json(safe):
        return safe
    return _LITERAL.sub(lambda found: redact_text(found[0]), text)


def redact_body(body: str, redact: Redact) -> str:
    """Return the body of a response, with `redact` applied to every text in it."""
    lines = [body] if _is_json(body) else re.findall(r"[^\n]*\n|[^\n]+", body)
    events = [_Event.read(line) for line in lines]
    places: dict[Place, list[tuple[_Event, Any, Any]]] = defaultdict(list)
    for event in events:
        for place, holder, at in _texts(event.value, ()):
            places[place].append((event, holder, at))
    for found in places.values():
        texts = [holder[at] for _, holder, at in found]
        for (event, holder, at), text, safe in zip(found, texts, _redact_pieces(texts, redact), strict=True):
            if safe != text:
                holder[at] = safe
                event.changed = True
    return "".join(event.text(redact) for event in events)


@dataclass(slots=True)
class _Event:
    """A line of a body: JSON, perhaps after `data:`, or something else, which has no value."""

    line: str
    before: str = ""
    value: Any = None
    after: str = ""
    changed: bool = False

    @classmethod
    def read(cls, line: str) -> _Event:
        found = _PAYLOAD.fullmatch(line)
        if found is None or not _is_json(found["payload"]):
            return cls(line)
        return cls(line, found["before"], json.loads(found["payload"]), found["after"])

    def text(self, redact: Redact) -> str:
        if self.value is None:
            return redact(self.line)
        if not self.changed:
            return self.line
        return f"{self.before}{json.dumps(self.value)}{self.after}"


def _texts(value: Any, place: Place) -> Iterator[tuple[Place, Any, Any]]:
    """Yield every text in a value: its place, its container and its key. Fields that number several texts
    (`index`, `output_index`) are part of the place, and so is the type of an event."""
    if isinstance(value, dict):
        told = tuple(
            (name, one) for name, one in value.items() if name == "type" or name.lower().endswith("index")
        )
        items: Sequence[tuple[Any, Any]] = [*value.items()]
        place = (*place, *((name, one) for name, one in told if isinstance(one, str | int)))
    elif isinstance(value, list):
        items = [*enumerate(value)]
    else:
        return
    for at, inner in items:
        if isinstance(inner, str):
            yield (*place, at), value, at
        else:
            yield from _texts(inner, (*place, at))


def _redact_pieces(pieces: list[str], redact: Redact) -> list[str]:
    """Return the chunks of a text without its secrets. A mark is in the chunk in which the secret begins."""
    whole = "".join(pieces)
    if (safe := redact(whole)) == whole:
        return pieces
    *parts, last = _MARK.split(safe)
    spans: list[tuple[int, str]] = []  # where each literal part begins, and the mark that follows it
    marks: list[tuple[int, int, str]] = []
    at = 0
    for literal, mark in zip(parts[::2], parts[1::2], strict=True):
        begin = whole.find(literal, at)
        if begin < 0:
            return [safe, *("" for _ in pieces[1:])]
        if spans:
            marks.append((spans[-1][0], begin, spans[-1][1]))
        at = begin + len(literal)
        spans.append((at, mark))
    marks.append((spans[-1][0], len(whole) - len(last), spans[-1][1]))
    return [_cut(piece, offset, marks) for piece, offset in zip(pieces, _offsets(pieces), strict=True)]


def _offsets(pieces: Sequence[str]) -> list[int]:
    return [sum(map(len, pieces[:i])) for i in range(len(pieces))]


def _cut(piece: str, offset: int, marks: Sequence[tuple[int, int, str]]) -> str:
    """Return one chunk, which begins at this offset of the whole."""
    end, at, text = offset + len(piece), offset, ""
    for begin, stop, mark in marks:
        if stop <= offset or begin >= end:
            continue
        text += piece[at - offset : max(begin - offset, at - offset)]
        text += mark if begin >= offset else ""
        at = min(stop, end)
    return text + piece[at - offset :]


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except ValueError:
        return False
