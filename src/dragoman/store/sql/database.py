"""Defines the base of all SQL stores.

An operation is a plain function of a connection. The engine decides how it runs (in a thread or on the event
loop), in which transaction, and how often it is retried.
"""

from __future__ import annotations

import asyncio
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from time import perf_counter
from typing import Any, Protocol, TypeAlias, TypeVar

from dragoman.errors import ConfigError, NotFound, Unreadable
from dragoman.messages.message import ToolCall
from dragoman.store.blobs.blobs import Blobs
from dragoman.store.blobs.place import NamedBlobs

# ── the state of a schema ─────────────────────────────────────────────────────────────────────────
# Compares a database's schema version with this program's.


@dataclass(slots=True, frozen=True)
class SchemaState:
    """`version` is the last applied step, 0 without tables. `newest` is the last known one."""

    version: int
    newest: int
    missing: tuple[tuple[int, str], ...]  # pending steps with their titles
    others: tuple[str, ...] = ()  # missing items in addition to its tables


def schema_state(migrations: Traversable, version: int) -> SchemaState:
    """Return the state. Raise ConfigError if the database is newer than this program."""
    names = sorted(file.name for file in migrations.iterdir() if file.name.endswith(".sql"))
    steps = [(int(name[:4]), name[5:].removesuffix(".sql").replace("_", " ")) for name in names]
    newest = steps[-1][0]
    if version > newest:
        raise ConfigError(
            f"A newer Dragoman wrote the store (schema {version}, this one knows {newest}). "
            "Upgrade Dragoman, or name another store."
        )
    return SchemaState(version, newest, tuple(step for step in steps if step[0] > version))


def refuse_missing(state: SchemaState) -> None:
    """Raise ConfigError if steps are pending, which the admin must start."""
    if state.missing:
        at = f"has tables of version {state.version}" if state.version else "has no tables yet"
        raise ConfigError(
            f"The store {at}, and this Dragoman needs version {state.newest}. The "
            "settings have migrate = false. "
            "Run `dragoman store migrate` first (`--dry-run` shows the steps)."
        )


# ── statements ────────────────────────────────────────────────────────────────────────────────────
# SQL statements by name: `-- name: add_message` in a file, followed by the statement.


SHARED = files("dragoman.store.sql") / "queries"
_LOCKED = (
    "conversation",
    "root_of",
    "turn",
    "question",
    "queued",
    "usage_of",
)  # rows read before they are written


def statements(own: Traversable, *, lock: str = "") -> Mapping[str, str]:
    """Return the statements for every engine and those of one engine.

    `lock` makes a statement lock the rows that it reads. A statement with this suffix is named `lock_…`.
    """
    found: dict[str, str] = {}
    for folder in (SHARED, own):
        for file in folder.iterdir():
            pieces = re.split(r"^-- name: (\w+)\n", file.read_text("utf-8"), flags=re.MULTILINE)[1:]
            for name, body in zip(pieces[::2], pieces[1::2], strict=True):
                assert name not in found, f"two queries are called {name}"
                found[name] = _statement(body)
    return found | {f"lock_{name}": found[name] + lock for name in _LOCKED}


_GIVEN = re.compile(r"\(:(\w+) IS NULL OR ")


@cache
def narrowed(statement: str, absent: frozenset[str]) -> str:
    """Return the statement for exactly these parameters being NULL.

    Each `(:user IS NULL OR condition)` is removed or reduced to its condition. With both parts, no database
    would use an index.
    """
    kept, at = "", 0
    while (found := _GIVEN.search(statement, at)) is not None:
        end, depth = found.end(), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(statement[end], 0)
            end += 1
        condition = "TRUE" if found[1] in absent else f"({statement[found.end() : end]}"
        kept += statement[at : found.start()] + condition
        at = end
    return kept + statement[at:]


def numbered(folder: Traversable) -> list[tuple[int, str]]:
    """Return the migrations: the numbered steps from nothing to the current schema."""
    found = ((file.name, file.read_text("utf-8")) for file in folder.iterdir())
    return sorted((int(name[:4]), text) for name, text in found if name.endswith(".sql"))


def _statement(body: str) -> str:
    lines = (line for line in body.splitlines() if not line.startswith("--"))
    return "\n".join(lines).strip().removesuffix(";")


T = TypeVar("T")
V = TypeVar("V")

_MOMENT = 0.001  # Seconds of processing after which a long read yields to others.
_BLOB = re.compile(r'"blob":"([0-9a-f]{64})"')

_log = logging.getLogger("dragoman.store")


class Row(Protocol):
    """A row with access by column name."""

    def __getitem__(self, name: str, /) -> Any: ...

    def keys(self) -> Iterable[str]: ...


class SqlCursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class SqlConnection(Protocol):
    """Runs statements with named parameters."""

    def execute(self, statement: str, key: Mapping[str, object] = ..., /) -> SqlCursor: ...

    def executemany(self, statement: str, rows: Iterable[Mapping[str, object]], /) -> SqlCursor: ...


class Write(asyncio.Future[T]):
    """A submitted write, which cannot be cancelled: a cancelled caller waits for its end."""

    def cancel(self, msg: Any | None = None) -> bool:
        return False


Operation: TypeAlias = Callable[[SqlConnection], T]


