"""Keep what servers refused across restarts (`wire/learned.py`), for a limited time: servers get fixed, too.

Each line of the file is one lesson of one model at one address, with its time. So processes that learn at the
same time only append lines. A lesson counts from its second occurrence, so that no single odd answer affects
a model, and for two weeks after the last one. The file has no text of providers, and no prompts.
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
COUNTS = 14 * DAY  # seconds after its last occurrence in which a lesson applies
KEPT = 90 * DAY  # seconds for which an occurrence is remembered
SURE = 2  # times
MOST = 2_000  # lines; the oldest are removed first
LONGEST = 300  # characters of a name


@dataclass(slots=True, frozen=True)
class Lesson:
    """One thing that a model does not accept. `word` is its name in `Learned`."""

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
        """The time when the server is asked again."""
        return self.last + COUNTS


@dataclass(slots=True, frozen=True)
class _Heard:
    at: float
    model: str
    host: str
    word: str


class Lessons:
    """The lessons of all models, in a file if given. Unreadable lines are skipped."""

    def __init__(self, file: Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._clock = clock

    def of(self, model: str, host: str) -> list[str]:
        """Return the lessons that apply to a model at this address."""
        now = self._clock()
        return [
            one.word
            for one in self.all()
            if (one.model, one.host) == (model, host) and one.is_sure and one.until > now
        ]

    def all(self) -> list[Lesson]:
        """Return everything remembered, including lessons that do not apply yet, or no longer."""
        found: dict[tuple[str, str, str], Lesson] = {}
        for heard in self._read():
            key = (heard.model, heard.host, heard.word)
            times = found[key].times + 1 if key in found else 1
            found[key] = Lesson(*key, times, heard.at)
        return sorted(found.values(), key=lambda one: (one.model, one.host, one.word))

    def note(self, model: str, host: str, words: Iterable[str]) -> None:
        """Add these lessons, whose next request was answered."""
        now = self._clock()
        heard = [_Heard(now, model, host, word) for word in words]
        if self._file is None or not heard or max(len(model), len(host)) > LONGEST:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open(self._file, "ab", opener=open_private) as file:
                # in one write, because other processes may be appending
                file.write(b"".join(map(_line, heard)))
            if len([*self._read()]) > MOST:
                self._write(list(self._read())[-MOST // 2 :])
        except OSError as error:
            _log.warning("cannot store what %s refuses: %s", model, error)

    def forget(self, providers: Iterable[str] = ()) -> int:
        """Forget what these providers refused, or everything, so that it is tried again. Return the number of
        lessons."""
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
