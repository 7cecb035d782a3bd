"""Tests of the SQLite store: the suite for every store, and SQLite specifics (S2, S3)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dragoman.conversation.tree import Conversation
from dragoman.errors import BadRequest, ConfigError, EngineError, StoreUnavailable, Unreadable
from dragoman.messages.message import Error, Message, Text
from dragoman.messages.usage import Spending
from dragoman.store.sqlite import SqliteStore
from dragoman.store.sqlite.migrate import _use_wal, connect
from dragoman.store.sqlite.readers import migrations
from dragoman.store.store import Change, Found, Start, Store
from tests.fork_server import python
from tests.patience import PATIENCE
from tests.runtimes import with_tables
from tests.store.conformance import Noun, StoreConformance, scene
from tests.store.conformance.search import SearchConformance
from tests.workspace.folders import open_files

DAMAGE: dict[Noun, str] = {
    "conversation": "UPDATE conversations SET settings = '{\"mode\": ' WHERE id = ?",
    "message": "UPDATE messages SET body = substr(body, 1, 40) WHERE id = ?",
    "call": 'UPDATE calls SET body = \'{"type":"song"}\' WHERE id = ?',
    "question": "UPDATE questions SET body = X'00FF' WHERE id = ?",
    "grant": "UPDATE grants SET action = 'allwo' WHERE id = ?",
    "fact": "UPDATE facts SET body = '{' WHERE turn = ? AND seq = (SELECT facts FROM turns WHERE id = turn)",
    "signal": "UPDATE signals SET body = '[]' WHERE turn = ?",
    "queued turn": "UPDATE queue SET body = '{}' WHERE turn = ?",
}


class TestSqlite(StoreConformance):
    async def make(self, folder: Path) -> Store:
        return SqliteStore(with_tables(folder / "chat.db"))

    async def damage(self, folder: Path, noun: Noun, id: str) -> None:
        with closing(sqlite3.connect(folder / "chat.db")) as db, db:
            assert db.execute(DAMAGE[noun], (id,)).rowcount == 1


class IndexedStore(SqliteStore):
    """Has everything in its index before it searches."""

    async def search(self, query: str, **options: Any) -> list[Found]:
        await self._bring_index_up_to_date()
        return await super().search(query, **options)


class TestSearchInTheIndex(SearchConformance):
    async def make(self, folder: Path) -> Store:
        return IndexedStore(with_tables(folder / "chat.db"))


# ── opening ───────────────────────────────────────────────────────────────────────────────────────


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


async def refused(path: Path, *words: str) -> None:
    with pytest.raises(ConfigError) as error:
        await SqliteStore(path).open()
    assert [word for word in words if word not in str(error.value)] == []


async def test_a_store_makes_its_folders(tmp_path: Path) -> None:
    """S2, S4"""
    store = SqliteStore(tmp_path / "some" / "where" / "chat.db")
    await store.open()
    await store.put_blob(b"x")
    await store.close()
    assert names_in(tmp_path / "some" / "where") == {"chat.db", "chat.db.files"}


def test_each_connection_has_the_settings_it_needs(tmp_path: Path) -> None:
    """The log may grow to 160 MB, so that upkeep and not the writer makes checkpoints (S2)."""
    (tmp_path / "chat.db").touch()
    wanted: dict[str, object] = {"journal_mode": "wal", "synchronous": 1, "foreign_keys": 1, "auto_vacuum": 2}
    wanted |= {"wal_autocheckpoint": 40_000, "journal_size_limit": 160_000_000}
    with closing(connect(tmp_path / "chat.db", busy_timeout=1.0)) as db:
        assert {name: db.execute(f"PRAGMA {name}").fetchone()[0] for name in wanted} == wanted
    (tmp_path / "chat.db").write_text("This is no database. " * 100)
    with pytest.raises(sqlite3.DatabaseError) as refused:
        connect(tmp_path / "chat.db", busy_timeout=1.0)
    assert (str(refused.value), open_files(tmp_path)) == ("file is not a database", [])


async def test_more_people_of_one_name_than_numbers_are_refused(tmp_path: Path) -> None:
    """A1"""
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    names = ["ada", *(f"ada-{number}" for number in range(2, 999))]
    with closing(sqlite3.connect(tmp_path / "chat.db")) as db, db:
        db.executemany("INSERT INTO people VALUES (?, ?, 1)", [(name, f"key {name}") for name in names])
    last = await store.identify("https://one", "7", name="ada", key="k1", epoch="e", created=1.0)
    assert last is not None
    assert last.person == "ada-999"
    with pytest.raises(BadRequest, match="Too many users are named 'ada'"):
        await store.identify("https://one", "8", name="ada", key="k2", epoch="e", created=1.0)
    await store.close()


def test_a_new_file_that_another_process_opens_is_waited_for(tmp_path: Path) -> None:
    """SQLite refuses to change the mode of a file at once, however long it may wait (S2)."""

    class Refusing(sqlite3.Connection):
        codes: list[int]

        def execute(self, text: str, *_: Any) -> sqlite3.Cursor:
            if self.codes:
                error = sqlite3.OperationalError("refused")
                error.sqlite_errorcode = self.codes.pop()
                raise error
            return super().execute(text)

    with closing(sqlite3.connect(tmp_path / "chat.db", factory=Refusing)) as db:
        db.codes = [sqlite3.SQLITE_BUSY] * 2
        _use_wal(db, patience=PATIENCE)
        for code, patience in ((sqlite3.SQLITE_BUSY, -1.0), (sqlite3.SQLITE_FULL, PATIENCE)):
            db.codes = [code]
            with pytest.raises(sqlite3.OperationalError, match="refused"):
                _use_wal(db, patience=patience)


async def test_a_path_that_cannot_be_a_store_is_refused_in_words(tmp_path: Path) -> None:
    """S2: and leaves nothing open, and nothing behind."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "text.db").write_text("This is no database. " * 100)
    (tmp_path / "new.db.files").write_text("not a folder")
    await refused(tmp_path / "folder", "Cannot open the store", "folder")
    await refused(tmp_path / "new.db", "Cannot open the store", "new.db.files' is not a folder")
    await refused(tmp_path / "file" / "chat.db", "Cannot open the store")
    await refused(tmp_path / "text.db", "Cannot open the store", "not a database")
    with closing(sqlite3.connect(tmp_path / "other.db")) as db:
        db.execute("CREATE TABLE mine (x)")
    await refused(tmp_path / "other.db", "a database, but not a Dragoman store")
    assert {one for one in names_in(tmp_path) if "other" not in one} == {
        "folder",
        "file",
        "text.db",
        "new.db.files",
    }


