"""How a suite gets a store to look at, and damages what is in it: each group of promises is a subclass."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from dragoman.store.store import Store

Noun: TypeAlias = Literal[
    "conversation", "message", "call", "question", "grant", "fact", "signal", "queued turn"
]


class Suite:
    async def make(self, folder: Path) -> Store:
        """A store in this folder, not yet open. Yours to override."""
        raise NotImplementedError

    async def damage(self, folder: Path, noun: Noun, id: str) -> None:
        """Make one row unreadable without the knowledge of an open store, as a failing disk would.

        The row is a conversation's settings, a grant's action, or the body of anything else. `id` is the
        turn's for a fact (its last), a signal (all of them) and a queued turn. Override this method.
        """
        raise NotImplementedError

    @asynccontextmanager
    async def opened(self, folder: Path) -> AsyncIterator[Store]:
        store = await self.make(folder)
        await store.open()
        try:
            yield store
        finally:
            await store.close()
