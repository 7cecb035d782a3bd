"""One thread writes: in order, many in one commit, each undone alone (S2)."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.errors import EngineError, StoreUnavailable
from dragoman.store.sqlite.writer import Writer


@pytest.fixture
def db(tmp_path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(tmp_path / "a.db", check_same_thread=False, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("CREATE TABLE words (word TEXT PRIMARY KEY)")
    db.execute("CREATE TABLE echoes (word TEXT REFERENCES words (word) DEFERRABLE INITIALLY DEFERRED)")
    return db


@pytest.fixture
async def writer(db: sqlite3.Connection, tmp_path: Path) -> AsyncIterator[Writer]:
    writer = Writer(db, tmp_path / "a.db")
    yield writer
    await writer.close()


def write(word: str) -> Callable[[sqlite3.Connection], str]:
    def operation(db: sqlite3.Connection) -> str:
        db.execute("INSERT INTO words VALUES (?)", (word,))
        return word

    return operation


def words(db: sqlite3.Connection) -> list[str]:
    return [word for (word,) in db.execute("SELECT word FROM words ORDER BY rowid")]


class Gate:
    """Blocks the writer until released, so that later writes form one batch."""

    def __init__(self, writer: Writer) -> None:
        self._gate, self._began = threading.Event(), threading.Event()
        self.done = writer.submit(self._wait)

    def _wait(self, db: sqlite3.Connection) -> None:
        self._began.set()
        self._gate.wait(5)

    async def begun(self) -> None:
        await asyncio.to_thread(self._began.wait, 5)

    def open(self) -> None:
        self._gate.set()


async def test_writes_happen_in_the_order_they_were_given(writer: Writer) -> None:
    """S2: whether they share a commit or not."""
    given = [f"word {number}" for number in range(50)]
    assert await asyncio.gather(*(writer.submit(write(word)) for word in given)) == given
    assert await writer.submit(words) == given


async def test_many_share_a_commit(writer: Writer, db: sqlite3.Connection) -> None:
    """S2"""
    commits: list[str] = []
    gate = Gate(writer)
    await gate.begun()
    waiting = [writer.submit(write(str(number))) for number in range(10)]
    db.set_trace_callback(lambda statement: commits.append(statement) if statement == "COMMIT" else None)
    gate.open()
    await asyncio.gather(*waiting)
    db.set_trace_callback(None)
    assert len(commits) == 2


async def test_one_that_fails_is_undone_alone(writer: Writer) -> None:
    """S2"""

    def half(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO words VALUES ('half')")
        raise ValueError("mine")

    gate = Gate(writer)
    await gate.begun()
    before, failing, after = (
        writer.submit(write("before")),
        writer.submit(half),
        writer.submit(write("after")),
    )
    gate.open()
    assert (await before, await after) == ("before", "after")
    assert str(failing.exception()) == "mine"
    assert await writer.submit(words) == ["before", "after"]


async def test_one_that_fails_by_itself_is_undone_too(writer: Writer) -> None:
    """S2"""

    def half(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO words VALUES ('half')")
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await writer.submit(half)
    assert await writer.submit(words) == []
    with pytest.raises(sqlite3.IntegrityError):
        await writer.submit(lambda db: [write("twice")(db), write("twice")(db)])
    assert await writer.submit(words) == []


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("INSERT INTO echoes VALUES ('never written')", StoreUnavailable),
        ("INSERT OR ROLLBACK INTO words VALUES ('good')", sqlite3.IntegrityError),  # undoes the whole batch
    ],
)
async def test_a_commit_that_fails_is_nobodys_and_the_next_one_works(
    writer: Writer, statement: str, error: type[Exception]
) -> None:
    """No caller gets success for a write that is not stored (S2)."""
    gate = Gate(writer)
    await gate.begun()
    good = writer.submit(write("good"))
    bad = writer.submit(lambda db: db.execute(statement).rowcount)
    gate.open()
    results = await asyncio.gather(good, bad, return_exceptions=True)
    assert [type(result) for result in results] == [error] * 2
    assert await writer.submit(write("next")) == "next"
    assert await writer.submit(words) == ["next"]


@pytest.mark.parametrize("error", [ValueError(), StopIteration(), sqlite3.InterfaceError()])
@pytest.mark.parametrize("alone", [True, False])
async def test_the_writer_survives_whatever_is_raised(writer: Writer, error: Exception, alone: bool) -> None:
    """The caller receives the exception, and the next write succeeds (S2)."""

    def fail(db: sqlite3.Connection) -> None:
        raise error

    gate = Gate(writer)
    await gate.begun()
    if alone:
        gate.open()
        await gate.done
        await asyncio.wait([failing := writer.submit(fail, sync=True)])
    else:
        failing = writer.submit(fail, sync=True)
    beside = writer.submit(write("beside"))
    gate.open()
    await asyncio.gather(failing, beside, return_exceptions=True)
    assert failing.exception() is not None
    assert await writer.submit(write("next")) == "next"


async def test_what_must_be_on_disk_is_synced_and_the_rest_is_not(writer: Writer) -> None:
    """S2, S3"""

    def mode(db: sqlite3.Connection) -> int:
        number: int = db.execute("PRAGMA synchronous").fetchone()[0]
        return number

    full, normal = 2, 1
    for sync in (True, True, False, False, True):
        assert await writer.submit(mode, sync=sync) == (full if sync else normal)


async def test_a_caller_who_stops_waiting_stops_nobody_else(writer: Writer) -> None:
    """The abandoned write is stored, and the writer continues (T6)."""
    gate = Gate(writer)
    await gate.begun()
    impatient, patient = writer.submit(write("impatient")), writer.submit(write("patient"))
    impatient.cancel()
    gate.open()
    assert await patient == "patient"
    assert await writer.submit(words) == ["impatient", "patient"]


async def test_closing_waits_for_what_was_given_and_takes_no_more(
    db: sqlite3.Connection, tmp_path: Path
) -> None:
    """S2"""
    writer = Writer(db, tmp_path / "a.db")
    last = [writer.submit(write(str(number))) for number in range(20)]
    await writer.close()
    assert [future.result() for future in last] == [str(number) for number in range(20)]
    with pytest.raises(EngineError, match="The store is closed"):
        writer.submit(write("too late"))
    with closing(sqlite3.connect(tmp_path / "a.db")) as again, again:
        assert len(words(again)) == 20
    again.close()
