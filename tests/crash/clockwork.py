"""Kills a process at a chosen moment: before, inside or after one of its writes, or in one of its tools."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from pathlib import Path
from typing import NoReturn, TypeVar

from dragoman.store.sqlite import SqliteStore
from dragoman.store.sqlite.writer import Operation, Writer

T = TypeVar("T")
Moment = tuple[str, int]  # ("after", 7): after the seventh write; ("tool", 3): at the third line of a tool

WRITES = ("before", "inside", "after")
KINDS = (*WRITES, "tool")
NEVER: Moment = ("never", 0)


class Clockwork:
    """Counts the moments of each kind from when it is wound up, and strikes at one of them."""

    def __init__(self, moment: Moment = NEVER) -> None:
        self._moment = moment
        self._counts: dict[str, int] | None = None

    def wind(self) -> None:
        self._counts = dict.fromkeys(KINDS, 0)

    def count(self, kind: str) -> int:
        """How many there were since."""
        return self._counts[kind] if self._counts is not None else 0

    def tick(self, kind: str) -> None:
        if self._counts is not None:
            self._counts[kind] += 1
            if self._moment == (kind, self._counts[kind]):
                die()


class DeadlyStore(SqliteStore):
    """The real store, whose writer ticks at every write, whatever it writes and for whom."""

    def __init__(self, path: Path, clockwork: Clockwork, *, lease: float = 20.0) -> None:
        super().__init__(path, lease=lease)
        self._clockwork = clockwork

    async def open(self) -> None:
        await super().open()
        self._writer = _TickingWriter(self._writer, self._clockwork)  # type: ignore[assignment]


class _TickingWriter:
    def __init__(self, writer: Writer, clockwork: Clockwork) -> None:
        self._writer = writer
        self._clockwork = clockwork

    @property
    def commits(self) -> int:
        return self._writer.commits

    def submit(self, operation: Operation[T], *, sync: bool = False) -> asyncio.Future[T]:
        def write(db: sqlite3.Connection) -> T:
            written = operation(db)
            self._clockwork.tick("inside")  # in the writer's thread: nothing of it is committed
            return written

        self._clockwork.tick("before")
        future = self._writer.submit(write, sync=sync)
        future.add_done_callback(lambda _: self._clockwork.tick("after"))
        return future

    async def close(self) -> None:
        await self._writer.close()


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")
