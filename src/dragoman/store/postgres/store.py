"""Provides the store in PostgreSQL: the operations that all engines share, on a pool of connections."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Any

from dragoman.errors import DragomanError, NotFound
from dragoman.sentences import sentence
from dragoman.store.blobs.blobs import checked_data, checked_key, fetched_in_pieces, joined, key_of
from dragoman.store.blobs.place import named_blobs
from dragoman.store.postgres.search import PostgresSearch
from dragoman.store.sql.database_copy import SqlRaw
from dragoman.store.sql.deletion import SqlAttachments, SqlProviderFiles, SqlRetention
from dragoman.store.sql.questions import SqlEvents
from dragoman.store.sql.turns import SqlQueue

# ── attachments in the database ───────────────────────────────────────────────────────────────────
# Keeps blobs in the database: every server sees them, and one backup contains everything.


_GONE = sentence("blob.from_database")


class TableBlobs:
    """Implements `Blobs`.

    `run` changes rows and returns their number, `rows` reads them, by statement name.
    """

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


_SWEEP = 3600.0  # Seconds between checks for data to remove.
_log = logging.getLogger("dragoman.store")


class PostgresStore(
    PostgresSearch, SqlQueue, SqlRaw, SqlEvents, SqlRetention, SqlAttachments, SqlProviderFiles
):
    """Implements `store.Store`. Any number of processes on any machines can use one database.

    `blobs` is the place of new attachments, such as `s3://bucket/prefix`. By default, they go into a table.
    """

    def __init__(
        self,
        url: str,
        *,
        connections: int = 10,
        lease: float = 10.0,
        blobs: str | None = None,
        migrates: bool = True,
    ) -> None:
        super().__init__(url, connections=connections, lease=lease, migrates=migrates)
        self._place_blobs(TableBlobs(self._run, self._all), named_blobs(blobs, own="database"))

    async def open(self) -> None:
        await super().open()
        try:
            await self._claim_blobs()
            await self._drop_ended_events()
        except BaseException:
            await super().close()
            raise
        self._upkeep = asyncio.create_task(self._keep_up())

    async def close(self) -> None:
        self._upkeep.cancel()
        await asyncio.wait([self._upkeep])
        await super().close()

    async def shared_secret(self, name: str, fresh: bytes) -> bytes:
        """Return the secret of this name, the same for every process: the first one stored."""
        await self._run("add_secret", name=name, value=fresh)
        rows = await self._all("secret", name=name)
        return bytes(rows[0]["value"])

    async def _keep_up(self) -> None:
        """Run background upkeep. Failures are logged and retried later."""
        while True:
            try:
                await self._finish_deletions()
                await asyncio.sleep(_SWEEP)
                await self._drop_ended_events()
            except Exception as error:
                _log.warning("upkeep of the store: %s", error, exc_info=not isinstance(error, DragomanError))
                await asyncio.sleep(_SWEEP)
