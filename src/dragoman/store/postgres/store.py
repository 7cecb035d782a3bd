"""The store in PostgreSQL: the operations that all engines share, on a pool of connections."""

from __future__ import annotations

import asyncio
import logging

from dragoman.errors import DragomanError
from dragoman.store.blobs.place import named_blobs
from dragoman.store.postgres.blobs import TableBlobs
from dragoman.store.postgres.search import PostgresSearch
from dragoman.store.sql.attachments import SqlAttachments
from dragoman.store.sql.events import SqlEvents
from dragoman.store.sql.provider_files import SqlProviderFiles
from dragoman.store.sql.queue import SqlQueue
from dragoman.store.sql.raw import SqlRaw
from dragoman.store.sql.retention import SqlRetention

_SWEEP = 3600.0  # seconds between looks for what may be removed by now
_log = logging.getLogger("dragoman.store")


class PostgresStore(
    PostgresSearch, SqlQueue, SqlRaw, SqlEvents, SqlRetention, SqlAttachments, SqlProviderFiles
):
    """Implements `store.Store`. Any number of processes, on any machines, may use one database. `blobs` is
    where new attachments go, such as `s3://bucket/prefix`; else into a table."""

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
            except Exception as error:
                _log.warning("upkeep of the store: %s", error, exc_info=not isinstance(error, DragomanError))
                await asyncio.sleep(_SWEEP)