async def test_a_read_cannot_write(tmp_path: Path) -> None:
    """S2: it would not be in line with the writes."""
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    with pytest.raises(StoreUnavailable, match="is read-only"):
        await store._read(lambda db: db.execute("DELETE FROM people"))
    await store.close()


async def test_a_claim_is_on_disk_before_the_turn_goes_on(tmp_path: Path) -> None:
    """S3 × N4: and so is what the caller wants to be there."""
    for claims in (False, True):
        store = SqliteStore(tmp_path / "chat.db")
        await store.open()
        statements = list[str]()
        store._writer._connection.set_trace_callback(statements.append)
        if claims:
            assert await store.claim("turn_1") == 2
        else:
            await scene.begun(store)
            assert "PRAGMA synchronous = FULL" not in statements
            await store.append("turn_1", 1, 2, scene.change("a"), sync=True)
        assert "PRAGMA synchronous = FULL" in statements
        await store.close()


async def test_who_waits_for_events_looks_again_later(tmp_path: Path) -> None:
    """E2: SQLite tells nobody of them."""
    waiting = asyncio.ensure_future(SqliteStore(tmp_path / "chat.db").wait_for_events(PATIENCE))
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()


async def test_a_store_that_is_not_open_says_so(tmp_path: Path) -> None:
    """S2"""
    store = SqliteStore(tmp_path / "chat.db")
    with pytest.raises(ConfigError, match="The store is not open"):
        await store.conversations()
    await store.open()
    await store.close()
    with pytest.raises(EngineError, match="The store is closed"):
        await store.conversations()


