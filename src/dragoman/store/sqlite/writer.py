"""Writes from one thread: operations run in order of arrival, and many share a commit."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from dragoman.errors import EngineError
from dragoman.store.sql.database import Write
from dragoman.store.sqlite.readers import translate

T = TypeVar("T")

Operation = Callable[[sqlite3.Connection], T]
_Job = tuple[Operation[Any], "asyncio.Future[Any]", bool]
_Outcome = tuple["asyncio.Future[Any]", Any, BaseException | None]

_log = logging.getLogger("dragoman.store")


class Writer:
    """Changes the database from a dedicated thread, which survives every error."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._full = False  # whether SQLite syncs each commit to disk
        self.commits = 0
        self._thread = threading.Thread(target=self._work, name="dragoman-store", daemon=True)
        self._thread.start()

    def submit(self, operation: Operation[T], *, sync: bool = False) -> asyncio.Future[T]:
        """Run it in a transaction.

        The future is done after the commit or, with `sync`, once it is on disk.
        """
        if self._closed:
            raise EngineError("The store is closed, so Dragoman cannot write to it.")
        future: asyncio.Future[T] = Write(loop=self._loop)
        self._jobs.put((operation, future, sync))
        return future

    async def close(self) -> None:
        self._closed = True
        self._jobs.put(None)
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._thread.join()
        self._connection.close()

    # ── in the thread ─────────────────────────────────────────────────────────────────────────────

    def _work(self) -> None:
        while (first := self._jobs.get()) is not None:
            batch, last = [first], False
            try:
                while (job := self._jobs.get_nowait()) is not None:
                    batch.append(job)
                last = True
            except Empty:
                pass
            outcomes = self._commit(batch)
            try:
                self._loop.call_soon_threadsafe(_resolve, outcomes)
            except RuntimeError:  # The loop is closed, so no caller waits. Submitted operations are written.
                _log.warning("the event loop was closed before the store was")
            if last:
                return

    def _commit(self, batch: list[_Job]) -> list[_Outcome]:
        try:
            self._synchronise(any(job[2] for job in batch))
            return self._attempt(batch)
        except BaseException as error:  # A refusal, a full disk or a lost file: the whole batch fails.
            failure = translate(error, self._path)
            if self._connection.in_transaction:
                self._quietly("ROLLBACK")
            return [(future, None, failure) for _, future, _ in batch]

    def _synchronise(self, full: bool) -> None:
        """Set the mode only if it changes: SQLite parses a PRAGMA every time."""
        if full is not self._full:
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if full else 'NORMAL'}")
            self._full = full

    def _attempt(self, batch: list[_Job]) -> list[_Outcome]:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        outcomes: list[_Outcome]
        if len(batch) == 1:
            outcomes = [(batch[0][1], batch[0][0](self._connection), None)]
        else:
            outcomes = [self._run(operation, future) for operation, future, _ in batch]
        execute("COMMIT")
        self.commits += 1
        return outcomes

    def _run(self, operation: Operation[Any], future: asyncio.Future[Any]) -> _Outcome:
        """Run one operation of the batch, and undo only this one if it fails."""
        self._connection.execute("SAVEPOINT one")
        try:
            result = operation(self._connection)
        except Exception as error:
            if not self._connection.in_transaction:
                raise  # SQLite has undone the whole batch, as it does when the disk is full.
            self._connection.execute("ROLLBACK TO one")
            self._connection.execute("RELEASE one")
            return future, None, translate(error, self._path)
        self._connection.execute("RELEASE one")
        return future, result, None

    def _quietly(self, statement: str) -> None:
        try:
            self._connection.execute(statement)
        except sqlite3.Error:
            _log.warning("the store %s: %s failed", self._path, statement, exc_info=True)


def _resolve(outcomes: list[_Outcome]) -> None:
    for future, result, error in outcomes:
        if error is None:
            future.set_result(result)
        elif isinstance(error, StopIteration):  # Futures do not accept it.
            future.set_exception(EngineError(f"a write raised {error!r}"))
        else:
            future.set_exception(error)
