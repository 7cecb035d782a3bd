"""A row that a failing disk changed spoils nothing else, and can be deleted (S1, S2)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from dragoman import Runtime
from dragoman.conversation.sharing import Member, Right
from dragoman.errors import StoreUnavailable
from dragoman.messages.questions import allow_once
from dragoman.server.snapshots import queue_of
from dragoman.wire.scripted import calls, says
from tests.runtimes import add, runtime_with


@contextmanager
def disk(runtime: Runtime, folder: Path) -> Iterator[sqlite3.Connection]:
    """The file, as something changes it that knows no rules."""
    with closing(sqlite3.connect(folder / "chat.db", isolation_level=None)) as db:
        yield db
    runtime.bus.hear_of_writes()


async def said(runtime: Runtime, text: str) -> str:
    """Return the ID of a conversation with this message."""
    chat = await runtime.conversation()
    await (await chat.send(text)).result()
    await chat.rename(f"About a {text}")
    return chat.id


async def test_a_text_that_one_bit_has_made_bytes_is_a_text_all_the_same(tmp_path: Path) -> None:
    """The conversation is listed, found by search, exported, read and deleted (S1)."""
    async with runtime_with(tmp_path, lambda _: says("black")) as runtime:
        raven, swan = await said(runtime, "raven"), await said(runtime, "swan")
        with disk(runtime, tmp_path) as db:
            for column in ("title", "leaf", "user", "call"):
                db.execute(
                    f"UPDATE conversations SET {column} = CAST({column} AS BLOB) WHERE id = ?", (raven,)
                )
            db.execute("UPDATE messages SET parent = CAST(parent AS BLOB) WHERE conversation = ?", (raven,))
            db.execute("UPDATE texts SET text = CAST(text AS BLOB)")
        assert {one.title for one in await runtime.conversations()} == {"About a raven", "About a swan"}
        assert {one.conversation for one in await runtime.search("raven")} == {raven}
        assert {one.conversation for one in await runtime.search("black")} == {raven, swan}
        assert "black" in str(await runtime.export(raven))
        assert "black" in await runtime.export_markdown(raven)
        chat = await runtime.conversation(raven)
        await (await chat.send("again")).result()
        assert [one.text for one in await chat.messages()] == ["raven", "black", "again", "black"]
        await runtime.delete(raven)
        assert [one.id for one in await runtime.conversations()] == [swan]


@pytest.mark.parametrize("value", ["9e999", "-9e999", "'x'", "x'00ff'"])
async def test_a_number_that_is_none_stops_nothing(tmp_path: Path, value: str) -> None:
    """S1: neither the list, nor an export, nor the next turn, nor what was spent."""
    async with runtime_with(tmp_path, lambda _: says("black")) as runtime:
        gone, raven = await said(runtime, "swan"), await said(runtime, "raven")
        await runtime.delete(gone)
        with disk(runtime, tmp_path) as db:
            db.execute(f"UPDATE conversations SET created = {value}, updated = {value}, revision = {value}")
            db.execute(f"UPDATE turns SET created = {value}")
            db.execute(f"UPDATE past_spending SET replies = {value}, input = {value}, cost = {value}")
        assert [one.created for one in await runtime.conversations()] == [0]
        assert (await runtime.export(raven))["format"]
        chat = await runtime.conversation(raven)
        assert (await (await chat.send("again")).result()).text == "black"
        assert sum(one.replies for one in await runtime.spending()) == 2


async def test_what_was_mixed_up_is_not_taken_for_what_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """S1: the body of another message, tags that are none, and a role that nobody has."""
    async with runtime_with(tmp_path, lambda _: says("black")) as runtime:
        raven = await said(runtime, "raven")
        chat = await runtime.conversation(raven)
        await runtime.store.set_member(raven, Member("bob", "reads", "ada", 1.0))
        with disk(runtime, tmp_path) as db:
            (body,) = db.execute("SELECT body FROM messages WHERE role = 'user'").fetchone()
            db.execute("UPDATE messages SET body = ? WHERE role = 'assistant'", (body,))
            db.execute("UPDATE conversations SET tags = '{'")
            db.execute("UPDATE members SET role = 9")
        mixed_up = (await chat.messages())[1]
        assert "the store has another message there" in str(mixed_up.parts)
        assert (mixed_up.conversation, mixed_up.role, len(mixed_up.parts)) == (raven, "assistant", 1)
        assert (await chat.info()).tags == ()
        assert await runtime.store.members(raven) == []
        assert "cannot read member bob: the role is unknown" in caplog.text
        assert await runtime.store.right_of(raven, "bob") is Right.NONE


async def test_a_grant_that_is_no_text_or_has_no_end_grants_nothing(tmp_path: Path) -> None:
    """If a grant's permission or expiry cannot be read, the call needs approval (P3)."""
    async with runtime_with(tmp_path, []) as runtime:
        with disk(runtime, tmp_path) as db:
            row = "INSERT INTO grants (id, permission, pattern, action, created, workspace, expires) VALUES "
            db.execute(f"{row} ('grant_1', 'add', '*', 'allow', 1, x'00ff', NULL)")
            db.execute(f"{row} ('grant_2', 'add', '*', 'allow', 1, NULL, 'x')")
            db.execute(f"{row} ('grant_3', 'add', '*', 'allow', 'x', NULL, NULL)")
        assert [grant.id for grant in await runtime.grants()] == ["grant_3"]


