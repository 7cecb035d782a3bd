"""What the operations of a store are made of, whichever SQL database it is in.

An operation is a plain function of a connection. How it is run (in a thread, or on the event loop), in which
transaction, and how often it is tried is the engine's.
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
# At which step of its migrations a database is, and what is to be done about it.


@dataclass(slots=True, frozen=True)
class SchemaState:
    """`version` is the last step that was taken, 0 where there are no tables. `newest` is the last one."""

    version: int
    newest: int
    missing: tuple[tuple[int, str], ...]  # steps that are still to be taken, with their titles
    others: tuple[str, ...] = ()  # what is beside its tables, and is not there yet


def schema_state(migrations: Traversable, version: int) -> SchemaState:
    """ConfigError where the database is ahead of this program."""
    names = sorted(file.name for file in migrations.iterdir() if file.name.endswith(".sql"))
    steps = [(int(name[:4]), name[5:].removesuffix(".sql").replace("_", " ")) for name in names]
    newest = steps[-1][0]
    if version > newest:
        raise ConfigError(
            f"the store was written by a newer Dragoman (schema {version}, this one knows {newest}): "
            "upgrade Dragoman, or name another store"
        )
    return SchemaState(version, newest, tuple(step for step in steps if step[0] > version))


def refuse_missing(state: SchemaState) -> None:
    """ConfigError where there are steps to be taken, and somebody has to order it."""
    if state.missing:
        at = f"its tables are at version {state.version}" if state.version else "it has no tables yet"
        raise ConfigError(
            f"{at}, and this Dragoman needs version {state.newest}. The settings say migrate = false: run "
            "`dragoman store migrate` first (--dry-run shows what it would do)"
        )


# ── statements ────────────────────────────────────────────────────────────────────────────────────
# SQL statements by name: `-- name: add_message` in a file, and what follows it.


SHARED = files("dragoman.store.sql") / "queries"
_LOCKED = (
    "conversation",
    "root_of",
    "turn",
    "question",
    "queued",
    "usage_of",
)  # read by who is about to write


def statements(own: Traversable, *, lock: str = "") -> Mapping[str, str]:
    """Those that every engine understands, and those of one engine. `lock` is what makes a row that is read
    wait for nobody but us. A statement that ends with it is there as `lock_…`.
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
    """The statement for these parameters being NULL, and no others: of `(:user IS NULL OR condition)` nothing
    is left, or the condition alone. With both in it no database finds its rows by an index."""
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
    """Migrations: the numbered steps from nothing to the schema of today."""
    found = ((file.name, file.read_text("utf-8")) for file in folder.iterdir())
    return sorted((int(name[:4]), text) for name, text in found if name.endswith(".sql"))


def _statement(body: str) -> str:
    lines = (line for line in body.splitlines() if not line.startswith("--"))
    return "\n".join(lines).strip().removesuffix(";")


T = TypeVar("T")
V = TypeVar("V")

_MOMENT = 0.001  # seconds of work on what was read, after which others get their turn
_BLOB = re.compile(r'"blob":"([0-9a-f]{64})"')

_log = logging.getLogger("dragoman.store")


class Row(Protocol):
    """A row, by the names of its columns."""

    def __getitem__(self, name: str, /) -> Any: ...

    def keys(self) -> Iterable[str]: ...


