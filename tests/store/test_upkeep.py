"""Background work of the store finishes after a crash, and delays no caller (S1, S2)."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.conversation.sharing import Member, Share
from dragoman.conversation.tree import Conversation
from dragoman.messages.message import File, Message, ProviderFile, Text
from dragoman.messages.questions import Grant, Rule
from dragoman.messages.usage import Usage
from dragoman.store.sql.database import SqlConnection
from dragoman.store.sql.rows import conversation_row
from dragoman.store.sqlite import SqliteStore
from dragoman.store.store import StoredEvent, UploadedFile
from tests.patience import PATIENCE
from tests.store.conformance import scene

DAY = 24 * 3600.0


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    yield store
    await store.close()


async def until(reached: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await reached():  # noqa: ASYNC110 - it happens in a file
            await asyncio.sleep(0.05)


async def count(store: SqliteStore, table: str) -> int:
    return await store._read(lambda db: int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]))


async def unindexed(store: SqliteStore) -> int:
    query = "SELECT count(*) FROM texts WHERE id > (SELECT upto FROM texts_indexed)"
    return await store._read(lambda db: int(db.execute(query).fetchone()[0]))


def chain(conversation: str, length: int) -> list[Message]:
    ids = [f"{conversation}_{n}" for n in range(length)]
    parents = [None, *ids]
    return [
        Message(id, conversation, parent, "user", (Text(f"a raven, number {n}"),))
        for n, (id, parent) in enumerate(zip(ids, parents, strict=False))
    ]


@pytest.mark.slow
async def test_texts_are_in_the_index_after_a_while(store: SqliteStore) -> None:
    """The index is filled without a search (S1)."""
    await store.add_conversation(Conversation("conv_1"), chain("conv_1", 50))
    assert await unindexed(store) == 50

    async def indexed() -> bool:
        return await unindexed(store) == 0

    await until(indexed)
    assert len(await store.search("raven", limit=100)) == 50


async def test_the_words_of_a_deleted_conversation_are_not_in_the_file(tmp_path: Path) -> None:
    """After closing the store, neither its texts nor its index contain them (S1)."""
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    await store.add_conversation(Conversation("conv_1"), chain("conv_1", 50))
    await store._bring_index_up_to_date()
    await store.add_conversation(Conversation("conv_2"), chain("conv_2", 5))
    for id in ("conv_1", "conv_2"):
        await store.delete_conversation(id)
    assert await store.search("raven") == []
    await store.close()
    with closing(sqlite3.connect(tmp_path / "chat.db")) as db:
        assert db.execute("SELECT count(*) FROM texts").fetchone() == (0,)
        found = db.execute("SELECT count(*) FROM text_index WHERE text_index MATCH 'rav'").fetchone()
        assert found == (0,)


async def test_a_deletion_that_was_cut_off_is_finished_when_the_store_is_opened(tmp_path: Path) -> None:
    """Until then no reader sees the half that is left (S3)."""
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    await store.add_conversation(Conversation("conv_1"), chain("conv_1", 50))
    await store.add_conversation(Conversation("conv_2"), chain("conv_2", 1))
    await store.close()
    with closing(sqlite3.connect(tmp_path / "chat.db")) as db, db:  # as a process that died left it
        db.execute("UPDATE conversations SET deleted = 1 WHERE id = 'conv_1'")
        db.execute("DELETE FROM messages WHERE id IN ('conv_1_48', 'conv_1_49')")
    await store.open()
    assert [one.id for one in await store.conversations()] == ["conv_2"]
    assert [hit.conversation for hit in await store.search("raven")] == ["conv_2"]

    async def removed() -> bool:
        return await count(store, "messages") == await count(store, "conversations") == 1

    await until(removed)
    await store.close()


async def test_a_reader_that_is_slow_holds_up_no_other(store: SqliteStore) -> None:
    """Simultaneous searches and totals of all spending delay no other reader (S2)."""
    await store.add_conversation(Conversation("conv_1"))
    gate = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(db: sqlite3.Connection) -> None:
        asyncio.run_coroutine_threadsafe(gate.wait(), loop).result()

    searches = [asyncio.create_task(store._readers.run_slow(slow)) for _ in range(10)]
    sums = asyncio.create_task(store.spending())
    try:
        async with asyncio.timeout(PATIENCE):
            assert (await store.conversation("conv_1")).id == "conv_1"
            assert await store.spending(time.time() - DAY / 2) == []  # for that turns wait
            await store.set_title("conv_1", "written meanwhile")
        assert not sums.done()
    finally:
        gate.set()
        await asyncio.gather(*searches, sums)


async def grow_old(store: SqliteStore, *keys: str, by: float) -> None:
    for key in keys:
        then = time.time() - by
        os.utime(store._folder.path(key), (then, then))


async def start_account(path: Path, *, ago: float) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {int(time.time() - ago) // 60}")


async def test_an_upload_that_no_message_came_for_is_removed_after_a_day(tmp_path: Path) -> None:
    """The next process that opens the store removes it. Mentioned and recent files stay (S4)."""
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    kinds = (b"forgotten", b"mentioned", b"new", b"kept", b"expired")
    forgotten, mentioned, new, kept, expired = [await store.put_blob(data) for data in kinds]
    for id, blob, end in (("file_1", kept, None), ("file_2", expired, time.time() - 1)):
        file = UploadedFile(
            id=id, blob=blob, name="", media_type="", size=1, purpose="", created=1.0, expires=end
        )
        assert await store.add_uploaded_file(file, "ada", 9)
    attachment = File("text/plain", blob=mentioned)
    message = Message("msg_1", "conv_1", None, "user", (attachment,))
    await store.add_conversation(Conversation("conv_1"), [message])
    await grow_old(store, forgotten, mentioned, kept, expired, by=DAY + 60)
    await store.close()
    await start_account(tmp_path / "chat.db", ago=7 * DAY)
    await store.open()

    async def removed() -> bool:
        return not any(store._folder.path(blob).exists() for blob in (forgotten, expired))

    await until(removed)
    assert await store.blob(mentioned) == b"mentioned"
    assert await store.blob(new) == b"new"
    assert await store.blob(kept) == b"kept"
    await store.close()


async def test_what_is_known_for_a_while_is_forgotten(store: SqliteStore) -> None:
    """Presence goes after an hour, an upload after a day, and a provider's file when it
    expires (S1)."""
    now = time.time()
    await store.add_conversation(Conversation("conv_1"))
    await store.set_member("conv_1", Member("bob", "reads", "ada", now))
    for user, ago in (("ada", 2 * 3600.0), ("bob", 0.0)):
        await store.note_presence("conv_1", user, now - ago)
    for blob, ago in (("a" * 64, 2 * DAY), ("b" * 64, 0.0)):
        await store.add_upload(blob, "ada", now - ago)
    for id, expires in (("old", now - 1), ("new", now + DAY), ("endless", None)):
        await store.add_provider_file(ProviderFile("acme", id[0] * 64, id, expires=expires), now - DAY)
    await store._finish_deletions()
    rows = await store._read(
        lambda db: db.execute(
            "SELECT user FROM presence UNION SELECT blob FROM uploads UNION SELECT id FROM provider_files"
        ).fetchall()
    )
    assert sorted(row[0] for row in rows) == ["b" * 64, "bob", "endless", "new"]


async def test_a_new_database_beside_old_blobs_removes_none_of_them(tmp_path: Path) -> None:
    """The old database was moved away for a repair, and returns (S4)."""
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    old = await store.put_blob(b"of the old database")
    await store.close()
    await grow_old(store, old, by=7 * DAY)  # while no sweep runs
    (tmp_path / "chat.db").rename(tmp_path / "old.db")  # the store was closed, so no log is next to it
    for _ in range(2):
        await store.open()
        await store._sweep_uploads()
        assert await store.blob(old) == b"of the old database"
        await store.close()


async def test_what_is_spent_while_a_conversation_is_being_deleted_is_counted(store: SqliteStore) -> None:
    """A deletion counts usage again if another process wrote after the first count (T11 × S1)."""
    whole = Conversation("conv_1", created=1.0, updated=1.0)
    reply = Message(
        "msg_1", "conv_1", None, "assistant", (Text("a"),), model="m", usage=Usage(1, 2, cost=0.5)
    )
    await store.add_conversation(whole, [reply])
    inner = replace(whole, id="conv_2", parent="conv_1", call="call_1")

    def somebody_writes(db: SqlConnection) -> bool:
        db.execute(store._sql["add_conversation"], conversation_row(inner))
        store._add_message(db, replace(reply, id="msg_2", parent="msg_1"))
        store._add_message(db, replace(reply, id="msg_3", conversation="conv_2"))
        db.execute("UPDATE conversations SET revision = revision + 1 WHERE id = :id", {"id": "conv_1"})
        return True

    await store._delete("conv_1", only_if=somebody_writes)
    (spent,) = await store.spending()
    assert (spent.replies, spent.cost) == (3, 1.5)


async def test_a_deleted_conversation_gives_its_space_back_to_the_disk(tmp_path: Path) -> None:
    """S1: in small steps, while others write."""
    file = tmp_path / "chat.db"
    store = SqliteStore(file)
    await store.open()
    parents = [None, *(f"msg_{n}" for n in range(299))]
    large = [
        Message(f"msg_{n}", "conv_1", parent, "user", (Text(f"{n} " + "raven " * 5000),))
        for n, parent in enumerate(parents)
    ]
    await store.add_conversation(Conversation("conv_1"), large)
    await store.add_conversation(Conversation("conv_2"), chain("conv_2", 50))
    await store._all("checkpoint")
    before = file.stat().st_size
    await store.delete_conversation("conv_1")

    async def is_small() -> bool:
        await store.set_title("conv_2", "written meanwhile")
        return file.stat().st_size < before / 4

    await until(is_small)
    assert len(await store.search("raven", limit=100)) == 50
    await store.close()
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_free_space_is_given_back_in_steps_of_2_mb(store: SqliteStore) -> None:
    """Other writes come between them, and a quarter of the file, or a megabyte, is kept for them (S1)."""

    async def free() -> int:
        return await store._read(lambda db: int(db.execute("PRAGMA freelist_count").fetchone()[0]))

    async def give_back(*texts: int) -> list[int]:
        """Store texts of so many pages, remove the first, and return the free pages after each step."""
        for number, pages in enumerate(texts):
            await store.set_prompt("ada", str(number), "x" * (pages * 4096))
        await store.remove_prompt("ada", "0")
        seen = [await free()]
        while await store._write(store._give_back):
            seen.append(await free())
        return seen

    (kept,) = await give_back(200)
    assert kept < 250
    first, second, third = await give_back(1200)
    assert first - second == second - third == 500
    assert third < 250
    (kept,) = await give_back(500, 4000)
    assert kept > 250


async def test_what_expired_or_was_left_behind_is_removed(tmp_path: Path) -> None:
    """S1 × S4: a rule whose hour is over, events of a process that died, and half a file of another."""
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    now = time.time()
    await scene.begun(store)
    for id, expires in (("old", now - DAY - 1), ("new", now - 3600), ("ever", None)):
        await store.add_grant(Grant(id, Rule("x"), None, 1.0, expires=expires))
    for id, expires in (("over", now - 1), ("valid", now + DAY)):
        await store.add_share(
            Share(id=id, conversation="conv_1", hash=f"hash of {id}", kind="link", expires=expires)
        )
    await store.put_events([StoredEvent("turn_1", 1, "{}")], {"turn_1": 1})
    await store._write(lambda db: db.execute("UPDATE turns SET live = 0, owner = NULL"))
    key = await store.put_blob(b"whole")
    halves = [store._folder.path(key).with_suffix(f".part_{n}") for n in range(2)]
    for half in halves:
        half.write_bytes(b"who")
    os.utime(halves[0], (now - 2 * DAY, now - 2 * DAY))
    await store.close()
    await start_account(tmp_path / "chat.db", ago=7 * DAY)
    await store.open()

    async def removed() -> bool:
        return not halves[0].exists() and not await store.events({"turn_1": 0})

    await until(removed)
    assert [half.exists() for half in halves] == [False, True]
    assert {grant.id for grant in await store.grants()} == {"new", "ever"}
    kept = await store._read(lambda db: db.execute("SELECT id FROM shares").fetchall())
    assert [row["id"] for row in kept] == ["valid"]
    assert await store.blob(key) == b"whole"
    await store.close()
