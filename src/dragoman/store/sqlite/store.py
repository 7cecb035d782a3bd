"""The store in one SQLite file: its parts by noun, put together, with blobs in the folder beside it."""

from __future__ import annotations

from pathlib import Path

from dragoman.store.blobs.folder import FolderBlobs
from dragoman.store.blobs.place import named_blobs
from dragoman.store.sql.attachments import SqlAttachments
from dragoman.store.sql.provider_files import SqlProviderFiles
from dragoman.store.sql.queue import SqlQueue
from dragoman.store.sql.raw import SqlRaw
from dragoman.store.sql.retention import SqlRetention
from dragoman.store.sqlite.upkeep import SqliteUpkeep


class SqliteStore(SqliteUpkeep, SqlQueue, SqlRaw, SqlRetention, SqlAttachments, SqlProviderFiles):
    """Implements `store.Store`. Any number of processes may use one file. `blobs` is where new attachments
    go, such as `s3://bucket/prefix`; else into the folder beside the file."""

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