class SqlCursor(Protocol):
    """What a statement gave."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class SqlConnection(Protocol):
    """Runs statements whose parameters have names."""

    def execute(self, statement: str, key: Mapping[str, object] = ..., /) -> SqlCursor: ...

    def executemany(self, statement: str, rows: Iterable[Mapping[str, object]], /) -> SqlCursor: ...


class Write(asyncio.Future[T]):
    """A write that was handed over cannot be called back: whoever waits and is cancelled waits it out."""

    def cancel(self, msg: Any | None = None) -> bool:
        return False


Operation: TypeAlias = Callable[[SqlConnection], T]


class SqlDatabase(ABC):
    """A database that is open, and the statements that it understands, by name."""

    _sql: Mapping[str, str]
    _blobs: Blobs
    _named_blobs: NamedBlobs | None = None  # those of them at a place that a person named
    _owner_name: str  # of this process, as an owner of turns

    _question_order: str  # the column that counts questions
    _explicit_ids = ""  # what lets numbers be given that the database would else give out

    def __init__(self) -> None:
        self._reported: set[tuple[str, str]] = set()

    @abstractmethod
    def _write(
        self, operation: Operation[T], *, sync: bool = False, line: str | None = None
    ) -> asyncio.Future[T]:
        """Run it in a transaction of its own. The future is done when the commit is. With `sync`, when it is
        on disk. Those of one `line` come one after the other. It may be tried again.
        """

    @abstractmethod
    def _read(self, operation: Operation[T], *, slow: bool = False) -> Awaitable[T]:
        """Run it beside those that write. A slow one never takes the place of all others."""

    @abstractmethod
    def _snapshot(self, db: SqlConnection) -> AbstractContextManager[None]:
        """Several reads of the same moment, whatever is committed between them."""

    @abstractmethod
    def _give_way(self) -> None:
        """In the middle of a long read: others get their turn."""

    def _unhurried(self, rows: Iterable[T]) -> Iterator[T]:
        """All of many rows. Who works through them holds up nobody for longer than a moment."""
        end = perf_counter() + _MOMENT
        for row in rows:
            yield row
            if perf_counter() > end:
                self._give_way()
                end = perf_counter() + _MOMENT

    @abstractmethod
    def _is_alive(self, db: SqlConnection, owner: str) -> bool:
        """Whether the process of this name still runs, and is not paused."""

    @abstractmethod
    def _other_owners(self, db: SqlConnection) -> list[str]:
        """The other processes that have it open."""

    @abstractmethod
    def _add_text(self, db: SqlConnection, message: int, text: str) -> None:
        """Let a search find the message by this text. By its number."""

    @abstractmethod
    def _add_text_of_call(self, db: SqlConnection, call: ToolCall) -> None: ...

    @abstractmethod
    def _blobs_tracked_since(self, db: SqlConnection) -> float:
        """Since when it is known here which blobs are mentioned: older ones may be another database's."""

    @abstractmethod
    def _identity(self, db: SqlConnection) -> str:
        """What this database is known by where its blobs are, also after it was moved: made when needed."""

    @abstractmethod
    def _advance_sequences(self, db: SqlConnection, tables: Sequence[str]) -> None:
        """Give out numbers after those that were given to these tables."""

    @abstractmethod
    def _announce_events(self, db: SqlConnection) -> None:
        """Wake who waits for events, in an engine that can."""

    @abstractmethod
    def _announce_write(self, db: SqlConnection) -> None:
        """Wake who waits for writes, where none of the tables' triggers does."""

    @abstractmethod
    def _chore(self, name: str) -> AbstractAsyncContextManager[bool]:
        """Whether it is ours to do now: of the processes that use the database, one does it at a time."""

    @abstractmethod
    async def schema_state(self) -> SchemaState:
        """At which version its tables are. Changes nothing, and it need not be open."""

    @abstractmethod
    async def migrate(self) -> None:
        """Bring its tables up to date, without opening it. Who does it at the same time is waited for."""

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
        """How many rows it changed."""
        return await self._write(lambda db: db.execute(self._sql[name], key).rowcount)

    async def _take_back(self, name: str, /, **key: object) -> bool:
        """Whether it was still there. No trigger tells others of a row that is deleted."""

        def write(db: SqlConnection) -> bool:
            self._announce_write(db)
            return bool(db.execute(self._sql[name], key).rowcount)

        return await self._write(write)

    async def _change(self, noun: str, id: str, name: str, /, **key: object) -> None:
        if not await self._run(name, id=id, **key):
            raise NotFound(noun, id)

    def _readable(self, value: Callable[[Row], V], rows: Iterable[Row]) -> list[V]:
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
        self, db: SqlConnection, noun: str, owner: str, conversation: str, *bodies: object
    ) -> None:
        """Written with the row that mentions them: what any row mentions is not removed."""
        for blob in blobs_in(*bodies):
            row = {"blob": blob, "noun": noun, "owner": owner, "conversation": conversation}
            db.execute(self._sql["add_blob_reference"], row)


def blobs_in(*bodies: object) -> set[str]:
    """The keys of blobs that these mention."""
    return {key for body in bodies if isinstance(body, str) for key in _BLOB.findall(body)}
