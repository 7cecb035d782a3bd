"""A few connections that only read, each in one thread at a time: a slow search holds up no other read."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

from dragoman.errors import EngineError
from dragoman.store.sqlite.faults import translate

T = TypeVar("T")

READERS = 4


class Readers:
    """Runs reads in threads, each with a connection that is made when it is first needed. What was committed
    before a read begins, it sees."""

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
            raise EngineError("the store is closed: nothing more can be read from it")
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, read)

    async def run_slow(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """The same for what may take long: half of the connections are for other reads."""
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
        """One that no other thread uses: there are never more than threads."""
        with suppress(Empty):
            return self._free.get_nowait()
        connection = self._connect()
        self._connections.append(connection)
        connection.execute("PRAGMA query_only = ON")
        return connection
