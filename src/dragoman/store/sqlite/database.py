"""Manages an open SQLite file: one thread writes, a few read."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import NoReturn, TypeVar

from dragoman.errors import ConfigError, StoreUnavailable
from dragoman.store.address import is_url
from dragoman.store.conversations import ListChange
from dragoman.store.sql.database import Operation, SchemaState, SqlConnection, SqlDatabase, refuse_missing
from dragoman.store.sqlite.migrate import connect, connect_bare, look, migrate
from dragoman.store.sqlite.owner import Owner
from dragoman.store.sqlite.readers import Readers, queries, translate
from dragoman.store.sqlite.writer import Writer

T = TypeVar("T")
_BREATH = 0.0003  # seconds
_GLANCE = 0.1  # Seconds between checks of the log file, which take microseconds and no thread.
_SEE = "see that its folder can be written to and has room"


class SqliteDatabase(SqlDatabase):
    """One database file, and the folder `<file>.files` next to it, which holds blobs and locks.

    A write waits for other processes up to `busy_timeout` seconds. Other processes may take over the turns of
    a stopped process after `lease` seconds.
    """

    _question_order = "rowid"

    def __init__(
        self, path: str | Path, *, busy_timeout: float = 10.0, lease: float = 20.0, migrates: bool = True
    ) -> None:
        super().__init__()
        self.path = Path(path)
        if any(is_url(f"{part}/") for part in self.path.parts):  # Show nothing else of the path.
            raise ConfigError("Pass the path of an SQLite file, such as chat.db, not an address.")
        if self.path.name in ("", ":memory:"):
            raise ConfigError(
                f"A store must be a file, and {str(path)!r} is not one. Pass a path such as chat.db."
            )
        self.files = self.path.with_name(self.path.name + ".files")
        self._log = self.path.with_name(self.path.name + "-wal")
        self._busy_timeout = busy_timeout
        self._lease = lease
        self._migrates = migrates
        self._sql = queries()
        self._version_seen = -1
        # this process's commits at that time, and the state of the log
        self._log_seen: tuple[int, object] = 0, None
        self._list_change_seen: int | None = None  # None: no query so far

    def __getattr__(self, name: str) -> NoReturn:
        """Explain a missing attribute that `open` creates."""
        if name in ("_writer", "_readers", "_watch", "_owner", "_owner_name", "_upkeep", "_file"):
            raise ConfigError(
                "The store is not open. Use a Runtime in `async with`, or a SyncRuntime in `with`."
            )
        raise AttributeError(name)

    async def open(self) -> None:
        writer, watch, self._owner = await asyncio.to_thread(self._connect)
        self._owner_name = self._owner.name
        self._writer = Writer(writer, self.path)
        self._readers = Readers(self._reader, self.path)
        self._watch = watch
        await self.has_new_writes()

    async def close(self) -> None:
        await self._writer.close()
        await self._readers.close()
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._watch.close()  # The last connection to close copies the log to the database.
        self._owner.close()

    async def has_new_writes(self) -> bool:
        self._log_seen = self._look_at_log()

        def read(db: sqlite3.Connection) -> bool:
            before = self._version_seen
            (self._version_seen,) = self._watch.execute("PRAGMA data_version").fetchone()
            return self._version_seen != before

        return await self._readers.run(read)

    async def wait_for_writes(self, seconds: float) -> None:
        """Wait for a write by another process, which changes the log."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(left, _GLANCE))
            before, self._log_seen = self._log_seen, self._look_at_log()
            if self._log_seen[0] == before[0] and self._log_seen[1] != before[1]:
                return

    def _look_at_log(self) -> tuple[int, object]:
        commits = self._writer.commits
        try:
            log = self._log.stat()
        except OSError:
            return commits, None
        return commits, (log.st_size, log.st_mtime_ns)

    async def wait_for_events(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def list_changes(self) -> list[ListChange] | None:
        seen = self._list_change_seen
        if seen is None:
            self._list_change_seen = (await self._all("last_list_change"))[0]["seq"]
            return []
        rows = await self._all("list_changes", after=seen)
        if not rows:
            return []
        self._list_change_seen = rows[-1]["seq"]
        if rows[0]["seq"] != seen + 1:
            return None
        return [ListChange(row["conversation"], row["owner"]) for row in rows]

    def _announce_events(self, db: SqlConnection) -> None:
        pass  # Callers that wait for events poll.

    def _announce_write(self, db: SqlConnection) -> None:
        pass

    async def schema_state(self) -> SchemaState:
        return await asyncio.to_thread(self._look)

    async def migrate(self) -> None:
        await asyncio.to_thread(self._migrate)

    def _look(self) -> SchemaState:
        with self._opening():
            return look(self.path)

    def _migrate(self) -> None:
        with self._opening():
            self._make_file()
            with closing(self._connection()) as db:
                migrate(db)

    def _connection(self) -> sqlite3.Connection:
        return connect(self.path, busy_timeout=self._busy_timeout)

    def _reader(self) -> sqlite3.Connection:
        """Connect to the file that was opened. SQLite would mix its log with a file that replaced it."""
        if _file_at(self.path) != self._file:
            what = f"the store {self.path}: its file was moved, deleted or replaced while it was open"
            raise StoreUnavailable(what, "Put the file back, or restart this program")
        return self._connection()

    def _connect(self) -> tuple[sqlite3.Connection, sqlite3.Connection, Owner]:
        with self._opening():
            if not self._migrates:
                refuse_missing(look(self.path))
            self._make_file()
            self._file = _file_at(self.path)
            with ExitStack() as undo:
                writer = undo.enter_context(closing(self._connection()))
                if self._migrates:
                    migrate(writer)
                self._blobs_tracked_since(writer)
                watch = connect_bare(self.path, busy_timeout=self._busy_timeout)
                undo.enter_context(closing(watch))
                self.files.mkdir(mode=0o700, exist_ok=True)
                owner = Owner(self.files / "owners", lease=self._lease)
                undo.pop_all()
        return writer, watch, owner

    def _make_file(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Only this user may read it. SQLite keeps these permissions for its other files.
        self.path.touch(mode=0o600)

    @contextmanager
    def _opening(self) -> Iterator[None]:
        """Raise a readable ConfigError if the file cannot be opened."""
        for folder in (self.path.parent, self.files):
            if folder.exists() and not folder.is_dir():
                raise ConfigError(f"Cannot open the store '{self.path}': '{folder}' is not a folder.")
        if self.path.is_dir():
            raise ConfigError(
                f"Cannot open the store '{self.path}', because it is a folder. Name a file in the folder."
            )
        try:
            yield
        except OSError as error:
            why = f"{error.filename}: {error.strerror}; {_SEE}" if error.filename else error
            raise ConfigError(f"Cannot open the store '{self.path}': {why}") from error
        except sqlite3.Error as error:
            reason = translate(error, self.path)
            where = "" if isinstance(reason, StoreUnavailable) else f"the store {self.path}: "
            raise ConfigError(f"Cannot open {where}{reason}") from error

    # ── how operations are run ────────────────────────────────────────────────────────────────────

    def _write(
        self, operation: Operation[T], *, sync: bool = False, line: str | None = None
    ) -> asyncio.Future[T]:
        return self._writer.submit(operation, sync=sync)  # One thread writes, so all operations are one line.

    def _read(self, operation: Operation[T], *, slow: bool = False) -> Awaitable[T]:
        return self._readers.run_slow(operation) if slow else self._readers.run(operation)

    @contextmanager
    def _snapshot(self, db: SqlConnection) -> Iterator[None]:
        db.execute("BEGIN")
        try:
            yield
        finally:
            db.execute("COMMIT")

    def _give_way(self) -> None:
        # Releasing the interpreter's lock is not enough: it would be taken again immediately.
        time.sleep(_BREATH)

    def _is_alive(self, db: SqlConnection, owner: str) -> bool:
        return self._owner.alive(owner)

    def _advance_sequences(self, db: SqlConnection, tables: Sequence[str]) -> None:
        pass  # SQLite continues after the highest existing number.

    def _other_owners(self, db: SqlConnection) -> list[str]:
        return self._owner.others()

    @asynccontextmanager
    async def _chore(self, name: str) -> AsyncIterator[bool]:
        yield True  # Writes are serialized, so a second process finds nothing to do.

    def _identity(self, db: SqlConnection) -> str:
        """Return the ID in the file's header, which moves with the file."""
        number = int(db.execute("PRAGMA application_id").fetchone()[0])
        if not number:
            number = secrets.randbelow(2**31 - 1) + 1
            db.execute(f"PRAGMA application_id = {number}")
        return f"sqlite-{number:08x}"

    def _blobs_tracked_since(self, db: SqlConnection) -> float:
        """Return the time in the file's header, written when it was first opened.

        A new file next to old blobs must not treat them as unused: the old file may have been moved away for
        repair.
        """
        minutes = int(db.execute("PRAGMA user_version").fetchone()[0])
        if not minutes:
            minutes = int(time.time()) // 60
            db.execute(f"PRAGMA user_version = {minutes}")
        return minutes * 60.0


def _file_at(path: Path) -> tuple[int, int] | None:
    """Identify the file at this path. None if it does not exist."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
