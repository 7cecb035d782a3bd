"""An open database file: one thread that writes, a few that read, and what every operation is made of."""

from __future__ import annotations

import asyncio
import logging
import re
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NoReturn, TypeVar

from dragoman.errors import ConfigError, NotFound, StoreUnavailable, Unreadable
from dragoman.store.sqlite.faults import translate
from dragoman.store.sqlite.migrate import connect, migrate
from dragoman.store.sqlite.owner import Owner
from dragoman.store.sqlite.queries import queries
from dragoman.store.sqlite.readers import READERS, Readers
from dragoman.store.sqlite.rows import blobs_in
from dragoman.store.sqlite.writer import Writer

T = TypeVar("T")
V = TypeVar("V")

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)  # two letters at least: C: is a drive

_log = logging.getLogger("dragoman.store")


class Database:
    """One database file, and the folder `<file>.files` beside it, which holds blobs and locks.

    Another program that writes to the file is waited for, up to `busy_timeout` seconds. The turns of one
    that is stopped, and not dead, may be taken over after `lease` seconds.
    """

    def __init__(self, path: str | Path, *, busy_timeout: float = 10.0, lease: float = 20.0) -> None:
        self.path = Path(path)
        _refuse_urls(self.path)
        if self.path.name in ("", ":memory:"):
            raise ConfigError(
                f"a store is a file, and {str(path)!r} names none: give it a path such as chat.db"
            )
        self.files = self.path.with_name(self.path.name + ".files")
        self._busy_timeout = busy_timeout
        self._lease = lease
        self._sql = queries()
        self._version_seen = -1
        self._reported: set[tuple[str, str]] = set()

    def __getattr__(self, name: str) -> NoReturn:
        """Reached only for what `open` makes."""
        if name in ("_writer", "_readers", "_watch", "_owner", "_upkeep"):
            raise ConfigError("the store is not open: use the runtime with `async with`")
        raise AttributeError(name)

    async def open(self) -> None:
        writer, readers, watch, self._owner = await asyncio.to_thread(self._connect)
        self._writer = Writer(writer, self.path)
        self._readers = Readers(readers, self.path)
        self._watch = watch
        await self.has_new_writes()

    async def close(self) -> None:
        await self._writer.close()
        await self._readers.close()
        await asyncio.to_thread(self._watch.close)  # the last to close copies the log to the database
        await asyncio.to_thread(self._owner.close)

    async def has_new_writes(self) -> bool:
        def read(db: sqlite3.Connection) -> bool:
            before = self._version_seen
            (self._version_seen,) = self._watch.execute("PRAGMA data_version").fetchone()
            return self._version_seen != before

        return await self._readers.run(read)

    def _connect(self) -> tuple[sqlite3.Connection, list[sqlite3.Connection], sqlite3.Connection, Owner]:
        folder = self.path.parent
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"cannot open the store {self.path}: {folder} is no folder")
        if self.path.is_dir():
            raise ConfigError(f"cannot open the store {self.path}: it is a folder; name a file in it")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.path.touch(mode=0o600)  # it is nobody else's to read: sqlite keeps to these rights
            with ExitStack() as undo:

                def connected() -> sqlite3.Connection:
                    connection = connect(self.path, busy_timeout=self._busy_timeout)
                    return undo.enter_context(closing(connection))

                writer = connected()
                migrate(writer)
                readers = [connected() for _ in range(READERS)]
                for reader in readers:
                    reader.execute("PRAGMA query_only = ON")
                watch = connected()
                self.files.mkdir(mode=0o700, exist_ok=True)
                owner = Owner(self.files / "owners", lease=self._lease)
                undo.pop_all()
        except (OSError, sqlite3.Error) as error:
            reason = translate(error, self.path)
            where = "" if isinstance(reason, StoreUnavailable) else f"the store {self.path}: "
            raise ConfigError(f"cannot open {where}{reason}") from error
        return writer, readers, watch, owner

    # ── what the store's operations are made of ───────────────────────────────────────────────────

    async def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        return await self._readers.run(read)

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

    def _readable(self, value: Callable[[sqlite3.Row], V], rows: Iterable[sqlite3.Row]) -> list[V]:
        """The values of these rows, without those that cannot be read. Each of them is logged once."""
        values = []
        for row in rows:
            try:
                values.append(value(row))
            except Unreadable as error:
                if (error.noun, error.id) not in self._reported:
                    self._reported.add((error.noun, error.id))
                    _log.warning("%s", error)
        return values

    def _mention_blobs(
        self, db: sqlite3.Connection, noun: str, owner: str, conversation: str, *bodies: object
    ) -> None:
        """Written with the row that mentions them: what any row mentions is not removed."""
        for blob in blobs_in(*bodies):
            row = {"blob": blob, "noun": noun, "owner": owner, "conversation": conversation}
            db.execute(self._sql["add_blob_reference"], row)


def _refuse_urls(path: Path) -> None:
    """A database server's address is no path, and holds a password: nothing of it is shown but the scheme."""
    for part in path.parts:
        if _SCHEME.fullmatch(part):
            raise ConfigError(
                f"the store is given as an address that begins with {part}//, and this version keeps a store "
                "in an SQLite file: give it a path such as chat.db"
            )
