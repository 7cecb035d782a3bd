"""Which calls may run at once, and the place of each among them: free while its tool waits for a person."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from dragoman.tools.execute import Outcome


@dataclass(slots=True)
class Lanes:
    """Who may run beside whom: so many calls at once, and those that want to be alone one by one."""

    room: asyncio.Semaphore
    alone: asyncio.Lock
    detached: set[asyncio.Task[Outcome]]  # tools that outlive their turn because they may not be stopped
    stopped: asyncio.Event = field(default_factory=asyncio.Event)  # a person wants no more calls

    @asynccontextmanager
    async def place(self, *, alone: bool) -> AsyncIterator[tuple[Slot, bool]]:
        """A place for as long as the block, and whether it had to be waited for."""
        waited = self.room.locked() or (alone and self.alone.locked())
        async with self.alone if alone else nullcontext(), Slot(self.room) as slot:
            yield slot, waited


class Slot:
    """Held for as long as a block, but for the times when a question of the tool is open."""

    def __init__(self, room: asyncio.Semaphore) -> None:
        self._room = room
        self._held = False
        self._over = False
        self._open = 0  # questions: a tool may ask several at once
        self._returning: asyncio.Task[None] | None = None  # the one that takes the place again

    async def __aenter__(self) -> Self:
        await self._take()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        self._leave()

    @asynccontextmanager
    async def freed(self) -> AsyncIterator[None]:
        """Others may run meanwhile. Whoever has the last answer goes on when there is a place again; a tool
        that waits no longer (`asyncio.wait_for`) goes on at once, and counts again as soon as that can be."""
        self._open += 1
        self._leave()
        waits = True
        try:
            yield
        except asyncio.CancelledError:
            waits = False
            raise
        finally:
            self._open -= 1
            if not self._open and not self._over:
                self._returning = asyncio.create_task(self._take())
                if waits:
                    await asyncio.wait({self._returning})  # until it has the place, or need not have it

    async def _take(self) -> None:
        await self._room.acquire()
        self._held = True

    def _leave(self) -> None:
        if self._returning is not None:
            self._returning.cancel()
        if self._held:
            self._held = False
            self._room.release()
