"""Kills a process at a chosen moment: before, inside or after one of its writes, or in one of its tools."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import NoReturn, TypeVar

from dragoman.store.postgres import PostgresStore
from dragoman.store.sql.database import Operation, SqlConnection, SqlDatabase
from dragoman.store.sqlite import SqliteStore
from dragoman.store.store import Store
from tests.postgres import postgres_of

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


class Deadly(SqlDatabase):
    """A mixin that ticks at every write of its store, whatever the write contains."""

    clockwork: Clockwork

    def _write(
        self, operation: Operation[T], *, sync: bool = False, line: str | None = None
    ) -> asyncio.Future[T]:
        def write(db: SqlConnection) -> T:
            written = operation(db)
            self.clockwork.tick("inside")  # nothing of this write is committed
            return written

        self.clockwork.tick("before")
        future: asyncio.Future[T] = super()._write(write, sync=sync, line=line)  # type: ignore[safe-super]
        future.add_done_callback(lambda _: self.clockwork.tick("after"))
        return future


class DeadlySqlite(Deadly, SqliteStore):
    pass


class DeadlyPostgres(Deadly, PostgresStore):
    pass


def deadly_store(folder: Path, clockwork: Clockwork, *, lease: float = 20.0) -> Store:
    """The real store of this folder, which is to die at a moment."""
    url = postgres_of(folder)
    store = DeadlySqlite(folder / "chat.db", lease=lease) if url is None else DeadlyPostgres(url, lease=lease)
    store.clockwork = clockwork
    return store


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")
