"""Blobs at a place that was named after some were stored: that one first, then the database's own."""

from __future__ import annotations

from collections.abc import AsyncIterator

from dragoman.errors import NotFound
from dragoman.store.blobs.blobs import Blobs


class FallbackBlobs:
    """Implements `Blobs`. What is put goes to the first; what was stored before is still in the second."""

    def __init__(self, first: Blobs, second: Blobs) -> None:
        self._first = first
        self._second = second

    async def put(self, data: bytes) -> str:
        return await self._first.put(data)

    async def read(self, key: str) -> bytes:
        try:
            return await self._first.read(key)
        except NotFound as missing:
            try:
                return await self._second.read(key)
            except NotFound:
                raise missing from None  # it says what to do about the place that is used now

    async def delete(self, key: str, *, unused_for: float = 0.0) -> bool:
        gone = await self._first.delete(key, unused_for=unused_for)
        return gone and await self._second.delete(key, unused_for=unused_for)

    async def keys(self, *, since: float = 0.0) -> AsyncIterator[str]:
        seen = set[str]()
        async for key in self._second.keys(since=since):
            seen.add(key)
            yield key
        async for key in self._first.keys(since=since):
            if key not in seen:
                yield key
