"""A path in, an open database out: migrated, with one thread that writes and one that reads."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NoReturn, TypeVar

from dragoman.errors import ConfigError, NotFound
from dragoman.store.sqlite.owner import Owner
from dragoman.store.sqlite.queries import migrations, queries
from dragoman.store.sqlite.writer import Writer

T = TypeVar("T")


class Database:
    """One database file, and the folder `<file>.files` beside it, which holds blobs and locks."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.name in ("", ":memory:"):
            raise ConfigError(
                f"a store is a file, and {str(path)!r} names none: give it a path such as chat.db"
            )
        self.files = self.path.with_name(self.path.name + ".files")
        self._sql = queries()
        self._seen = -1

    def __getattr__(self, name: str) -> NoReturn:
        """Reached only for what `open` makes."""
        if name in ("_writer", "_reader", "_pool", "_owner"):
            raise ConfigError("the store is not open: use the runtime with `async with`")
        raise AttributeError(name)

    async def open(self) -> None:
        folder = self.path.parent
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"cannot open the store {self.path}: {folder} is no folder")
        if self.path.is_dir():
            raise ConfigError(f"cannot open the store {self.path}: it is a folder; name a file in it")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.path.touch(mode=0o600)  # what is said here is nobody else's: sqlite keeps to these rights
            with ExitStack() as undo:
                writer = undo.enter_context(closing(_connect(self.path)))
                _migrate(writer)
                reader = undo.enter_context(closing(_connect(self.path)))
                self.files.mkdir(mode=0o700, exist_ok=True)
                self._owner = Owner(self.files / "owners")
                undo.pop_all()
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"cannot open the store {self.path}: {error}") from error
        self._writer, self._reader = Writer(writer), reader
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="dragoman-reader")
        await self.changed()

    async def close(self) -> None:
        await self._writer.close()
        self._pool.shutdown()
        self._reader.close()
        self._owner.close()

    async def changed(self) -> bool:
        def read(db: sqlite3.Connection) -> bool:
            before = self._seen
            (self._seen,) = db.execute("PRAGMA data_version").fetchone()
            return self._seen != before

        return await self._read(read)

    # ── what the store's operations are made of ───────────────────────────────────────────────────

    async def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, read, self._reader)

    async def _all(self, name: str, **key: object) -> list[sqlite3.Row]:
        return await self._read(lambda db: db.execute(self._sql[name], key).fetchall())

    async def _one(self, name: str, noun: str, *, id: str) -> sqlite3.Row:
        rows = await self._all(name, id=id)
        if not rows:
            raise NotFound(noun, id)
        return rows[0]

    async def _change(self, noun: str, id: str, name: str, **key: object) -> None:
        row = {"id": id, **key}
        changed = await self._writer.submit(lambda db: db.execute(self._sql[name], row).rowcount)
        if not changed:
            raise NotFound(noun, id)


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=10)
    db.row_factory = sqlite3.Row
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA wal_autocheckpoint = 4000")  # pages: 16 MB, so that fewer commits have to wait for one
    db.execute("PRAGMA foreign_keys = ON")
    return db


def _migrate(db: sqlite3.Connection) -> None:
    """Bring the file to today's schema, a step at a time, each in a transaction of its own."""
    steps = migrations()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and not _is_ours(db):
        raise ConfigError("the file is a database, but it is no store of Dragoman's: name another one")
    if (version := _version(db)) > steps[-1][0]:
        raise ConfigError(
            f"the store was written by a newer Dragoman (schema {version}, this one knows {steps[-1][0]}): "
            "upgrade Dragoman, or name another file"
        )
    for number, script in steps:
        if number > version:
            done = f"INSERT INTO schema_version VALUES ({number})"
            try:
                db.executescript(f"BEGIN IMMEDIATE;\n{script}\n{done};\nCOMMIT;")
            except sqlite3.OperationalError:
                db.rollback()
                if _version(db) < number:  # else another process was faster
                    raise


def _version(db: sqlite3.Connection) -> int:
    row = db.execute("SELECT max(version) FROM schema_version").fetchone() if _is_ours(db) else None
    return (row[0] if row else None) or 0


def _is_ours(db: sqlite3.Connection) -> bool:
    (there,) = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'schema_version'").fetchone()
    return bool(there)
