"""Blobs in the database itself: every node sees them, and one backup holds everything."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Any

from dragoman.errors import NotFound
from dragoman.sentences import sentence
from dragoman.store.blobs.blobs import checked_data, checked_key, fetched_in_pieces, joined, key_of

_GONE = sentence("blob.from_database")


class TableBlobs:
    """Implements `Blobs`. `run` changes rows and says how many, `rows` reads them, by a statement's name."""

    def __init__(self, run: Callable[..., Awaitable[int]], rows: Callable[..., Awaitable[list[Any]]]) -> None:
        self._run = run
        self._rows = rows

    async def put(self, data: bytes) -> str:
        key = await asyncio.to_thread(key_of, data)
        await self._run("put_blob", key=key, now=time.time(), data=data)
        return key

    async def put_pieces(self, pieces: AsyncIterable[bytes]) -> tuple[str, int]:
        data = await joined(pieces)
        return await self.put(data), len(data)

    async def read(self, key: str) -> bytes:
        rows = await self._rows("blob", key=checked_key(key))
        if not rows:
            raise NotFound("blob", key, _GONE)
        return await asyncio.to_thread(checked_data, key, rows[0]["data"])

    async def size(self, key: str) -> int:
        rows = await self._rows("blob_size", key=checked_key(key))
        if not rows:
            raise NotFound("blob", key, _GONE)
        return int(rows[0]["size"])

    async def pieces(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        async def fetch(at: int, upto: int) -> bytes:
            rows = await self._rows("part_of_blob", key=key, start=at + 1, count=upto - at)
            if not rows:
                raise NotFound("blob", key, _GONE)
            return bytes(rows[0]["data"])

        async for piece in fetched_in_pieces(key, await self.size(key), start, end, fetch):
            yield piece

    async def delete(self, key: str, *, unused_for: float = 0.0) -> bool:
        before = time.time() - unused_for
        gone = await self._run("delete_blob", key=checked_key(key), before=before)
        return bool(gone) or not await self._rows("blob_is_there", key=key)

    async def keys(self, *, since: float = 0.0) -> AsyncIterator[str]:
        for row in await self._rows("blobs_since", since=since):
            yield row["key"]
