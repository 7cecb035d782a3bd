"""Manages a few read-only connections, each in one thread at a time, so that a slow search blocks no other
read."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

from dragoman.errors import EngineError, StoreUnavailable
from dragoman.messages.boundary import half_a_character
from dragoman.store.sql.database import numbered, statements

# Converts SQLite errors into errors that explain what happened and what to do.


_WAIT = "close the other program, or try again"
_THERE = "check that the file exists, and that you can read and write it"
_RIGHT = "give yourself write access to the file and its folder"
_RESTORE = "restore a backup, or run `sqlite3 FILE .recover` to save what is readable"
_DOCTOR = "run `dragoman doctor` to list the damage"
# By SQLite result code: what happened, what to do, whether it is retryable.
_FAULTS: dict[int, tuple[str, str, bool]] = {
    sqlite3.SQLITE_BUSY: ("another program is writing to it and does not stop", _WAIT, True),
    sqlite3.SQLITE_LOCKED: ("another program is writing to it and does not stop", _WAIT, True),
    sqlite3.SQLITE_FULL: ("the disk is full", "free some space, and try again", True),
    sqlite3.SQLITE_IOERR: (
        "the disk reports an error",
        "check whether the disk is full, failing or missing",
        True,
    ),
    sqlite3.SQLITE_NOMEM: ("no memory left", "close other programs, and try again", True),
    sqlite3.SQLITE_CANTOPEN: ("the file does not open", _THERE, False),
    sqlite3.SQLITE_READONLY: ("the file or its folder is read-only", _RIGHT, False),
    sqlite3.SQLITE_PERM: ("access denied", _RIGHT, False),
    sqlite3.SQLITE_CORRUPT: ("the file is damaged", _RESTORE, False),
    sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY: ("a row that this belongs to is missing", _DOCTOR, False),
    sqlite3.SQLITE_NOTADB: ("the file is no longer a database", _RESTORE, False),
}


def translate(error: BaseException, path: Path) -> BaseException:
    """Convert an error: StoreUnavailable for faults of the disk or another process, BadRequest for
    unencodable text.

    Any other error stays unchanged.
    """
    if isinstance(error, UnicodeEncodeError):
        return half_a_character("a text")
    if not isinstance(error, sqlite3.DatabaseError):
        return error
    code = getattr(error, "sqlite_errorcode", 0)
    if code not in _FAULTS:
        code &= 0xFF  # The other bits distinguish kinds of one fault.
    if code not in _FAULTS:
        return error
    what, hint, retryable = _FAULTS[code]
    unavailable = StoreUnavailable(f"the store {path}: {what} ({error})", hint, retryable=retryable)
    unavailable.__cause__ = error
    return unavailable


T = TypeVar("T")

READERS = 4


class Readers:
    """Runs reads in threads, with connections made on demand. A read sees everything committed before its
    start."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], path: Path) -> None:
        self._connect = connect
        self._connections: list[sqlite3.Connection] = []
        self._path = path
        self._free: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="dragoman-reader")
        self._slow = asyncio.Semaphore(READERS // 2)
        self._closed = False

    async def run(self, read: Callable[[sqlite3.Connection], T]) -> T:
        if self._closed:
            raise EngineError("The store is closed, so Dragoman cannot read from it.")
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, read)

    async def run_slow(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Run a slow read. Half of the connections stay available for other reads."""
        async with self._slow:
            return await self.run(read)

    async def close(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._threads.shutdown()
        for connection in self._connections:
            connection.close()

    def _run(self, read: Callable[[sqlite3.Connection], T]) -> T:
        try:
            connection = self._next()
            try:
                return read(connection)
            finally:
                self._free.put(connection)
        except (sqlite3.DatabaseError, UnicodeEncodeError) as error:
            raise translate(error, self._path) from error

    def _next(self) -> sqlite3.Connection:
        """Return a connection that no other thread uses. There are never more connections than threads."""
        with suppress(Empty):
            return self._free.get_nowait()
        connection = self._connect()
        self._connections.append(connection)
        connection.execute("PRAGMA query_only = ON")
        return connection


# SQLite's statements by name, such as `queries()["add_message"]`, and its migrations.


_SQL = files("dragoman.store.sqlite") / "sql"
MIGRATIONS = _SQL / "migrations"


@cache
def queries() -> Mapping[str, str]:
    return statements(_SQL / "queries")  # Row locks are unnecessary: only one process writes at a time.


def schema() -> str:
    return (_SQL / "schema.sql").read_text("utf-8")


def migrations() -> list[tuple[int, str]]:
    return numbered(MIGRATIONS)
