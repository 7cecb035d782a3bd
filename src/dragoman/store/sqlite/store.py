"""The store in one SQLite file: its parts by noun, put together, with blobs in the folder beside it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.store.blobs.folder import FolderBlobs
from dragoman.store.blobs.place import named_blobs
from dragoman.store.sql.copying import SqlRaw
from dragoman.store.sql.database import SqlConnection
from dragoman.store.sql.deletion import SqlAttachments, SqlDeletion, SqlProviderFiles, SqlRetention
from dragoman.store.sql.questions import SqlEvents
from dragoman.store.sql.turns import SqlQueue
from dragoman.store.sqlite.search import SqliteSearch

# ── upkeep ────────────────────────────────────────────────────────────────────────────────────────
# What the SQLite store does in the background, in small steps: index, checkpoints, deletions.


_QUIET = 1.0  # seconds without a new text after which the index is brought up to date
_AT_LEAST = 10.0  # seconds after which it is, also where there is no quiet
_PAUSE = 0.01  # seconds between two steps, for whoever else writes
_CHECKPOINT = 0.5  # seconds between checkpoints, while there are writes
_SWEEP = 3600.0  # seconds between looks for blobs that may be removed by now
_FREE = 250  # pages, a megabyte, that a file keeps in any case

_log = logging.getLogger("dragoman.store")


class SqliteUpkeep(SqliteSearch, SqlDeletion, SqlEvents):
    """Tasks that live as long as the store is open. What fails in them is logged, and tried again later."""

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
        self._texts_changed = True  # some are left behind, to be taken out of the index
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
        """Copy what is in the log to the database, beside the writer: else a commit has to wait for it."""
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
        """Some of the space of what was deleted goes to the disk, while that is a fourth of the file: what is
        written next uses the rest. A file of an older version keeps all. Whether there is more."""
        pages = db.execute(self._sql["pages"]).fetchone()
        if pages["free"] < max(_FREE, pages["count"] // 4):
            return False
        db.execute(self._sql["give_back_pages"]).fetchall()
        return bool(db.execute(self._sql["pages"]).fetchone()["free"] < pages["free"])

    async def _forget_deleted_texts(self) -> None:
        """Nothing of a deleted conversation is in the file when the store is closed."""
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
    """Implements `store.Store`. Any number of processes may use one file. `blobs` is where new attachments
    go, such as `s3://bucket/prefix`. Otherwise, into the folder beside the file.
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
