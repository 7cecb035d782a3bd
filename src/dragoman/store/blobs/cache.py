"""The blobs used last, in memory: a turn with attachments reads the same ones for every request."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator

from dragoman.store.blobs.blobs import Blobs

_ROOM = 64 * 2**20  # bytes


class CachedBlobs:
    """Other blobs behind a bounded cache. What a key stands for never changes, so nothing in it grows old."""

    def __init__(self, blobs: Blobs, *, room: int = _ROOM) -> None:
        self._blobs = blobs
        self._room = room
        self._used: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0

    async def put(self, data: bytes) -> str:
        key = await self._blobs.put(data)
        self._remember(key, data)
        return key

    async def read(self, key: str) -> bytes:
        if (data := self._used.get(key)) is not None:
            self._used.move_to_end(key)
            return data
        data = await self._blobs.read(key)
        self._remember(key, data)
        return data

    async def delete(self, key: str, *, unused_for: float = 0.0) -> bool:
        self._forget(key)
        return await self._blobs.delete(key, unused_for=unused_for)

    def keys(self, *, since: float = 0.0) -> AsyncIterator[str]:
        return self._blobs.keys(since=since)

    def _remember(self, key: str, data: bytes) -> None:
        self._forget(key)
        self._used[key] = data
        self._size += len(data)
        while self._size > self._room:
            self._forget(next(iter(self._used)))

    def _forget(self, key: str) -> None:
        if (data := self._used.pop(key, None)) is not None:
            self._size -= len(data)
