"""A queue of turns that wait for somebody to run them, and the one for a single process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from heapq import heappop, heappush
from typing import Protocol, TypeAlias

Work: TypeAlias = Callable[[str], Awaitable[None]]


class JobQueue(Protocol):
    """Hands turns out to whoever works, each to one at a time.

    It may forget, and may hand out what is over: whoever takes a turn claims it in the store, and turns that
    nobody runs are put here again.
    """

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def put(self, turn: str, *, urgent: bool = False, delay: float = 0.0) -> None:
        """Let somebody run it, in so many seconds, before those that are not urgent. Nothing happens where
        it waits here already: to be run now, or later, each for itself."""

    async def work(self, run: Work, *, places: int) -> None:
        """Run what is handed out, so many at once, until this is cancelled: what runs then goes on."""

    async def waiting(self) -> tuple[int, float]:
        """How many turns wait here for a worker, and for how many seconds the first of them has."""

    def alone(self) -> AbstractAsyncContextManager[None]:
        """Nobody else, in any process, is in here at the same time."""


def job_queue_of(store: object) -> Callable[[], JobQueue] | None:
    """Makes the queue that every process of this store sees; None where the store has none."""
    return getattr(store, "job_queue", None)


class MemoryJobs:
    """Implements `JobQueue` for one process."""

    def __init__(self) -> None:
        self._waiting: list[tuple[bool, int, str, float]] = []
        self._turns: set[str] = set()
        self._later: set[str] = set()
        self._count = 0
        self._more = asyncio.Event()
        self._running: set[asyncio.Future[None]] = set()
        self._lock = asyncio.Lock()

    async def open(self) -> None:
        """Empty, also where it was open before, in another event loop: who opens it finds what waits."""
        self._waiting, self._turns, self._later = [], set(), set()
        self._more, self._lock = asyncio.Event(), asyncio.Lock()

    async def close(self) -> None:
        pass

    async def put(self, turn: str, *, urgent: bool = False, delay: float = 0.0) -> None:
        if not delay:
            self._add(turn, urgent)
        elif turn not in self._later:
            self._later.add(turn)
            asyncio.get_running_loop().call_later(delay, self._add_late, turn, urgent)

    def _add_late(self, turn: str, urgent: bool) -> None:
        self._later.discard(turn)
        self._add(turn, urgent)

    def _add(self, turn: str, urgent: bool) -> None:
        if turn not in self._turns:
            self._turns.add(turn)
            self._count += 1
            heappush(self._waiting, (not urgent, self._count, turn, asyncio.get_running_loop().time()))
            self._more.set()

    async def work(self, run: Work, *, places: int) -> None:
        free = asyncio.Semaphore(places)
        while True:
            await free.acquire()
            while not self._waiting:
                self._more.clear()
                await self._more.wait()
            _, _, turn, _ = heappop(self._waiting)
            self._turns.discard(turn)
            running = asyncio.ensure_future(run(turn))
            self._running.add(running)
            running.add_done_callback(self._running.discard)
            running.add_done_callback(lambda _: free.release())

    async def waiting(self) -> tuple[int, float]:
        now = asyncio.get_running_loop().time()
        return len(self._waiting), max((now - since for *_, since in self._waiting), default=0.0)

    def alone(self) -> AbstractAsyncContextManager[None]:
        return self._lock
