"""Compress similar objects together in packs, so that each costs little more than its difference."""

from __future__ import annotations

import logging
import lzma
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TypeAlias

from dragoman.errors import StoreUnavailable
from dragoman.workspace.objects import SnapshotFile
from dragoman.workspace.records import Records

Exclusive: TypeAlias = Callable[[], AbstractContextManager[tuple[SnapshotFile, Records]]]

PACK_FROM = 128  # objects: fewer stay as they are
_MOST = 4_000_000  # bytes of a pack before compression: reading one object reads all of them
_OBJECTS = 1_000
_LONGEST = 1_000_000  # bytes of an object: a longer one stays separate
# large enough to find matches in all other objects
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": 8_000_000}]
_log = logging.getLogger(__name__)


def compress_together(parts: Iterable[bytes]) -> bytes:
    return lzma.compress(b"".join(parts), check=lzma.CHECK_CRC32, filters=_FILTERS)


def next_batch(file: SnapshotFile) -> list[tuple[str, bytes]]:
    """Return enough objects for one pack: recorded ones outside any pack, with those of a path side
    by side."""
    batch: list[tuple[str, bytes]] = []
    size = 0
    for name in _loose(file):
        data = file.read_object(name)
        if data is None or len(data) > _LONGEST:
            continue
        batch.append((name, data))
        size += len(data)
        if size > _MOST or len(batch) == _OBJECTS:
            break
    return batch


def _loose(file: SnapshotFile) -> Iterator[str]:
    rows = file.db.execute(
        """
        SELECT o.hash FROM changes c
        JOIN objects o ON o.hash IN (json_extract(c.before, '$[2]'), json_extract(c.after, '$[2]'))
        WHERE o.pack IS NULL
        GROUP BY o.hash ORDER BY min(c.path), min(c.record)
        """
    )
    for (name,) in rows.fetchall():
        yield name


def add_pack(file: SnapshotFile, batch: list[tuple[str, bytes]], packed: bytes) -> bool:
    """Add a pack. False if one of its objects was deleted meanwhile: no pack may contain its bytes.

    Call it in a transaction.
    """
    names = [name for name, _ in batch]
    marks = ", ".join("?" * len(names))
    query = f"SELECT count(*) FROM objects WHERE pack IS NULL AND hash IN ({marks})"
    if file.db.execute(query, names).fetchone() != (len(names),):
        return False
    _put(file, batch, packed)
    return True


def drop_from_packs(file: SnapshotFile, packs: Iterable[int]) -> None:
    """Remove deleted objects from these packs. Call it in a transaction."""
    for pack in packs:
        rows = file.db.execute("SELECT hash FROM objects WHERE pack = ? ORDER BY start", (pack,)).fetchall()
        live = [(str(name), file.read_object(name) or b"") for (name,) in rows]
        if live:
            _put(file, live, compress_together(data for _, data in live))
        file.db.execute("DELETE FROM packs WHERE id = ?", (pack,))


def _put(file: SnapshotFile, parts: list[tuple[str, bytes]], packed: bytes) -> None:
    """Always write a new pack: another program may have cached an old one by its number."""
    pack = file.db.execute("INSERT INTO packs (data) VALUES (?)", (packed,)).lastrowid
    start = 0
    for name, data in parts:
        file.db.execute(  # updated rows that only became shorter would keep their pages
            "INSERT OR REPLACE INTO objects (hash, packed, data, pack, start, length)"
            " VALUES (?, 0, x'', ?, ?, ?)",
            (name, pack, start, len(data)),
        )
        start += len(data)


class Packer:
    """Packs objects in a separate thread, because compressing takes longer than a step may wait."""

    def __init__(self, exclusive: Exclusive) -> None:
        self._exclusive = exclusive
        self._recorded = 0  # objects since the last check whether there are enough
        self._thread: threading.Thread | None = None

    def recorded(self, count: int) -> None:
        """Count changes that were recorded, and start packing if there are enough."""
        self._recorded += count
        if self._recorded >= PACK_FROM and (self._thread is None or not self._thread.is_alive()):
            self._recorded = 0
            self._thread = threading.Thread(target=self._pack_quietly, name="dragoman-packs", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait until no packing is in progress."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def pack(self, least: int = PACK_FROM) -> int:
        """Pack objects while there are enough for a pack. Return the number of packs.

        The lock is not held during compression.
        """
        made = 0
        while True:
            with self._exclusive() as (file, _):
                batch = next_batch(file)
                if len(batch) < least and sum(len(data) for _, data in batch) <= _MOST:
                    if made:
                        file.shrink()
                    return made
            packed = compress_together(data for _, data in batch)
            with self._exclusive() as (file, _), file.transaction():
                made += add_pack(file, batch, packed)

    def _pack_quietly(self) -> None:
        try:
            self.pack()
        except (OSError, sqlite3.Error, StoreUnavailable) as error:  # they stay as they are
            _log.info("cannot pack the records of the workspace: %s", error)
