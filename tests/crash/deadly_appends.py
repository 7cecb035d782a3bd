"""A store that dies with its process at a counted write of a turn, and a diary on disk."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from dragoman.messages.questions import Answer, Grant, Question
from dragoman.store.sqlite import SqliteStore
from dragoman.store.store import Change, Start, Started

Moment = tuple[
    str, int
]  # ("after", 7): after the seventh write; ("before", 7); ("tool", 3): in the third line

NEVER: Moment = ("never", 0)


class Clockwork:
    """Counts moments of each kind, and strikes at one of them."""

    def __init__(self, moment: Moment) -> None:
        self.set(moment)

    def set(self, moment: Moment) -> None:
        """Count from here."""
        self.moment = moment
        self.counts = {"before": 0, "after": 0, "tool": 0}

    def tick(self, kind: str) -> None:
        self.counts[kind] += 1
        if self.moment == (kind, self.counts[kind]):
            _die()


class DeadlyStore(SqliteStore):
    """The real store. Dies with its process before or after a write, as told."""

    def __init__(self, path: Path, clockwork: Clockwork, *, lease: float = 20.0) -> None:
        super().__init__(path, lease=lease)
        self._clockwork = clockwork

    async def start(self, start: Start) -> Started | None:
        self._clockwork.tick("before")
        started = await super().start(start)
        self._clockwork.tick("after")
        return started

    async def answer(self, question: str, answer: Answer, grants: Sequence[Grant] = ()) -> Question:
        self._clockwork.tick("before")
        settled = await super().answer(question, answer, grants)
        self._clockwork.tick("after")
        return settled

    def append(
        self, turn: str, epoch: int, seq: int, change: Change, *, sync: bool = False
    ) -> asyncio.Future[None]:
        self._clockwork.tick("before")
        future = super().append(turn, epoch, seq, change, sync=sync)
        future.add_done_callback(lambda _: self._clockwork.tick("after"))
        return future


def note(diary: Path, line: dict[str, Any]) -> None:
    """One write system call: it is there for other processes at once, also if this one dies."""
    with diary.open("a") as file:
        file.write(json.dumps(line) + "\n")


def lines(diary: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in diary.read_text().splitlines()] if diary.exists() else []


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")
