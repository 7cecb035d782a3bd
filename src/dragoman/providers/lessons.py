"""Keeps what servers refused over restarts (`wire/learned.py`), for a while: they repair themselves, too.

Each line of the file is one lesson of one model at one address, and when it was heard: processes that learn
at the same time only add lines. A lesson counts from the second time on, so that no single odd answer spoils
a model; and for two weeks after the last. No words of the provider's are kept, and none of anybody's prompts.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic_core import from_json, to_json

from dragoman.stored_keys import open_private

_log = logging.getLogger("dragoman.providers")
FILE = "lessons.jsonl"
DAY = 24 * 3600.0
COUNTS = 14 * DAY  # seconds after it was last heard that a lesson is believed
KEPT = 90 * DAY  # that it is remembered to have been heard
SURE = 2  # times
MOST = 2_000  # lines; the oldest go first
LONGEST = 300  # characters of a name


@dataclass(slots=True, frozen=True)
class Lesson:
    """What one model does not take. `word` is what `Learned` calls it."""

    model: str
    host: str
    word: str
    times: int
    last: float

    @property
    def is_sure(self) -> bool:
        return self.times >= SURE

    @property
    def until(self) -> float:
        """When the server is asked again."""
        return self.last + COUNTS


@dataclass(slots=True, frozen=True)
class _Heard:
    at: float
    model: str
    host: str
    word: str


class Lessons:
    """The lessons of all models; in a file, if there is one. What cannot be read is passed over."""

    def __init__(self, file: Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._clock = clock

    def of(self, model: str, host: str) -> list[str]:
        """What counts for a model at this address."""
        now = self._clock()
        return [
            one.word
            for one in self.all()
            if (one.model, one.host) == (model, host) and one.is_sure and one.until > now
        ]

    def all(self) -> list[Lesson]:
        """Everything that is remembered, also what does not count yet, or any more."""
        found: dict[tuple[str, str, str], Lesson] = {}
        for heard in self._read():
            key = (heard.model, heard.host, heard.word)
            times = found[key].times + 1 if key in found else 1
            found[key] = Lesson(*key, times, heard.at)
        return sorted(found.values(), key=lambda one: (one.model, one.host, one.word))

    def note(self, model: str, host: str, words: Iterable[str]) -> None:
        """These were heard, and the request that followed them was answered."""
        now = self._clock()
        heard = [_Heard(now, model, host, word) for word in words]
        if self._file is None or not heard or max(len(model), len(host)) > LONGEST:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open(self._file, "ab", opener=open_private) as file:
                file.write(b"".join(map(_line, heard)))  # at once: others may be adding theirs
            if len([*self._read()]) > MOST:
                self._write(list(self._read())[-MOST // 2 :])
        except OSError as error:
            _log.warning("cannot store what %s refuses: %s", model, error)

    def forget(self, providers: Iterable[str] = ()) -> int:
        """Ask again what these providers were found to refuse, or all. How many lessons that were."""
        gone = {*providers}
        lessons = [one for one in self.all() if not gone or one.model.partition("/")[0] in gone]
        if lessons and self._file is not None:
            dropped = {(one.model, one.host) for one in lessons}
            self._write([one for one in self._read() if (one.model, one.host) not in dropped])
        return len(lessons)

    def _read(self) -> Iterator[_Heard]:
        try:
            lines = self._file.read_bytes().splitlines() if self._file is not None else []
        except OSError:
            return
        now = self._clock()
        for line in lines:
            heard = _heard(line)
            if heard is not None and now - KEPT < heard.at <= now + DAY:
                yield heard

    def _write(self, heard: list[_Heard]) -> None:
        assert self._file is not None
        draft = self._file.with_name(f"{self._file.name}.{os.getpid()}.new")
        with open(draft, "wb", opener=open_private) as file:
            file.write(b"".join(map(_line, heard)))
        draft.replace(self._file)


def _line(heard: _Heard) -> bytes:
    named = {"at": round(heard.at), "model": heard.model, "host": heard.host, "lesson": heard.word}
    return to_json(named) + b"\n"


def _heard(line: bytes) -> _Heard | None:
    try:
        match from_json(line):
            case {
                "at": int() | float() as at,
                "model": str() as model,
                "host": str() as host,
                "lesson": str() as word,
            }:
                return _Heard(at, model, host, word)
    except ValueError:
        pass
    return None
