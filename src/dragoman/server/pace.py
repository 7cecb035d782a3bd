"""How often readers of live streams are written to: at once, unless the event loop is late.

A loop that is late again and again has more to write than it has time for. Then what comes for a reader
within a tenth of a second is put together into one write. What follows a pause, or is more than a piece of a
text, is written at once. One stall, however long, changes nothing: to hold pieces back would only make it
longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

TICK = 0.02  # seconds
TICKS = 5  # between two writes of pieces to the same reader, where the loop is late
LATE = 0.01  # seconds behind its time, on average
_WEIGHT = 0.1  # of one tick in that average
_MOST = LATE / _WEIGHT  # seconds that one tick counts for: not enough to be late by itself


class Pace:
    """A clock for all readers of one event loop, which runs while there are any."""

    def __init__(self) -> None:
        self.ticks = 0
        self.late = False
        self._lateness = 0.0
        self._readers = 0
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: list[list[Callable[[], None]]] = [[] for _ in range(TICKS)]

    def add_reader(self) -> None:
        self._readers += 1
        if self._timer is None:
            self._schedule()

    def remove_reader(self) -> None:
        self._readers -= 1
        if not self._readers and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def at_tick(self, tick: int, release: Callable[[], None]) -> None:
        """Call it then: one of the next few ticks."""
        self._waiting[tick % TICKS].append(release)

    def tick(self, lateness: float) -> None:
        """A tick that was due so many seconds ago; where that is long ago, also those that came after it."""
        self._lateness += _WEIGHT * (min(lateness, _MOST) - self._lateness)
        self.late = self._lateness > LATE
        for _ in range(1 + min(int(lateness / TICK), TICKS)):
            self.ticks += 1
            due, self._waiting[self.ticks % TICKS] = self._waiting[self.ticks % TICKS], []
            for release in due:
                release()

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = loop.time() + TICK
        self._timer = loop.call_at(self._due, self._look)

    def _look(self) -> None:
        self.tick(asyncio.get_running_loop().time() - self._due)
        self._schedule()


class FeedReader:
    """One who waits for frames. Woken once for everything that came since."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._waiter: asyncio.Future[None] | None = None
        self._woken = True  # at first there is always something to look at
        self._held = False
        self._wrote = -TICKS  # the tick in which it was last written a piece

    def wake(self, *, piece: bool = False) -> None:
        """There is something to read. A piece may be held back for the next one, everything else is not."""
        pace = self._pace
        if not piece:
            self._wrote = -TICKS  # the first piece after it goes at once
        elif pace.late and pace.ticks - self._wrote < TICKS:
            if not self._held:
                self._held = True
                pace.at_tick(self._wrote + TICKS, self._release_held)
            return
        else:
            self._wrote = pace.ticks
        self._release()

    async def wait(self) -> None:
        if not self._woken:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        self._woken = False

    def _release_held(self) -> None:
        if self._held:  # else something else has released it meanwhile
            self._wrote = self._pace.ticks
            self._release()

    def _release(self) -> None:
        self._held = False
        self._woken = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
