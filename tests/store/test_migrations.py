"""Migrations bring a store of an earlier version to the current schema with all its data (S2)."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.errors import ConfigError
from dragoman.messages.message import CallState, File, Message, Text, ToolCall, ToolResult
from dragoman.store.codecs import CALL, MESSAGE
from dragoman.store.sqlite import SqliteStore
from dragoman.store.sqlite.readers import migrations
from tests.cli.program import program

ATTACHED, OUTPUT = "ab" * 32, "cd" * 32
RESULT = ToolResult("three of them", blob=OUTPUT)
CALLED = ToolCall("call_1", "find", {"what": "Käse"}, state=CallState.COMPLETED, result=RESULT)
MESSAGE_1 = Message(
    "msg_1", "conv_1", None, "user", (File("text/plain", blob=ATTACHED), Text("an old raven"))
)
MESSAGE_2 = Message("msg_2", "conv_1", "msg_1", "assistant", (ToolCall("call_1", "find"), Text("eggs")))


def store_of_version_3(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for number, script in migrations()[:3]:
            db.executescript(script)
            db.execute("INSERT INTO schema_version VALUES (?)", (number,))
        db.execute("INSERT INTO conversations (id, created, updated) VALUES ('conv_1', 1, 1)")
        add = "INSERT INTO messages (id, conversation, parent, role, body) VALUES (?, 'conv_1', ?, ?, ?)"
        for message in (MESSAGE_1, MESSAGE_2):
            db.execute(add, (message.id, message.parent, message.role, MESSAGE.dump(message)))
        db.execute(add, ("msg_3", "msg_2", "user", '{"id": "msg_3", "blob":"'))
        add = "INSERT INTO calls (id, message, tool, state, body) VALUES ('call_1', 'msg_2', 'find', ?, ?)"
        db.execute(add, (CALLED.state, CALL.dump(CALLED)))


async def test_what_an_older_store_holds_is_read_found_and_deleted_with_its_files(tmp_path: Path) -> None:
    """The migration works although one row cannot be read (S1, S2, S4)."""
    store_of_version_3(tmp_path / "chat.db")
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    try:
        messages, _ = await store.messages("conv_1")
        assert messages[0] == MESSAGE_1
        assert messages[1].calls == (CALLED,)
        assert [part.type for part in messages[2].parts] == ["error"]
        for query, found in (("raven", "msg_1"), ("käse", "msg_2"), ("three of", "msg_2"), ("gg", "msg_2")):
            assert [hit.message for hit in await store.search(query)] == [found], query
        for blob in (ATTACHED, OUTPUT):
            store._folder.path(blob).parent.mkdir(parents=True, exist_ok=True)
            store._folder.path(blob).write_bytes(b"not what its name says")
        await store.delete_conversation("conv_1")
        assert len(await store._all("unwanted_blobs")) == 2
    finally:
        await store.close()


async def test_a_step_that_fails_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    """S2"""
    store_of_version_3(tmp_path / "chat.db")
    with closing(sqlite3.connect(tmp_path / "chat.db")) as db, db:
        db.execute("CREATE TABLE events (mine TEXT)")  # in the way of the fourth step
    with pytest.raises(Exception, match="events"):
        await SqliteStore(tmp_path / "chat.db").open()
    with closing(sqlite3.connect(tmp_path / "chat.db")) as db:
        assert db.execute("SELECT max(version) FROM schema_version").fetchone() == (3,)
        assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'texts'").fetchone() == (0,)
        assert db.execute("SELECT count(*) FROM messages").fetchone() == (3,)


async def test_who_may_not_migrate_says_which_command_does(tmp_path: Path) -> None:
    """S2: and leaves everything as it was."""
    with pytest.raises(ConfigError, match=r"no tables yet.*`dragoman store migrate`"):
        await SqliteStore(tmp_path / "new.db", migrates=False).open()
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - at once
    store_of_version_3(tmp_path / "chat.db")
    before = (tmp_path / "chat.db").read_bytes()
    with pytest.raises(ConfigError, match=r"version 3.*needs version \d.*`dragoman store migrate`"):
        await SqliteStore(tmp_path / "chat.db", migrates=False).open()
    assert (tmp_path / "chat.db").read_bytes() == before
    await SqliteStore(tmp_path / "chat.db").migrate()
    store = SqliteStore(tmp_path / "chat.db", migrates=False)
    await store.open()
    assert (await store.messages("conv_1"))[0][0] == MESSAGE_1
    await store.close()


async def test_several_may_migrate_at_once(tmp_path: Path) -> None:
    """S2"""
    store_of_version_3(tmp_path / "chat.db")
    stores = [SqliteStore(tmp_path / "chat.db") for _ in range(4)]
    await asyncio.gather(*(store.migrate() for store in stores))
    states = [await store.schema_state() for store in stores]
    assert {(state.version, state.missing) for state in states} == {(states[0].newest, ())}


@pytest.mark.slow
async def test_the_command_says_what_it_would_do_and_does_it(tmp_path: Path) -> None:
    """S2: the settings forbid it to everybody else."""
    (tmp_path / "dragoman.toml").write_text('store = "chat.db"\nmigrate = false\n')
    store_of_version_3(tmp_path / "chat.db")
    before = (tmp_path / "chat.db").read_bytes()
    preview = await program("store", "migrate", "--dry-run", folder=tmp_path)
    assert "chat.db: version 3\n  would take step 4: indexes texts and events\n" in preview.out, preview.err
    assert (tmp_path / "chat.db").read_bytes() == before
    refused = await program("list", folder=tmp_path)
    assert (refused.status, "`dragoman store migrate` first" in refused.err) == (2, True)
    done = await program("store", "migrate", folder=tmp_path)
    assert done.out.endswith(f"it is at version {migrations()[-1][0]} now\n"), done.err
    assert "nothing to do" in (await program("store", "migrate", "chat.db", folder=tmp_path)).out
    slip = await program("store", "migrate", "caht.db", folder=tmp_path)
    assert (slip.status, "Check its name" in slip.err) == (1, True)
    assert not (tmp_path / "caht.db").exists()
    assert (await program("list", folder=tmp_path)).status == 0


@pytest.mark.slow
async def test_a_file_that_is_somebody_elses_is_neither_changed_nor_migrated(tmp_path: Path) -> None:
    """S2"""
    with closing(sqlite3.connect(tmp_path / "other.db")) as db, db:
        db.execute("CREATE TABLE mine (x)")
    before = (tmp_path / "other.db").read_bytes()
    for arguments in (("--dry-run",), ()):
        refused = await program("store", "migrate", "other.db", *arguments, folder=tmp_path)
        assert (refused.status, "not a Dragoman store" in refused.err) == (2, True)
    assert (tmp_path / "other.db").read_bytes() == before
