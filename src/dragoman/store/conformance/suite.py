"""How the promises get a store to look at: each group of them is a subclass of this."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from dragoman.store.store import Store


class Suite:
    async def make(self, folder: Path) -> Store:
        """A store whose memory is in this folder, not yet open. Yours to override."""
        raise NotImplementedError

    @asynccontextmanager
    async def opened(self, folder: Path) -> AsyncIterator[Store]:
        store = await self.make(folder)
        await store.open()
        try:
            yield store
        finally:
            await store.close()