async def test_what_is_in_the_way_in_the_folder_beside_a_store_is_named(tmp_path: Path) -> None:
    """S2"""
    (tmp_path / "chat.db.files").mkdir()
    (tmp_path / "chat.db.files" / "owners").write_text("not a folder")
    await refused(tmp_path / "chat.db", "Cannot open the store", "owners: File exists; see that its folder")
    assert open_files(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is read-only to root")
def test_a_folder_that_cannot_be_written_to_is_refused_in_words(tmp_path: Path) -> None:
    """S2"""
    tmp_path.chmod(0o500)
    try:
        asyncio.run(refused(tmp_path / "chat.db", "Cannot open the store", "can be written to"))
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("path", ["", ".", ":memory:"])
def test_a_store_is_a_file(path: str) -> None:
    """S2: a store in memory would be another one for each connection."""
    with pytest.raises(ConfigError, match="A store must be a file"):
        SqliteStore(path)


async def test_a_file_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    """S2"""
    path = tmp_path / "chat.db"
    store = SqliteStore(path)
    await store.open()
    await store.close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO schema_version VALUES (999)")
    db.close()
    await refused(path, "newer Dragoman wrote", "schema 999", "Upgrade Dragoman")
    with closing(sqlite3.connect(path)) as db, db:
        assert db.execute("SELECT max(version) FROM schema_version").fetchone() == (999,)
    db.close()
    assert names_in(tmp_path / "chat.db.files" / "owners") == set()


async def test_a_store_that_is_there_is_opened_as_it_is(tmp_path: Path) -> None:
    """S2"""
    for _ in range(3):
        store = SqliteStore(tmp_path / "chat.db")
        await store.open()
        await store.close()
    with closing(sqlite3.connect(tmp_path / "chat.db")) as db, db:
        assert db.execute("SELECT version FROM schema_version").fetchall() == [(n,) for n, _ in migrations()]
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()


async def open_and_add(path: Path, id: str) -> None:
    store = SqliteStore(path)
    await store.open()
    await store.add_conversation(Conversation(id))
    await store.close()


async def test_many_threads_may_open_a_new_store_at_once(tmp_path: Path) -> None:
    """S2"""
    errors: list[BaseException] = []
    ready = threading.Barrier(6)

    def opens(number: int) -> None:
        ready.wait()
        try:
            asyncio.run(open_and_add(tmp_path / "chat.db", f"conv_{number}"))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=opens, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert errors == []
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    assert len(await store.conversations()) == 6
    await store.close()


async def test_a_store_that_is_closed_takes_nothing_more_and_says_so(tmp_path: Path) -> None:
    """Without the error, a caller would wait for the write forever (S2)."""
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    await store.close()
    with pytest.raises(EngineError, match="The store is closed"):
        await store.add_conversation(Conversation("conv_1"))
    with pytest.raises(EngineError, match="The store is closed"):
        store.append("turn_1", 1, 2, Change())


async def test_bytes_that_are_no_text_spoil_their_own_characters_alone(tmp_path: Path) -> None:
    """Invalid UTF-8 damages its own characters, and not the list that contains it (S2)."""
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    for id in ("conv_1", "conv_2"):
        await store.add_conversation(Conversation(id, title="fine"))
    with closing(sqlite3.connect(tmp_path / "chat.db")) as db, db:
        db.execute("UPDATE conversations SET title = CAST(X'41FF42' AS TEXT) WHERE id = 'conv_1'")
    assert {one.title for one in await store.conversations()} == {"A\ufffdB", "fine"}
    await store.close()


@pytest.mark.parametrize("body", [b"\x00\xff", b"", "", "null", "[]", '{"type": "call"}', 17])
async def test_whatever_is_in_a_row_it_stops_nothing_else(tmp_path: Path, body: object) -> None:
    """S2: of a message, a call, a question and a fact."""
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    await scene.asked(store)
    with closing(sqlite3.connect(tmp_path / "chat.db")) as db, db:
        for table in ("messages", "calls", "questions"):
            db.execute(f"UPDATE {table} SET body = ?", (body,))
        db.execute("DELETE FROM facts WHERE seq = 2")
    messages, _ = await store.messages("conv_1")
    assert [message.id for message in messages] == ["msg_1", "msg_r1"]
    assert all(isinstance(part, Error) for message in messages for part in message.parts)
    assert await store.questions() == await store.questions_of("turn_1") == []
    assert sum(await store.spending(user="ada"), Spending()).tokens == 0
    assert len(await store.live_turns()) == 1
    with pytest.raises(Unreadable, match="fact 2 is missing"):
        await store.facts("turn_1")
    with closing(sqlite3.connect(tmp_path / "chat.db")) as db, db:
        db.execute("DELETE FROM facts WHERE seq = 3")
    with pytest.raises(Unreadable, match="it has 1 facts of 3"):
        await store.facts("turn_1")
    assert json.dumps(await store.export_raw("conv_1"))
    await store.delete_conversation("conv_1")
    await store.close()


# ── processes that die ────────────────────────────────────────────────────────────────────────────


def child(*command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


LIVES = """
import asyncio, sys
from pathlib import Path
from dragoman.conversation.tree import Conversation
from dragoman.messages.message import Message
from dragoman.messages.message import Text
from dragoman.store.sqlite import SqliteStore
from dragoman.store.store import Change, Start

async def live():
    store = SqliteStore(sys.argv[1])
    await store.open()
    await store.add_conversation(Conversation("conv_1"))
    message = Message("msg_1", "conv_1", None, "user", (Text("hi"),), turn="turn_1")
    await store.start(Start("turn_1", "conv_1", "1", 1.0, message))
    for seq in range(2, 10**6):
        await store.append("turn_1", 1, seq, Change("conv_1", [str(seq)], state="streaming"))
        print(seq, flush=True)

asyncio.run(live())
"""


@pytest.mark.slow
async def test_what_a_killed_process_knew_to_be_stored_is_there_and_its_turn_can_be_claimed(
    tmp_path: Path,
) -> None:
    """S2, S3"""
    store = SqliteStore(tmp_path / "chat.db")
    with child(sys.executable, "-c", LIVES, str(tmp_path / "chat.db")) as lives:
        assert lives.stdout is not None
        assert "2" in await asyncio.to_thread(lives.stdout.readline)
        await store.open()
        assert await store.claim("turn_1") is None
        lives.send_signal(signal.SIGKILL)
        reported, _ = await asyncio.to_thread(lives.communicate)
    assert await store.claim("turn_1") == 2
    facts = await store.facts("turn_1")
    assert facts == ["1", *(str(seq) for seq in range(2, len(facts) + 1))]
    assert len(facts) >= max(map(int, reported.split()), default=2)
    await store.append("turn_1", 2, len(facts) + 1, Change("conv_1", ['"next"'], state="streaming"))
    await store.close()


OPENS = """
import asyncio, sys
from dragoman.conversation.tree import Conversation
from dragoman.store.sqlite import SqliteStore

async def live():
    store = SqliteStore(sys.argv[1])
    sys.stdin.readline()
    await store.open()
    await store.add_conversation(Conversation(sys.argv[2]))
    await store.close()

asyncio.run(live())
"""


@pytest.mark.slow
async def test_many_processes_may_open_a_new_store_at_once(tmp_path: Path) -> None:
    """S2"""
    command = python("-c", OPENS, str(tmp_path / "chat.db"))
    children = [child(*command, f"conv_{number}") for number in range(4)]
    output = await asyncio.gather(*(asyncio.to_thread(one.communicate, "go\n", 60) for one in children))
    assert [one.returncode for one in children] == [0] * 4, output
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    assert len(await store.conversations()) == 4
    await store.close()


async def test_who_writes_nothing_hears_at_once_of_what_another_process_writes(tmp_path: Path) -> None:
    """A process that writes nothing wakes early, although SQLite sends no notification (N3)."""
    suite = TestSqlite()
    async with suite.opened(tmp_path) as one, suite.opened(tmp_path) as other:
        await other.add_conversation(scene.CONVERSATION)
        await one.has_new_writes()
        hearing = asyncio.ensure_future(one.wait_for_writes(3600.0))
        async with asyncio.timeout(PATIENCE):
            while not hearing.done():  # more than once: one's own upkeep may write in the same moment
                await other.set_title("conv_1", "theirs")
                await asyncio.wait({hearing}, timeout=0.1)
        assert await one.has_new_writes()


async def test_two_stores_on_one_file_do_not_get_in_each_others_way(tmp_path: Path) -> None:
    """S2: many small writes from both, none lost."""
    one, other = SqliteStore(tmp_path / "chat.db"), SqliteStore(tmp_path / "chat.db")
    for store in (one, other):
        await store.open()
    await one.add_conversation(Conversation("conv_1"))
    for number, store in ((1, one), (2, other)):
        message = Message(f"msg_{number}", "conv_1", None, "user", (Text("hi"),), turn=f"turn_{number}")
        await store.start(Start(f"turn_{number}", "conv_1", "1", 1.0, message, root=True))
    writes = [
        store.append(f"turn_{number}", 1, seq, Change("conv_1", [str(seq)], state="streaming"))
        for seq in range(2, 52)
        for number, store in ((1, one), (2, other))
    ]
    await asyncio.gather(*writes)
    assert await one.facts("turn_1") == await other.facts("turn_2") == [str(seq) for seq in range(1, 52)]
    for store in (one, other):
        await store.close()
