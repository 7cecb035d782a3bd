"""Manages an open PostgreSQL database: a pool of connections that runs operations."""

from __future__ import annotations

import asyncio
import logging
import random
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

from dragoman.errors import ConfigError, DragomanError, EngineError, StoreUnavailable
from dragoman.messages.boundary import half_a_character
from dragoman.store.address import shown_address
from dragoman.store.conversations import ListChange
from dragoman.store.postgres.bridge import run, wait
from dragoman.store.postgres.migrate import look, migrate
from dragoman.store.postgres.owner_session import OwnerSession
from dragoman.store.sql.database import (
    Operation,
    SchemaState,
    SqlConnection,
    SqlDatabase,
    Write,
    refuse_missing,
    statements,
)
from dragoman.store.turns import JobQueue

if TYPE_CHECKING:
    from dragoman.store.postgres.jobs import PostgresJobs


# ── faults ────────────────────────────────────────────────────────────────────────────────────────
# Converts PostgreSQL and network errors into errors that explain what happened and what to do.


_AGAIN = "check that the server runs, and that this machine can reach it"
# By SQLSTATE prefix: what happened, what to do, whether it is retryable.
_FAULTS: dict[str, tuple[str, str, bool]] = {
    "08": ("the connection broke", _AGAIN, True),
    "53100": ("the server's disk is full", "free some space, and try again", True),
    "53300": (
        "the server takes no more connections",
        "raise max_connections, or start fewer processes",
        True,
    ),
    "53": ("the server lacks space or memory", "read its log", True),
    "57014": ("a statement took too long", "check the load of the server", True),
    "57P": ("the server is shutting down or starting", _AGAIN, True),
    "25": ("the server ended the transaction", _AGAIN, True),
    "25006": ("the database is read-only", "if this is a replica, name the primary", False),
    "40": ("other writes prevented this one several times", _AGAIN, True),
    "28": ("the server refuses this user", "check the name and the password in the address", False),
    "3D": ("unknown database", "create it, or name another one", False),
    "42501": (
        "the user lacks a right",
        "grant it the right to create and change tables in the schema",
        False,
    ),
    "58": ("the server's disk reports an error", "read its log", True),
    "XX": ("the server reports damage or an internal error", "read its log, or restore a backup", False),
}
CONFLICTS = ("40001", "40P01")  # Conflicts between concurrent writes: the later one is run again.


def translate(error: BaseException, name: str) -> BaseException:
    """Convert an error: StoreUnavailable for server and network faults, BadRequest for unencodable text.

    Any other error stays unchanged.
    """
    if isinstance(error, UnicodeEncodeError) or isinstance(error.__cause__, UnicodeEncodeError):
        return half_a_character("a text")
    state: object = getattr(error, "sqlstate", None)
    if isinstance(state, str):
        for known in (state, state[:3], state[:2]):
            if (fault := _FAULTS.get(known)) is not None:
                what, hint, retryable = fault
                return StoreUnavailable(f"the store {name}: {what} ({error})", hint, retryable=retryable)
        return error
    lost = OSError | asyncio.TimeoutError | asyncpg.InterfaceError | asyncpg.InternalClientError
    if isinstance(error, lost):
        what = f"the store {name}: no answer ({str(error) or type(error).__name__})"
        return StoreUnavailable(what, _AGAIN, retryable=True)
    return error


T = TypeVar("T")

# Share of a lease: an owner that renewed it more recently is alive, whatever the state of its lock.
_SURE = 0.4
_TOLD = 1.0  # Seconds between checks for events without a notification.
_FIRST = 15.0  # Seconds for a connection, and for the first answers on it.
_CLOSING = 10.0  # Maximum seconds to wait for the server when closing.
_ATTEMPTS = 8  # Maximum number of attempts of a write that conflicts with others.
_SCHEMA = re.compile(r"[a-z][a-z0-9_]{0,40}")
_SETTINGS = {
    "application_name": "dragoman",
    "statement_timeout": "60000",  # milliseconds
    "idle_in_transaction_session_timeout": "60000",
    "timezone": "UTC",
    "jit": "off",  # Compiling takes longer than these queries.
}