class SqlDatabase(ABC):
    """An open database, with its statements by name."""

    _sql: Mapping[str, str]
    _blobs: Blobs
    _named_blobs: NamedBlobs | None = None  # blobs at a configured place
    _owner_name: str  # the name of this process as an owner of turns

    _question_order: str  # the column that numbers questions
    _explicit_ids = ""  # SQL that allows explicit numbers where the database would assign them

    def __init__(self) -> None:
        self._reported: set[tuple[str, str]] = set()

    @abstractmethod
    def _write(
        self, operation: Operation[T], *, sync: bool = False, line: str | None = None
    ) -> asyncio.Future[T]:
        """Run it in a separate transaction. The future is done after the commit or, with `sync`, once it is
        on disk.

        Operations of the same `line` run in order. An operation may be retried.
        """

    @abstractmethod
    def _read(self, operation: Operation[T], *, slow: bool = False) -> Awaitable[T]:
        """Run it in parallel with writes. Slow reads never occupy all connections."""

    @abstractmethod
    def _snapshot(self, db: SqlConnection) -> AbstractContextManager[None]:
        """Make several reads see the same moment, whatever is committed between them."""

    @abstractmethod
    def _give_way(self) -> None:
        """Let others run during a long read."""

    def _unhurried(self, rows: Iterable[T]) -> Iterator[T]:
        """Yield many rows, letting others run at short intervals."""
        end = perf_counter() + _MOMENT
        for row in rows:
            yield row
            if perf_counter() > end:
                self._give_way()
                end = perf_counter() + _MOMENT

    @abstractmethod
    def _is_alive(self, db: SqlConnection, owner: str) -> bool:
        """Return whether the process of this name is running and not paused."""

    @abstractmethod
    def _other_owners(self, db: SqlConnection) -> list[str]:
        """Return the other processes that have it open."""

    @abstractmethod
    def _add_text(self, db: SqlConnection, message: int, text: str) -> None:
        """Make the message with this number searchable by this text."""

    @abstractmethod
    def _add_text_of_call(self, db: SqlConnection, call: ToolCall) -> None: ...

    @abstractmethod
    def _blobs_tracked_since(self, db: SqlConnection) -> float:
        """Return since when references to blobs are recorded. Older blobs may belong to another database."""

    @abstractmethod
    def _identity(self, db: SqlConnection) -> str:
        """Return the ID of this database at the place of its blobs, created on demand and kept
        when it moves."""

    @abstractmethod
    def _advance_sequences(self, db: SqlConnection, tables: Sequence[str]) -> None:
        """Continue numbering after the highest number in these tables."""

    @abstractmethod
    def _announce_events(self, db: SqlConnection) -> None:
        """Wake callers that wait for events, if the engine supports it."""

    @abstractmethod
    def _announce_write(self, db: SqlConnection) -> None:
        """Wake callers that wait for writes, if no trigger of the tables does."""

    @abstractmethod
    def _chore(self, name: str) -> AbstractAsyncContextManager[bool]:
        """Yield whether this process may do the task now: only one process at a time does it."""

    @abstractmethod
    async def schema_state(self) -> SchemaState:
        """Return the version of its tables without changing anything. The database need not be open."""

    @abstractmethod
    async def migrate(self) -> None:
        """Update its tables without opening it, after any other process that is doing so."""

    # ── the commonest operations ──────────────────────────────────────────────────────────────────

    async def _all(self, name: str, /, **key: object) -> list[Any]:
        return await self._read(lambda db: db.execute(self._narrowed(name, key), key).fetchall())

    def _narrowed(self, name: str, key: Mapping[str, object]) -> str:
        return narrowed(self._sql[name], frozenset(one for one, value in key.items() if value is None))

    async def _one(self, name: str, noun: str, *, id: str) -> Row:
        rows: list[Row] = await self._all(name, id=id)
        if not rows:
            raise NotFound(noun, id)
        return rows[0]

    async def _run(self, name: str, /, **key: object) -> int:
        """Run a statement and return the number of changed rows."""
        return await self._write(lambda db: db.execute(self._sql[name], key).rowcount)

    async def _take_back(self, name: str, /, **key: object) -> bool:
        """Run a deletion and return whether a row existed. Triggers do not report deleted rows, so announce
        it."""

        def write(db: SqlConnection) -> bool:
            self._announce_write(db)
            return bool(db.execute(self._sql[name], key).rowcount)

        return await self._write(write)

    async def _change(self, noun: str, id: str, name: str, /, **key: object) -> None:
        if not await self._run(name, id=id, **key):
            raise NotFound(noun, id)

    def _readable(self, value: Callable[[Row], V], rows: Iterable[Row]) -> list[V]:
        """Return the values of readable rows. Each unreadable row is logged once."""
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
        self, db: SqlConnection, noun: str, owner: str, conversation: str, *bodies: object
    ) -> None:
        """Record references to blobs together with the row that has them: referenced blobs are kept."""
        for blob in blobs_in(*bodies):
            row = {"blob": blob, "noun": noun, "owner": owner, "conversation": conversation}
            db.execute(self._sql["add_blob_reference"], row)


def blobs_in(*bodies: object) -> set[str]:
    """Return the keys of blobs in these bodies."""
    return {key for body in bodies if isinstance(body, str) for key in _BLOB.findall(body)}
