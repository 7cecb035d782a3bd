"""Provides the store in one SQLite file, with blobs in the folder next to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.store.blobs.folder import FolderBlobs
from dragoman.store.blobs.place import named_blobs
from dragoman.store.sql.database import SqlConnection
from dragoman.store.sql.database_copy import SqlRaw
from dragoman.store.sql.deletion import SqlAttachments, SqlDeletion, SqlProviderFiles, SqlRetention
from dragoman.store.sql.questions import SqlEvents
from dragoman.store.sql.turns import SqlQueue
from dragoman.store.sqlite.search import SqliteSearch

# ── upkeep ────────────────────────────────────────────────────────────────────────────────────────
# Runs the SQLite store's background work in small steps: index, checkpoints, deletions.


_QUIET = 1.0  # Seconds without a new text after which the index is updated.
_AT_LEAST = 10.0  # Maximum seconds without an update under constant writes.
_PAUSE = 0.01  # Seconds between two steps, for other writers.
_CHECKPOINT = 0.5  # seconds between checkpoints, while there are writes
_SWEEP = 3600.0  # Seconds between checks for removable blobs.
_FREE = 250  # Pages, about a megabyte, that a file always keeps free.
_GIVEN_BACK = 500  # Pages, 2 MB, that one step gives back to the disk.

_log = logging.getLogger("dragoman.store")


class SqliteUpkeep(SqliteSearch, SqlDeletion, SqlEvents):
    """Tasks that live as long as the store is open. Failures are logged and retried later."""

    async def open(self) -> None:
        await super().open()
        try:
            await self._claim_blobs()
        except BaseException:
            await super().close()
            raise
        await _logged(self._drop_ended_events)
        self._upkeep = [asyncio.create_task(work()) for work in (self._keep_up, self._checkpoint_regularly)]

    async def close(self) -> None:
        for task in self._upkeep:
            task.cancel()
        await asyncio.wait(self._upkeep)
        await _logged(self._forget_deleted_texts)
        await super().close()

    async def _remove(self, conversation: str) -> list[str]:
        given_up = await super()._remove(conversation)
        self._texts_changed = True  # Remaining texts must be removed from the index.
        return given_up

    async def _keep_up(self) -> None:
        now = asyncio.get_running_loop().time
        tended, swept, pending = now(), now() - _SWEEP, True
        while True:
            if now() >= swept + _SWEEP:
                swept = now()
                for work in (self._drop_ended_events, self._finish_deletions):
                    await _logged(work)
            await asyncio.sleep(_QUIET)
            changed, self._texts_changed = self._texts_changed, False
            pending = pending or changed
            if pending and (not changed or now() > tended + _AT_LEAST):
                tended, pending = now(), False
                await _logged(self._bring_index_up_to_date)

    async def _checkpoint_regularly(self) -> None:
        """Copy the log to the database in parallel with the writer. Otherwise a commit would wait for it."""
        written = 0
        while True:
            await asyncio.sleep(_CHECKPOINT)
            if (count := self._writer.commits) != written:
                written = count
                await _logged(lambda: self._all("checkpoint"))

    async def _bring_index_up_to_date(self) -> None:
        while await self._write(self._tend_index):  # noqa: ASYNC110 - it is this loop that works
            await asyncio.sleep(_PAUSE)
        while await self._write(self._give_back):  # noqa: ASYNC110 - the same
            await asyncio.sleep(_PAUSE)

    def _give_back(self, db: SqlConnection) -> bool:
        """Return some free space to the disk while a quarter of the file is free. Return whether more is
        left.

        Later writes use the rest. A file of an older version keeps all its space.
        """
        pages = db.execute(self._sql["pages"]).fetchone()
        if pages["free"] < max(_FREE, pages["count"] // 4):
            return False
        for _ in range(_GIVEN_BACK):
            db.execute(self._sql["give_back_page"]).fetchall()
        return bool(db.execute(self._sql["pages"]).fetchone()["free"] < pages["free"])

    async def _forget_deleted_texts(self) -> None:
        """Remove all texts of deleted conversations before the store closes."""
        left = True
        while left and await self._all("left_texts"):
            left = await self._write(self._forget_texts)


async def _logged(work: Callable[[], Awaitable[object]]) -> None:
    try:
        await work()
    except DragomanError as error:
        _log.warning("upkeep of the store: %s", error)
    except Exception:
        _log.exception("upkeep of the store")


class SqliteStore(SqliteUpkeep, SqlQueue, SqlRaw, SqlRetention, SqlAttachments, SqlProviderFiles):
    """Implements `store.Store`. Any number of processes can use one file.

    `blobs` is the place of new attachments, such as `s3://bucket/prefix`. By default, they go into the folder
    next to the file.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        busy_timeout: float = 10.0,
        lease: float = 20.0,
        blobs: str | None = None,
        migrates: bool = True,
    ) -> None:
        super().__init__(path, busy_timeout=busy_timeout, lease=lease, migrates=migrates)
        self._folder = FolderBlobs(self.files / "blobs")
        self._place_blobs(self._folder, named_blobs(blobs, own="folder"))
