"""Limits concurrent calls. A call's slot is free while its tool waits for a user."""

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
    """Limits which calls run concurrently: a maximum number, and exclusive calls one by one."""

    room: asyncio.Semaphore
    alone: asyncio.Lock
    detached: set[asyncio.Task[Outcome]]  # tools that outlive their turn because they must not be stopped
    stopped: asyncio.Event = field(default_factory=asyncio.Event)  # set when a user stops all further calls

    @asynccontextmanager
    async def place(self, *, alone: bool) -> AsyncIterator[tuple[Slot, bool]]:
        """Hold a slot for the block, and tell whether it was waited for."""
        waited = self.room.locked() or (alone and self.alone.locked())
        async with self.alone if alone else nullcontext(), Slot(self.room) as slot:
            yield slot, waited


class Slot:
    """A slot held for a block, except while questions of the tool are open."""

    def __init__(self, room: asyncio.Semaphore) -> None:
        self._room = room
        self._held = False
        self._over = False
        self._open = 0  # Open questions. A tool may ask several at the same time.
        self._returning: asyncio.Task[None] | None = None  # the task that reacquires the slot

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
        """Free the slot for other calls during the block.

        After its last answer, a tool continues once a slot is free. A tool that stopped waiting
        (`asyncio.wait_for`) continues immediately, and counts again as soon as a slot is free.
        """
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
                    # Wait until the slot is reacquired or no longer needed.
                    await asyncio.wait({self._returning})

    async def _take(self) -> None:
        await self._room.acquire()
        self._held = True

    def _leave(self) -> None:
        if self._returning is not None:
            self._returning.cancel()
        if self._held:
            self._held = False
            self._room.release()
