"""The blobs used last, in memory: a turn with attachments reads the same ones for every request."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterable, AsyncIterator

from dragoman.store.blobs.blobs import Blobs, in_pieces

_ROOM = 64 * 2**20  # bytes
LARGE_HERE = 1 << 20  # bytes of one that is not worth it, where blobs are files of this machine
LARGE_AFAR = 16 << 20  # where each is fetched over a network


class CachedBlobs:
    """Other blobs behind a bounded cache. What a key stands for never changes, so nothing in it grows old."""

    def __init__(self, blobs: Blobs, *, room: int = _ROOM, large: int = LARGE_AFAR) -> None:
        self._blobs = blobs
        self._room = room
        self._large = large
        self._used: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0

    async def put(self, data: bytes) -> str:
        key = await self._blobs.put(data)
        self._remember(key, data)
        return key

    async def put_pieces(self, pieces: AsyncIterable[bytes]) -> tuple[str, int]:
        return await self._blobs.put_pieces(pieces)

    async def read(self, key: str) -> bytes:
        if (data := self._used.get(key)) is not None:
            self._used.move_to_end(key)
            return data
        data = await self._blobs.read(key)
        self._remember(key, data)
        return data

    async def size(self, key: str) -> int:
        data = self._used.get(key)
        return await self._blobs.size(key) if data is None else len(data)

    async def pieces(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        if await self.size(key) > self._large:
            found = self._blobs.pieces(key, start, end)
        else:
            found = in_pieces(await self.read(key), start, end)
        async for piece in found:
            yield piece

    async def delete(self, key: str, *, unused_for: float = 0.0) -> bool:
        self._forget(key)
        return await self._blobs.delete(key, unused_for=unused_for)

    def keys(self, *, since: float = 0.0) -> AsyncIterator[str]:
        return self._blobs.keys(since=since)

    def _remember(self, key: str, data: bytes) -> None:
        self._forget(key)
        if len(data) > self._large:
            return
        self._used[key] = data
        self._size += len(data)
        while self._size > self._room:
            self._forget(next(iter(self._used)))

    def _forget(self, key: str) -> None:
        if (data := self._used.pop(key, None)) is not None:
            self._size -= len(data)
