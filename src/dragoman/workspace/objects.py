"""Store one workspace's history in a file next to the store: bytes by their hash, and the last scan."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from typing import TypeAlias, cast

from dragoman.errors import StoreUnavailable
from dragoman.workspace.states import FileChange, FileState, StateKind

VERSION = 2  # of the tables
Status: TypeAlias = tuple[int, int, int]  # time of change, bytes, inode: the same means the same file
# Columns and tables that version 1 lacks.
_PACKS = (
    "ALTER TABLE objects ADD COLUMN pack INTEGER",
    "ALTER TABLE objects ADD COLUMN start INTEGER",
    "ALTER TABLE objects ADD COLUMN length INTEGER",
    "CREATE TABLE packs (id INTEGER PRIMARY KEY AUTOINCREMENT, data BLOB NOT NULL)",
    "CREATE INDEX objects_by_pack ON objects (pack) WHERE pack IS NOT NULL",
)
_WORTH = 64  # bytes: anything shorter is not compressed


class SnapshotFile:
    """A separate SQLite file: private, and never part of the workspace's version control.

    One file takes 50,000 objects in one transaction, several programs can use it, and one statement deletes
    all unused objects. Every method requires the caller to hold the lock next to it.
    """

    def __init__(self, path: Path, workspace: Path) -> None:
        self.path = path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self.db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        self._unpacked: tuple[int, bytes] | None = None  # the pack that was read last
        try:
            self._prepare(workspace)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.db.close()

    def _prepare(self, workspace: Path) -> None:
        self.db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = FULL")
        self.db.execute("PRAGMA foreign_keys = ON")
        self.db.execute("PRAGMA secure_delete = ON")  # so that deleted bytes cannot be recovered
        (version,) = self.db.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise StoreUnavailable(
                "the record of the workspace was written by a newer version",
                f"Update Dragoman, or move {self.path}",
            )
        if version == 0:
            schema = files("dragoman.workspace").joinpath("schema.sql").read_text()
            with self.transaction():
                for statement in schema.split(";\n"):
                    self.db.execute(statement)
                self.set("workspace", str(workspace))
                self.db.execute(f"PRAGMA user_version = {VERSION}")
        elif version == 1:
            with self.transaction():
                for statement in _PACKS:
                    self.db.execute(statement)
                self.db.execute(f"PRAGMA user_version = {VERSION}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    def get(self, key: str) -> str | None:
        row = self.db.execute("SELECT value FROM about WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set(self, key: str, value: str) -> None:
        self.db.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (key, value))

    def drop(self, key: str) -> None:
        self.db.execute("DELETE FROM about WHERE key = ?", (key,))

    def drop_all(self, prefix: str, but: Iterable[str]) -> None:
        """Drop every key with this prefix, unless one of these follows."""
        kept = json.dumps([prefix + one for one in but])
        self.db.execute(
            "DELETE FROM about WHERE substr(key, 1, ?) = ? AND key NOT IN (SELECT value FROM json_each(?))",
            (len(prefix), prefix, kept),
        )

    # ── objects ───────────────────────────────────────────────────────────────────────────────────

    def put(self, data: bytes) -> str:
        """Store these bytes. Return their name."""
        name = hashlib.sha256(data).hexdigest()
        if self.db.execute("SELECT 1 FROM objects WHERE hash = ?", (name,)).fetchone() is None:
            packed = zlib.compress(data, 1) if len(data) > _WORTH else data
            smaller = len(packed) < len(data)
            row = (name, smaller, packed if smaller else data)
            self.db.execute("INSERT INTO objects (hash, packed, data) VALUES (?, ?, ?)", row)
        return name

    def read(self, state: FileState) -> bytes | None:
        """Return the bytes of a file or the target of a link. None if they are not kept."""
        return self.read_object(state.object) if state.kind != "folder" else None

    def read_object(self, name: str) -> bytes | None:
        query = "SELECT packed, data, pack, start, length FROM objects WHERE hash = ?"
        row = self.db.execute(query, (name,)).fetchone()
        if row is None:
            return None
        packed, data, pack, start, length = row
        if pack is not None:
            return self._unpack(pack)[start : start + length]
        return zlib.decompress(data) if packed else bytes(data)

    def _unpack(self, pack: int) -> bytes:
        if self._unpacked is None or self._unpacked[0] != pack:
            (data,) = self.db.execute("SELECT data FROM packs WHERE id = ?", (pack,)).fetchone()
            self._unpacked = (pack, lzma.decompress(data))
        return self._unpacked[1]

    def sweep(self) -> tuple[int, frozenset[int]]:
        """Delete unreferenced objects. Return their number, and the packs with their bytes."""
        rows = self.db.execute(
            """
            DELETE FROM objects WHERE hash NOT IN (
              SELECT object FROM files
              UNION SELECT json_extract(before, '$[2]') FROM changes WHERE before IS NOT NULL
              UNION SELECT json_extract(after, '$[2]') FROM changes WHERE after IS NOT NULL
              UNION SELECT json_extract(before, '$[2]') FROM deltas WHERE before IS NOT NULL
              UNION SELECT json_extract(after, '$[2]') FROM deltas WHERE after IS NOT NULL
            ) AND NOT EXISTS (SELECT 1 FROM journal)
            RETURNING pack
            """
        ).fetchall()
        return len(rows), frozenset(pack for (pack,) in rows if pack is not None)

    def shrink(self) -> None:
        """Return the space of deleted objects to the system. Do not call it in a transaction."""
        self.db.executescript("PRAGMA incremental_vacuum")  # `execute` would free a single page
        self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    # ── the last look ─────────────────────────────────────────────────────────────────────────────

    def load_files(self, path: str | None = None) -> Iterator[tuple[str, FileState, Status]]:
        """Yield what is known of everything, or of one path, the folders above it, and everything
        below it."""
        query = "SELECT path, kind, mode, object, size, changed, bytes, inode FROM files"
        values: list[str] = []
        if path is not None:
            values = [*accumulate(path.split("/"), "{}/{}".format)]
            query += f" WHERE path IN ({', '.join('?' * len(values))}) OR (path > ? AND path < ?)"
            values += [f"{path}/", f"{path}0"]  # 0 comes right after the slash
        for found, kind, mode, object, size, *status in self.db.execute(query, values).fetchall():
            yield found, FileState(kind, mode, object, size), cast("Status", tuple(status))

    def save_files(self, rows: Iterable[tuple[str, FileState, Status]]) -> None:
        self.db.executemany(
            "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            ((path, s.kind, s.mode, s.object, s.size, *status) for path, s, status in rows),
        )

    def forget_files(self, paths: Iterable[str]) -> None:
        self.db.executemany("DELETE FROM files WHERE path = ?", ((path,) for path in paths))

    # ── the history ───────────────────────────────────────────────────────────────────────────────

    def position(self) -> int:
        """The position of the last change that a scan found."""
        row = self.db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'deltas'").fetchone()
        return 0 if row is None else int(row[0])

    def add_deltas(self, changes: Iterable[FileChange]) -> None:
        self.db.executemany(
            "INSERT INTO deltas (path, before, after) VALUES (?, ?, ?)",
            ((change.path, dump_state(change.before), dump_state(change.after)) for change in changes),
        )

    def deltas(self, after: int) -> Iterator[tuple[int, FileChange]]:
        query = "SELECT position, path, before, after FROM deltas WHERE position > ? ORDER BY position"
        for position, path, before, then in self.db.execute(query, (after,)):
            yield position, FileChange(path, load_state(before), load_state(then))

    def drop_deltas(self) -> None:
        """Drop changes that no open record needs."""
        self.db.execute(
            "DELETE FROM deltas WHERE position <= "
            "(SELECT coalesce(min(start), 9223372036854775807) FROM records WHERE state = 'open')"
        )


def dump_state(state: FileState | None) -> str | None:
    return None if state is None else json.dumps([state.kind, state.mode, state.object, state.size])


def load_state(text: str | None) -> FileState | None:
    if text is None:
        return None
    kind, mode, object, size = json.loads(text)
    return FileState(cast("StateKind", kind), mode, object, size)
