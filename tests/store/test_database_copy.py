"""A whole store moves to another engine and back with the same rows, and its conversations continue there
(N1)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dragoman import Runtime, ScriptedModel, allow_once, tool
from dragoman.conversation.tree import Conversation
from dragoman.errors import BadRequest, ConfigError, NotFound
from dragoman.messages.message import File, Message, Text
from dragoman.parameters import store_at
from dragoman.store.sql.database import SqlDatabase
from dragoman.store.sql.database_copy import copy_store
from dragoman.store.sqlite import SqliteStore
from dragoman.wire.scripted import calls, says
from tests.cli.program import program
from tests.postgres import Server, schema_of

pytestmark = pytest.mark.slow


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"{amount} paid"


def runtime(store: str | Path, *lines: str) -> Runtime:
    script = [calls("pay", amount=3), *(says(line) for line in lines)]
    return Runtime(store, model=ScriptedModel(script[1:] if lines else script), tools=[pay], ask=["pay"])


async def fill(place: Path) -> tuple[str, str]:
    """A turn that is over, with an attachment and words of many kinds, and one that waits for a person."""
    async with runtime(place, "A raven, \u4e4c\u9e26, \U0001f426 and a zero: \0.") as first:
        blob = await first.store.put_blob(b"picture")
        chat = await first.conversation(user="ada")
        await (await chat.send([Text("What is it?"), File("image/png", blob=blob)])).result()
        await first.store.add_person("ada", "hash of a key", 1.0, restore=True)
        await first.store.set_prompt("ada", "short", "Be short.")
    async with runtime(place) as second:
        turn = await (await second.conversation(chat.id)).send("Pay")
        assert await turn.reached("waiting")
    return chat.id, turn.id


async def copied(source: str | Path, target: str | Path) -> list[str]:
    stores = [store_at(place) for place in (source, target)]
    for store in stores:
        await store.open()
    try:
        one, other = (store for store in stores if isinstance(store, SqlDatabase))
        done: dict[str, int] = {}
        lost = await copy_store(one, other, done.__setitem__)
        assert done["messages"] > 0
        return lost
    finally:
        for store in stores:
            await store.close()


async def test_a_store_is_copied_there_and_back_and_a_turn_that_waited_goes_on(
    tmp_path: Path, postgres: Server
) -> None:
    """N1, P6"""
    chat, turn = await fill(tmp_path / "chat.db")
    there, back = postgres.url(schema_of(tmp_path)), tmp_path / "back.db"
    await copied(tmp_path / "chat.db", there)
    await copied(tmp_path / "chat.db", there)  # again: there is nothing more to do
    await copied(there, back)
    for place in (there, back):
        async with runtime(place, "Done.") as again:
            waiting = again.turn(turn)
            (question,) = (await waiting.snapshot()).questions
            await waiting.answer(question, allow_once())
            assert (await waiting.result()).text == "Done."
            messages = await (await again.conversation(chat)).messages()
            assert [message.role for message in messages] == ["user", "assistant"] * 2 + ["assistant"]
            assert await again.store.blob(messages[0].files[0].blob or "") == b"picture"
            assert [hit.conversation for hit in await again.store.search("raven")] == [chat]
            assert [one.name for one in await again.store.people()] == ["ada"]
            turn_after = await (await again.conversation(chat)).send(
                "more"
            )  # numbers continue after the copied ones
            assert turn_after.id != turn


async def test_what_cannot_be_read_and_who_came_before_its_parent_stop_no_copy(tmp_path: Path) -> None:
    """A copy leaves out a damaged attachment, and does not need the clocks of two nodes to agree (N1, S1)."""
    chat, _ = await fill(tmp_path / "chat.db")
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    await store.add_conversation(
        Conversation("conv_inner", parent=chat, call="call_1", created=0.5, updated=0.5)
    )
    (blob,) = (tmp_path / "chat.db.files" / "blobs").glob("*/*")
    key, sound, gone = blob.parent.name + blob.name, await store.put_blob(b"sound"), "0" * 64
    files = tuple(File("image/png", blob=one) for one in (sound, gone, gone))
    await store.add_conversation(Conversation("conv_2"), [Message("msg_x", "conv_2", None, "user", files)])
    await store.close()
    blob.write_bytes(b"altered")
    assert await copied(tmp_path / "chat.db", tmp_path / "new.db") == [key, gone]
    store = SqliteStore(tmp_path / "new.db")
    await store.open()
    assert await store.blob(sound) == b"sound"
    assert (await store.conversation("conv_inner")).parent == chat
    await store.close()


async def test_a_copy_that_is_changed_meanwhile_is_not_taken_for_one(tmp_path: Path) -> None:
    """N1: each row is compared, after all are there."""
    chat, _ = await fill(tmp_path / "chat.db")
    stores = [SqliteStore(tmp_path / name) for name in ("chat.db", "new.db")]
    told: list[str] = []

    def interfere(what: str, _: int) -> None:
        if what == "checking conversations":
            with closing(sqlite3.connect(tmp_path / "new.db")) as db, db:
                db.execute("UPDATE conversations SET title = 'another'")
        told.append(what)

    for store in stores:
        await store.open()
    with pytest.raises(ConfigError, match=f"differs in 1 rows of conversations, such as .*{chat}"):
        await copy_store(stores[0], stores[1], interfere)
    assert {"conversations", "messages", "attachments", "checking conversations"} <= {*told}
    with pytest.raises(NotFound, match="conv_x"):
        await stores[1].export_raw("conv_x")
    for store in stores:
        await store.close()


async def test_nothing_is_copied_into_somebody_elses_store_or_out_of_one_in_use(tmp_path: Path) -> None:
    """N1: numbers would collide, and half of a turn would be there."""
    await fill(tmp_path / "chat.db")
    await fill(tmp_path / "other.db")
    with pytest.raises(BadRequest, match="not in the source"):
        await copied(tmp_path / "chat.db", tmp_path / "other.db")
    async with runtime(tmp_path / "chat.db"):  # which may write at any moment
        with pytest.raises(BadRequest, match="Stop it, then copy"):
            await copied(tmp_path / "chat.db", tmp_path / "new.db")


async def test_the_command_says_what_it_did(tmp_path: Path) -> None:
    """N1"""
    await fill(tmp_path / "chat.db")
    done = await program("store", "copy", "chat.db", "new.db", folder=tmp_path)
    assert done.status == 0, done.err
    assert "every row was compared" in done.out
    assert "messages 4" in done.err
    store = SqliteStore(tmp_path / "new.db")
    await store.open()
    assert len(await store.conversations()) == 1
    await store.close()
