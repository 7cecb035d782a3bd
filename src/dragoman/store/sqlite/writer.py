"""Operations in from the event loop, commits out: one thread writes, and many callers share a commit."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from dragoman.errors import EngineError

T = TypeVar("T")

Operation = Callable[[sqlite3.Connection], T]
_Job = tuple[Operation[Any], "asyncio.Future[Any]", bool]


class _Write(asyncio.Future[T]):
    """A write that was handed over cannot be called back: whoever waits and is cancelled waits it out."""

    def cancel(self, msg: Any | None = None) -> bool:
        return False


class Writer:
    """The one thread that changes the database. Operations run in the order in which they came."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="dragoman-store", daemon=True)
        self._thread.start()

    def submit(self, operation: Operation[T], *, sync: bool = False) -> asyncio.Future[T]:
        """Run it in a transaction. The future is done when the commit is; with `sync`, when it is on disk."""
        if self._closed:
            raise EngineError("the store is closed: nothing more can be written to it")
        future: asyncio.Future[T] = _Write(loop=self._loop)
        self._jobs.put((operation, future, sync))
        return future

    async def close(self) -> None:
        self._closed = True
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)
        self._connection.close()

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
            self._loop.call_soon_threadsafe(_resolve, outcomes)
            if last:
                return

    def _commit(self, batch: list[_Job]) -> list[tuple[asyncio.Future[Any], Any, BaseException | None]]:
        execute = self._connection.execute
        sync = any(job[2] for job in batch)
        try:
            if sync:
                execute("PRAGMA synchronous = FULL")
            execute("BEGIN IMMEDIATE")
            outcomes: list[tuple[asyncio.Future[Any], Any, BaseException | None]]
            if len(batch) == 1:
                outcomes = [(batch[0][1], batch[0][0](self._connection), None)]
            else:
                outcomes = [self._run(operation, future) for operation, future, _ in batch]
            execute("COMMIT")
        except BaseException as error:  # a refusal, a full disk, a lost file: nobody's write happened
            if self._connection.in_transaction:
                execute("ROLLBACK")
            return [(future, None, error) for _, future, _ in batch]
        finally:
            if sync:
                execute("PRAGMA synchronous = NORMAL")
        return outcomes

    def _run(
        self, operation: Operation[Any], future: asyncio.Future[Any]
    ) -> tuple[asyncio.Future[Any], Any, BaseException | None]:
        """One operation of the batch, undone alone if it fails."""
        self._connection.execute("SAVEPOINT one")
        try:
            result = operation(self._connection)
        except Exception as error:
            self._connection.execute("ROLLBACK TO one")
            self._connection.execute("RELEASE one")
            return future, None, error
        self._connection.execute("RELEASE one")
        return future, result, None


def _resolve(outcomes: list[tuple[asyncio.Future[Any], Any, BaseException | None]]) -> None:
    for future, result, error in outcomes:
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)
