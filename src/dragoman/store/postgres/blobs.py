"""Blobs in the database itself: every node sees them, and one backup holds everything."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from dragoman.errors import NotFound
from dragoman.store.blobs.blobs import checked_data, checked_key, key_of

_GONE = "restore it from a copy of the database, or send the message again without it"


class TableBlobs:
    """Implements `Blobs`. `run` changes rows and says how many, `rows` reads them, by a statement's name."""

    def __init__(self, run: Callable[..., Awaitable[int]], rows: Callable[..., Awaitable[list[Any]]]) -> None:
        self._run = run
        self._rows = rows

    async def put(self, data: bytes) -> str:
        key = key_of(data)
        await self._run("put_blob", key=key, now=time.time(), data=data)
        return key

    async def read(self, key: str) -> bytes:
        rows = await self._rows("blob", key=checked_key(key))
        if not rows:
            raise NotFound("blob", key, _GONE)
        return checked_data(key, rows[0]["data"])

    async def delete(self, key: str, *, unused_for: float = 0.0) -> bool:
        before = time.time() - unused_for
        gone = await self._run("delete_blob", key=checked_key(key), before=before)
        return bool(gone) or not await self._rows("blob_is_there", key=key)

    async def keys(self, *, since: float = 0.0) -> AsyncIterator[str]:
        for row in await self._rows("blobs_since", since=since):
            yield row["key"]
