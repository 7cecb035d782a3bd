"""The store in one SQLite file: its parts by noun, put together, with blobs in the folder beside it."""

from __future__ import annotations

from pathlib import Path

from dragoman.store.blobs.cache import CachedBlobs
from dragoman.store.blobs.folder import FolderBlobs
from dragoman.store.sql.attachments import SqlAttachments
from dragoman.store.sql.people import SqlPeople
from dragoman.store.sql.queue import SqlQueue
from dragoman.store.sql.raw import SqlRaw
from dragoman.store.sqlite.upkeep import SqliteUpkeep


class SqliteStore(SqliteUpkeep, SqlQueue, SqlPeople, SqlRaw, SqlAttachments):
    """Implements `store.Store`. Any number of processes may use one file."""

    def __init__(self, path: str | Path, *, busy_timeout: float = 10.0, lease: float = 20.0) -> None:
        super().__init__(path, busy_timeout=busy_timeout, lease=lease)
        self._folder = FolderBlobs(self.files / "blobs")
        self._blobs = CachedBlobs(self._folder)