@pytest.mark.parametrize("table", ["messages", "turns"])
async def test_a_conversation_is_deleted_also_where_others_hang_on_its_messages(
    tmp_path: Path, table: str
) -> None:
    """Deletion works although rows name another conversation than the one they were written for (S1)."""
    async with runtime_with(tmp_path, lambda _: says("black")) as runtime:
        raven, swan = await said(runtime, "raven"), await said(runtime, "swan")
        with disk(runtime, tmp_path) as db:
            for blob in ("x'00ff'", "'x'"):
                row = f"INSERT INTO blob_references VALUES ({blob}, 'message', 'msg_x', ?)"
                db.execute(row, (raven,))
            newest = f"SELECT max(rowid) FROM {table} WHERE conversation = ?"
            db.execute(f"UPDATE {table} SET conversation = ? WHERE rowid = ({newest})", (swan, raven))
        await runtime.delete(raven)
        assert [one.id for one in await runtime.conversations()] == [swan]
        with disk(runtime, tmp_path) as db:
            assert db.execute("SELECT id FROM conversations").fetchall() == [(swan,)]
            assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        await runtime.delete(swan)


async def test_what_belongs_to_a_row_that_is_gone_is_refused_in_words(tmp_path: Path) -> None:
    """S2: not as a bug of ours."""
    async with runtime_with(tmp_path, [calls("add", a=1, b=2)], tools=[add], allow=()) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        chat = await runtime.conversation((await runtime.conversations())[0].id)
        await chat.send("then", queue=True)
        with disk(runtime, tmp_path) as db:
            db.execute("UPDATE turns SET id = 'turn_x'")
        with pytest.raises(StoreUnavailable, match=r"a row that this belongs to is missing.*dragoman doctor"):
            await chat.send("and then", queue=True)


@pytest.mark.parametrize("kind", ["answer", "result", "steer"])
async def test_a_signal_that_names_nothing_does_not_keep_its_turn_from_being_cancelled(
    tmp_path: Path, kind: str
) -> None:
    """T6"""
    async with runtime_with(tmp_path, [calls("add", a=1, b=2)], tools=[add], allow=()) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        conversation = (await runtime.conversations())[0].id
        with disk(runtime, tmp_path) as db:
            db.execute("INSERT INTO signals (turn, kind, body) VALUES (?, ?, '{}')", (turn.id, kind))
        assert (await queue_of(runtime, conversation, await runtime.store.turns(conversation))).steering == []
        assert await turn.cancel()
        assert (await turn.result()).state == "cancelled"


async def test_a_turn_that_cannot_be_taken_up_for_any_reason_holds_up_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """S3"""
    script = [calls("add", a=1, b=2)] * 2
    async with runtime_with(tmp_path, script, tools=[add], allow=()) as runtime:
        hurt, fine = await runtime.send("go"), await runtime.send("go")
        assert await hurt.reached("waiting")
        assert await fine.reached("waiting")
        with disk(runtime, tmp_path) as db:
            db.execute("UPDATE turns SET state = 'tool_call', epoch = 9e999 WHERE id = ?", (hurt.id,))
            db.execute("UPDATE facts SET body = '{' WHERE turn = ?", (hurt.id,))
    async with runtime_with(tmp_path, [says("3")], tools=[add], allow=()) as runtime:
        await runtime.answer(fine.question, allow_once())
        assert (await runtime.turn(fine.id).result()).text == "3"
        assert (await runtime.store.turn(hurt.id)).live
        await runtime.delete((await runtime.store.turn(hurt.id)).conversation)
    assert f"Turn {hurt.id} cannot resume" in caplog.text


async def test_a_queued_turn_that_cannot_be_read_holds_up_no_other(tmp_path: Path) -> None:
    """The store opens, turns queued after the unreadable one start, and it can be cancelled (S3)."""
    async with runtime_with(tmp_path, [calls("add", a=1, b=2)] * 2, tools=[add], allow=()) as runtime:
        queued = []
        for _ in range(2):
            chat = await runtime.conversation()
            assert await (await chat.send("go")).reached("waiting")
            queued.append(await chat.send("and then?", queue=True))
        hurt, fine = queued
    with disk(runtime, tmp_path) as db:
        db.execute("UPDATE turns SET state = 'cancelled', live = 0")
        db.execute("UPDATE queue SET body = replace(body, 'turn_started', 'x') WHERE turn = ?", (hurt.id,))
    async with runtime_with(tmp_path, [says("then")]) as runtime:
        assert (await runtime.turn(fine.id).result()).text == "then"
    async with runtime_with(tmp_path, []) as runtime:
        assert await runtime.turn(hurt.id).cancel()
        assert not (await runtime.store.turn(hurt.id)).live
