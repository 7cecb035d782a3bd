"""Blobs at a place that was named after some were stored: that one first, then the database's own."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import TypeVar

from dragoman.errors import NotFound
from dragoman.store.blobs.blobs import Blobs

T = TypeVar("T")


class FallbackBlobs:
    """Implements `Blobs`. What is put goes to the first; what was stored before is still in the second."""

    def __init__(self, first: Blobs, second: Blobs) -> None:
        self._first = first
        self._second = second

    async def put(self, data: bytes) -> str:
        return await self._first.put(data)

    async def put_pieces(self, pieces: AsyncIterable[bytes]) -> tuple[str, int]:
        return await self._first.put_pieces(pieces)

    async def read(self, key: str) -> bytes:
        return await self._where_it_is(lambda blobs: blobs.read(key))

    async def size(self, key: str) -> int:
        return await self._where_it_is(lambda blobs: blobs.size(key))

    async def pieces(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        async def holds(blobs: Blobs) -> Blobs:
            await blobs.size(key)
            return blobs

        place = await self._where_it_is(holds)
        async for piece in place.pieces(key, start, end):
            yield piece

    async def _where_it_is(self, ask: Callable[[Blobs], Awaitable[T]]) -> T:
        try:
            return await ask(self._first)
        except NotFound as missing:
            try:
                return await ask(self._second)
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