_log = logging.getLogger("dragoman.store")


@cache
def queries() -> Any:
    own = files("dragoman.store.postgres") / "sql" / "queries"
    return statements(own, lock=" FOR NO KEY UPDATE")


class PostgresDatabase(SqlDatabase):
    """A database by its URL, such as `postgresql://user@host/dragoman?schema=team&sslmode=require`.

    The tables are in a separate schema, `dragoman` by default. `connections` is the maximum number per
    process, in addition to the one that holds its lock.
    """

    _question_order = "seq"
    _explicit_ids = " OVERRIDING SYSTEM VALUE"

    def __init__(
        self, url: str, *, connections: int = 10, lease: float = 10.0, migrates: bool = True
    ) -> None:
        super().__init__()
        self._sql = queries()
        self._url, self.schema = _parse(url)
        self.name = shown_address(url)
        self._size = connections
        self._lease = lease
        self._migrates = migrates
        self._lines: dict[str, asyncio.Task[Any]] = {}
        self._unsettled: set[int] = set()  # connections with an interrupted operation, by server process
        self._writes: set[asyncio.Task[Any]] = set()
        self._closed = False

    def __getattr__(self, name: str) -> NoReturn:
        """Explain a missing attribute that `open` creates."""
        if name in ("_pool", "_session", "_owner_name", "_upkeep", "_slow"):
            raise ConfigError(
                "The store is not open. Use a Runtime in `async with`, or a SyncRuntime in `with`."
            )
        raise AttributeError(name)

    async def open(self) -> None:
        settings = self._settings()
        self._closed = False  # It may have been open before.
        self._slow = asyncio.Semaphore(max(1, self._size // 2))
        try:
            first = await asyncpg.connect(self._url, server_settings=settings, timeout=_FIRST)
            try:
                if self._migrates:
                    await migrate(first, self.schema)
                else:
                    refuse_missing(await look(first, self.schema))
            finally:
                await first.close()
            self._pool: asyncpg.Pool[Any] = await asyncpg.create_pool(
                self._url,
                min_size=1,
                max_size=self._size,
                server_settings=settings,
                timeout=_FIRST,
                command_timeout=90,
                reset=self._settle,
            )
            self._session: OwnerSession = OwnerSession(
                lambda: asyncpg.connect(
                    self._url, server_settings=settings, timeout=_FIRST, command_timeout=_FIRST
                ),
                self._run,
                channel=self.schema,
                lease=self._lease,
            )
            try:
                await self._session.open()
            except BaseException:
                self._session.terminate()
                self._pool.terminate()
                raise
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
            raise self._unopened(error) from None
        self._owner_name = self._session.name

    async def schema_state(self) -> SchemaState:
        state = await self._connected(look)
        without_queue = not await self._jobs().is_made()
        return replace(state, others=("the queue of turns",) if without_queue else ())

    async def migrate(self) -> None:
        await self._connected(migrate)
        await self._jobs().migrate()

    async def _connected(self, work: Callable[[asyncpg.Connection[Any], str], Awaitable[T]]) -> T:
        """Run on a separate connection."""
        try:
            connection = await asyncpg.connect(self._url, server_settings=self._settings(), timeout=_FIRST)
            try:
                return await work(connection, self.schema)
            finally:
                await connection.close()
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
            raise self._unopened(error) from None

    def _settings(self) -> dict[str, str]:
        return {**_SETTINGS, "search_path": f'"{self.schema}", public'}

    def _unopened(self, error: BaseException) -> ConfigError:
        reason = translate(error, self.name)
        where = "" if isinstance(reason, StoreUnavailable) else f"the store {self.name}: "
        return ConfigError(f"Cannot open {where}{reason}")

    async def close(self) -> None:
        self._closed = True
        while self._writes:
            await asyncio.wait(set(self._writes))
        try:
            async with asyncio.timeout(_CLOSING):
                await self._session.close()
                key = {"name": self._owner_name}
                await self._attempt(lambda db: db.execute(self._sql["remove_owner"], key))
                await self._pool.close()
        except Exception as error:  # The connection is gone, and its lock with it.
            _log.warning("the store was closed without %s: %s", self.name, str(error) or type(error).__name__)
            self._pool.terminate()

    async def has_new_writes(self) -> bool:
        return await self._translated(self._session.has_new_writes)

    async def wait_for_writes(self, seconds: float) -> None:
        await self._session.wait_for_writes(max(seconds, self._lease / 4))

    async def wait_for_events(self, seconds: float) -> None:
        await self._session.wait_for_events(max(seconds, _TOLD))

    async def list_changes(self) -> list[ListChange] | None:
        return self._session.list_changes()

    def _announce_events(self, db: SqlConnection) -> None:
        db.execute(self._sql["announce"], {"channel": self._session.event_channel})

    def _announce_write(self, db: SqlConnection) -> None:
        db.execute(self._sql["announce"], {"channel": self.schema})

    def job_queue(self) -> JobQueue:
        """Return the queue that hands turns out to every process that uses this database."""
        return self._jobs()

    def _jobs(self) -> PostgresJobs:
        from dragoman.store.postgres.jobs import PostgresJobs  # Importing procrastinate takes long.

        return PostgresJobs(self._url, self.schema, self._alone, migrates=self._migrates)

    @asynccontextmanager
    async def _alone(self, name: str) -> AsyncIterator[None]:
        """Exclude all other processes of this database during the block."""
        async with self._connection() as connection, connection.transaction():
            # A paused process must not block the others for longer than this.
            await connection.execute("SET LOCAL idle_in_transaction_session_timeout = '5s'")
            await connection.execute("SET LOCAL lock_timeout = '20s'")
            await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", name)
            yield

    # ── how operations are run ────────────────────────────────────────────────────────────────────

    def _write(
        self, operation: Operation[T], *, sync: bool = False, line: str | None = None
    ) -> asyncio.Future[T]:
        if self._closed:
            raise EngineError("The store is closed, so Dragoman cannot write to it.")
        written: asyncio.Future[T] = Write(loop=asyncio.get_running_loop())
        before = self._lines.get(line) if line is not None else None
        task = asyncio.create_task(self._carry_out(operation, written, before))
        self._writes.add(task)
        task.add_done_callback(lambda _: _give_up(written))
        task.add_done_callback(self._writes.discard)
        if line is not None:
            self._lines[line] = task
            task.add_done_callback(lambda done: self._leave(line, done))
        return written

    def _leave(self, line: str, task: asyncio.Task[Any]) -> None:
        if self._lines.get(line) is task:
            del self._lines[line]

    async def _carry_out(
        self, operation: Operation[T], written: asyncio.Future[T], before: asyncio.Task[Any] | None
    ) -> None:
        try:
            if before is not None:
                await asyncio.wait([before])
            written.set_result(await self._translated(lambda: self._attempt(operation)))
        except BaseException as error:
            written.set_exception(EngineError(f"a write raised {error!r}") if _untakeable(error) else error)

    async def _attempt(self, operation: Operation[T]) -> T:
        """Run the operation again after a conflict with another write, so that it sees that
        write's changes."""
        for attempt in range(_ATTEMPTS):
            try:
                async with self._connection() as connection, connection.transaction():
                    return await run(operation, connection)
            except Exception as error:
                if getattr(error, "sqlstate", None) not in CONFLICTS or attempt == _ATTEMPTS - 1:
                    raise
            await asyncio.sleep(random.random() * 0.01 * 2**attempt)
        raise AssertionError

    async def _read(self, operation: Operation[T], *, slow: bool = False) -> T:
        async def read() -> T:
            async with self._connection() as connection:
                return await run(operation, connection)

        if self._closed:
            raise EngineError("The store is closed, so Dragoman cannot read from it.")
        if not slow:
            return await self._translated(read)
        async with self._slow:
            return await self._translated(read)

    @contextmanager
    def _snapshot(self, db: SqlConnection) -> Iterator[None]:
        db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            yield
        finally:
            db.execute("COMMIT")

    def _give_way(self) -> None:
        wait(asyncio.sleep(0))

    def _is_alive(self, db: SqlConnection, owner: str) -> bool:
        if owner == self._owner_name:
            return True
        row = db.execute(self._sql["owner"], {"name": owner}).fetchone()
        if row is None or row["silent"] > self._lease:
            return False
        if row["silent"] < self._lease * _SURE or row["uptime"] < self._lease:
            return True  # Its connection may just have been cut, or the server restarted.
        return not db.execute(self._sql["is_unlocked"], {"lock": row["lock"]}).fetchone()["free"]

    def _advance_sequences(self, db: SqlConnection, tables: Sequence[str]) -> None:
        for table in tables:
            column = "id" if table == "texts" else "seq"
            db.execute(
                f"SELECT setval(pg_get_serial_sequence('{self.schema}.{table}', '{column}'), "
                f"greatest((SELECT max({column}) FROM {table}), 1))"
            )

    def _other_owners(self, db: SqlConnection) -> list[str]:
        names = [row["name"] for row in db.execute(self._sql["owners"]).fetchall()]
        return [name for name in names if name != self._owner_name and self._is_alive(db, name)]

    @asynccontextmanager
    async def _chore(self, name: str) -> AsyncIterator[bool]:
        lock = f"dragoman {name} {self.schema}"
        ours = await self._translated(lambda: self._session.try_lock(lock))
        try:
            yield ours
        finally:
            if ours:
                await self._session.unlock(lock)

    def _identity(self, db: SqlConnection) -> str:
        fresh = {"name": "blobs", "value": f"postgresql-{secrets.token_hex(8)}".encode()}
        db.execute(self._sql["add_secret"], fresh)
        row = db.execute(self._sql["secret"], {"name": "blobs"}).fetchone()
        return bytes(row["value"]).decode()

    def _blobs_tracked_since(self, db: SqlConnection) -> float:
        return float(db.execute(self._sql["first_use"]).fetchone()["at"])

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        async with self._pool.acquire(timeout=30) as connection:
            process = connection.get_server_pid()
            try:
                yield connection
            except asyncpg.InternalClientError:
                connection.terminate()  # The interrupted operation will never finish.
                raise
            except BaseException as error:
                self._unsettled.add(process)
                if isinstance(error, asyncpg.InterfaceError) and not connection.is_closed():
                    # This is a bug in Dragoman: the server is reachable.
                    raise TypeError(str(error)) from error.__cause__
                raise

    async def _settle(self, connection: asyncpg.Connection[Any]) -> None:
        """Clean a connection before it returns to the pool.

        No setting here outlasts a transaction, and the driver rolls back the transactions it knows of. Its
        own reset would be a quarter of all statements.

        The driver misses one case: a statement that is prepared but not executed leaves the server in a
        transaction, which the next simple statement ends.
        """
        process = connection.get_server_pid()
        if process in self._unsettled:
            self._unsettled.remove(process)
            await connection.execute("SELECT 1")

    async def _translated(self, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return await work()
        except (DragomanError, asyncio.CancelledError):
            raise
        except Exception as error:
            if (fault := translate(error, self.name)) is error:
                raise
            raise fault from error


def _give_up(written: asyncio.Future[Any]) -> None:
    """Fail a write that will never run: its caller would wait forever."""
    if not written.done():
        written.set_exception(EngineError("the program ended before it was written"))


def _untakeable(error: BaseException) -> bool:
    """Return whether a future cannot hold the error, or would look cancelled by it."""
    return isinstance(error, StopIteration | asyncio.CancelledError)


def _parse(url: str) -> tuple[str, str]:
    """Return the URL in the driver's form, and the schema it names."""
    try:
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        raise ConfigError("The address of the store is not valid.") from None
    schema = dict(options).get("schema", "dragoman")
    if not _SCHEMA.fullmatch(schema):
        raise ConfigError(
            "The schema of a store must be a name of lowercase letters, digits and underscores."
        )
    query = urlencode([(name, value) for name, value in options if name != "schema"])
    return urlunsplit(parts._replace(query=query)), schema
