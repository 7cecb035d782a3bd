"""Events in, numbered; each listener reads them at its own pace and may come back where it left off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from dragoman.messages.events import Event

# Numbers grow across restarts: each owner of a turn counts from a thousand million of its own.
EPOCH = 1_000_000_000


class Broadcast:
    """The events of one turn since this process took it up. A slow listener costs only its own position."""

    def __init__(self, epoch: int) -> None:
        self._base = (epoch - 1) * EPOCH
        self._events: list[Event] = []
        self._waiting: list[asyncio.Future[None]] = []
        self.closed = False

    @property
    def last(self) -> int:
        return self._base + len(self._events)

    def publish(self, event: Event) -> None:
        self._events.append(event)
        event.seq = self._base + len(self._events)
        if self._waiting:
            self._wake()

    def close(self) -> None:
        self.closed = True
        self._wake()

    def since(self, number: int) -> Sequence[Event]:
        """What came after this number. Of an earlier owner's numbers none are left: all of ours are new."""
        return self._events[max(0, number - self._base) :]

    async def follow(self, after: int = 0) -> AsyncIterator[Event]:
        """Every event after this number, each once, until the turn is over."""
        place = max(0, after - self._base)
        while True:
            while place < len(self._events):
                event = self._events[place]
                place += 1
                yield event
            if self.closed:
                return
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)
