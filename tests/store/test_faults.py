"""An unusable store reports the reason, and works again as soon as it can (S2)."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import pytest

from dragoman import Runtime, ScriptedModel
from dragoman.conversation.tree import Conversation
from dragoman.errors import ConfigError, StoreUnavailable
from dragoman.messages.message import File, Message, Text
from dragoman.store.sql.database import Operation
from dragoman.store.sqlite import SqliteStore
from dragoman.store.sqlite.readers import translate
from dragoman.store.store import StoredEvent

T = TypeVar("T")
LONG = "x" * 200_000


def large(id: str) -> Message:
    return Message(id, "conv_1", None, "user", (Text(LONG),))


def overwrite_table(path: Path, table: str) -> None:
    """Its first page, as a failing disk would."""
    with closing(sqlite3.connect(path)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


def test_each_kind_of_a_fault_is_told_as_that_fault(tmp_path: Path) -> None:
    """S2: SQLite says more precisely what it could not do."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
    assert isinstance(translate(error, tmp_path), StoreUnavailable)
    error.sqlite_errorcode = sqlite3.SQLITE_ERROR
    assert translate(error, tmp_path) is error


async def test_a_file_that_another_program_locks_is_waited_for_and_then_given_up(tmp_path: Path) -> None:
    """The store waits for a locked file, then fails the write. Reads continue, and writes do when the lock
    ends (S2)."""
    store = SqliteStore(tmp_path / "chat.db", busy_timeout=0.1)
    await store.open()
    await store.add_conversation(Conversation("conv_1"))
    with closing(sqlite3.connect(tmp_path / "chat.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        outcomes = await asyncio.gather(
            store.set_title("conv_1", "one"),
            store.put_events([StoredEvent("turn_1", 1, "one")], {"turn_1": 1}),
            return_exceptions=True,
        )
        for error in outcomes:
            assert isinstance(error, StoreUnavailable)
            assert error.retryable
            assert "chat.db: another program is writing to it" in str(error)
            assert "try again" in str(error)
        assert (await store.conversation("conv_1")).title is None
    await store.set_title("conv_1", "two")
    assert (await store.conversation("conv_1")).title == "two"
    await store.close()


class Watched(SqliteStore):
    """Records its writes, except for the index, which the store updates later."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.written: list[Operation[Any]] = []

    def _write(
        self, operation: Operation[T], *, sync: bool = False, line: str | None = None
    ) -> asyncio.Future[T]:
        if operation != self._tend_index:
            self.written.append(operation)
        return super()._write(operation, sync=sync, line=line)


async def test_who_only_reads_writes_nothing(tmp_path: Path) -> None:
    """A reader that writes would wait for another program's lock and fail on a read-only file (S2)."""
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    await store.add_conversation(Conversation("conv_1"), [large("msg_1")])
    picture = File("image/png", blob=await store.put_blob(b"which stays for an hour"))
    told = Message("msg_2", "conv_2", None, "user", (picture,))
    await store.add_conversation(Conversation("conv_2"), [told])
    await store.delete_conversation("conv_2")
    await store.close()
    reader = Watched(tmp_path / "chat.db")
    await reader.open()
    await reader._finish_deletions()  # as the background work does
    assert [one.id for one in await reader.conversations()] == ["conv_1"]
    await reader.close()
    assert reader.written == []


async def test_a_full_disk_is_reported_and_nobodys_write_is_half_done(tmp_path: Path) -> None:
    """S2: also where several share a commit."""
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    await store.add_conversation(Conversation("conv_1"))
    pages = await store._read(lambda db: db.execute("PRAGMA page_count").fetchone()[0])
    limit = await store._writer.submit(
        lambda db: db.execute(f"PRAGMA max_page_count = {pages}").fetchone()[0]
    )
    assert limit == pages
    writes = [store.add_conversation(Conversation(f"conv_{n}"), [large(f"msg_{n}")]) for n in (2, 3)]
    for error in await asyncio.gather(*writes, return_exceptions=True):
        assert isinstance(error, StoreUnavailable)
        assert "the disk is full" in str(error)
        assert "free some space" in str(error)
    await store._writer.submit(lambda db: db.execute("PRAGMA max_page_count = 1000000").fetchone())
    assert [one.id for one in await store.conversations()] == ["conv_1"]
    await store.add_conversation(Conversation("conv_2"), [large("msg_2")])
    await store.close()


async def test_a_file_that_is_damaged_is_reported_to_whoever_reads_or_writes(tmp_path: Path) -> None:
    """S2"""
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    await store.add_conversation(Conversation("conv_1"), [large("msg_1")])
    await store.close()
    overwrite_table(tmp_path / "chat.db", "messages")
    await store.open()
    try:
        with pytest.raises(StoreUnavailable, match="the file is damaged"):
            await store.messages("conv_1")
        with pytest.raises(StoreUnavailable, match="restore a backup"):
            await store.add_conversation(Conversation("conv_2"), [large("msg_2")])
    finally:
        await store.close()


@pytest.mark.parametrize(
    "address",
    [
        "mysql://u:secret@db.example.org/chat",
        Path("postgresql://u:secret@db.example.org/chat"),
        Path("/data/postgres:/u:secret@db.example.org/chat"),
    ],
)
def test_an_address_that_is_none_of_a_store_is_refused_without_its_password(
    address: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S2: it would else be the name of a folder."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"address|Unknown kind of store") as error:
        Runtime(address, model=ScriptedModel([]))
    assert "secret" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("replaced", [False, True])
async def test_another_file_in_its_place_is_neither_read_nor_written_to(
    tmp_path: Path, *, replaced: bool
) -> None:
    """Later connections read the same file as the first ones, or nothing (S2)."""
    path, moved, other = tmp_path / "chat.db", tmp_path / "moved.db", tmp_path / "other.db"
    theirs = SqliteStore(other)
    await theirs.open()
    await theirs.add_conversation(Conversation("conv_2"))
    await theirs.close()
    before = other.read_bytes()
    store = SqliteStore(path)
    await store.open()
    await store.add_conversation(Conversation("conv_1"))
    with closing(sqlite3.connect(path)) as db:  # as upkeep does: then it is in the file, and in no log
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path.rename(moved)
    if replaced:
        other.rename(path)
    found = await asyncio.gather(*(store.conversations() for _ in range(20)), return_exceptions=True)
    for page in found:
        if isinstance(page, BaseException):
            assert isinstance(page, StoreUnavailable)
            assert "moved, deleted or replaced" in str(page)
        else:
            assert [one.id for one in page] == ["conv_1"]
    if replaced:
        await store.close()
        assert path.read_bytes() == before
        return
    moved.rename(path)
    assert [one.id for one in await store.conversations()] == ["conv_1"]
    await store.close()
