"""The store in PostgreSQL: the operations that all engines share, on a pool of connections."""

from __future__ import annotations

import asyncio
import logging

from dragoman.store.blobs.cache import CachedBlobs
from dragoman.store.postgres.blobs import TableBlobs
from dragoman.store.postgres.search import PostgresSearch
from dragoman.store.sql.attachments import SqlAttachments
from dragoman.store.sql.deletion import SqlDeletion
from dragoman.store.sql.events import SqlEvents
from dragoman.store.sql.people import SqlPeople
from dragoman.store.sql.queue import SqlQueue
from dragoman.store.sql.raw import SqlRaw

_SWEEP = 3600.0  # seconds between looks for what may be removed by now
_log = logging.getLogger("dragoman.store")


class PostgresStore(PostgresSearch, SqlQueue, SqlPeople, SqlRaw, SqlEvents, SqlDeletion, SqlAttachments):
    """Implements `store.Store`. Any number of processes, on any machines, may use one database."""

    def __init__(self, url: str, *, connections: int = 10, lease: float = 10.0) -> None:
        super().__init__(url, connections=connections, lease=lease)
        self._blobs = CachedBlobs(TableBlobs(self._run, self._all))

    async def open(self) -> None:
        await super().open()
        try:
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
        """What every process that uses this database knows under the name: the first one's."""
        await self._run("add_secret", name=name, value=fresh)
        rows = await self._all("secret", name=name)
        return bytes(rows[0]["value"])

    async def _keep_up(self) -> None:
        """What fails in it is logged, and tried again later."""
        while True:
            try:
                await self._finish_deletions()
                await asyncio.sleep(_SWEEP)
                await self._drop_ended_events()
            except Exception:
                _log.warning("upkeep of the store", exc_info=True)
                await asyncio.sleep(_SWEEP)
