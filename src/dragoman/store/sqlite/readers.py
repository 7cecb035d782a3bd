"""A few connections that only read, each in one thread at a time: a slow search holds up no other read."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from dragoman.errors import EngineError
from dragoman.store.sqlite.faults import translate

T = TypeVar("T")

READERS = 4


class Readers:
    """Runs reads in threads. What was committed before a read begins, it sees."""

    def __init__(self, connections: Sequence[sqlite3.Connection], path: Path) -> None:
        self._connections = connections
        self._path = path
        self._free: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        for connection in connections:
            self._free.put(connection)
        self._threads = ThreadPoolExecutor(len(connections), thread_name_prefix="dragoman-reader")
        self._slow = asyncio.Semaphore(max(1, len(connections) // 2))
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
        await asyncio.to_thread(self._threads.shutdown)
        for connection in self._connections:
            await asyncio.to_thread(connection.close)

    def _run(self, read: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._free.get()
        try:
            return read(connection)
        except sqlite3.DatabaseError as error:
            raise translate(error, self._path) from error
        finally:
            self._free.put(connection)
