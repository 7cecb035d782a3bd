"""A repeated send joins its turn. A conversation and its first turn are both stored, or neither."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import Runtime, ScriptedModel, tool
from dragoman.errors import BadRequest, KeyReused, NotFound
from dragoman.store.postgres.store import PostgresStore
from dragoman.store.sqlite import SqliteStore
from dragoman.store.store import SendKey
from dragoman.sync import SyncRuntime
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.postgres import Server, schema_of
from tests.runtimes import runtime_with, with_tables

Open = Callable[..., Runtime]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """One more runtime on the same store, as another node is."""
    server: Server | None = request.getfixturevalue("postgres") if request.param == "postgres" else None

    def open(script: Any, **options: Any) -> Runtime:
        store = (
            SqliteStore(with_tables(tmp_path / "chat.db"))
            if server is None
            else PostgresStore(server.url(schema_of(tmp_path)))
        )
        return runtime_with(tmp_path, script, store=store, **options)

    return open


class Counted:
    """A tool that counts."""

    def __init__(self) -> None:
        self.ran = 0

        @tool
        def pay() -> str:
            """Pay."""
            self.ran += 1
            return "paid"

        self.tool = pay


async def test_the_same_key_is_the_same_turn_on_every_node(opened: Open) -> None:
    """A key joins its turn, whatever its state and after a restart. A new or missing key starts another
    turn."""
    paid = Counted()
    script = [calls("pay"), says("done"), says("other"), says("third")]
    async with opened(script, tools=[paid.tool]) as one, opened([]) as other:
        first = await one.send("pay", key="k")
        assert (await first.result()).text == "done"
        again = await other.send("pay", key="k")
        assert again.id == first.id
        assert (await again.result()).text == "done"
        assert (await (await one.send("pay")).result()).text == "other"
        assert (await (await one.send("pay", key="l")).result()).text == "third"
        assert len(await one.conversations()) == 3
    async with opened([]) as later:
        assert (await later.send("pay", key="k")).id == first.id
    assert paid.ran == 1


async def test_two_that_come_at_the_same_moment_begin_one_turn(opened: Open) -> None:
    """The unique constraint in the transaction of the send lets the loser leave nothing."""
    paid = Counted()
    async with (
        opened([calls("pay"), says("done")], tools=[paid.tool]) as one,
        opened([], adopts=False) as two,
    ):
        nodes = [one, two, one, two, one, two]
        turns = await asyncio.gather(*(node.send("pay", key="k") for node in nodes))
        assert len({turn.id for turn in turns}) == 1
        assert len(await one.conversations()) == 1
    assert paid.ran <= 1


async def test_a_key_joins_a_turn_that_runs_and_one_that_is_queued(opened: Open) -> None:
    """A repeated send joins its turn in a busy conversation, and is not refused because of it."""
    gate = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        await gate.wait()
        return "waited"

    async with opened([calls("wait"), says("one"), says("two")], tools=[wait]) as runtime:
        chat = await runtime.conversation()
        first = await chat.send("go", key="a")
        assert (await chat.send("go", key="a")).id == first.id
        queued = await chat.send("more", queue=True, key="b")
        assert (await chat.send("more", queue=True, key="b")).id == queued.id
        gate.set()
        async with asyncio.timeout(PATIENCE):
            assert [(await turn.result()).text for turn in (first, queued)] == ["one", "two"]
        assert (await chat.send("more", queue=True, key="b")).id == queued.id


async def test_a_key_joins_a_cancelled_turn(opened: Open) -> None:
    """Retry x cancelled turn: it stays cancelled."""
    gate, paid = asyncio.Event(), Counted()

    @tool(cancellable=True)
    async def wait() -> str:
        """Wait."""
        await gate.wait()
        return "waited"

    script = [calls("pay"), calls("wait"), calls("pay"), says("done")]
    async with opened(script, tools=[wait, paid.tool]) as runtime:
        turn = await runtime.send("pay", key="k")
        async for event in turn.events():
            if event.type == "call.start" and paid.ran:
                await turn.cancel()
        again = await runtime.send("pay", key="k")
        assert (again.id, (await again.result()).state) == (turn.id, "cancelled")
    assert paid.ran == 1


async def test_a_key_with_other_content_is_an_error(opened: Open) -> None:
    """Other text, options or another conversation is an error, and a key belongs to its user."""
    async with opened([says("one"), says("two")]) as runtime:
        await (await runtime.send("go", key="k")).result()
        chat = await runtime.conversation()
        others: list[Any] = [
            runtime.send("go!", key="k"),
            runtime.send("go", key="k", system="other"),
            chat.send("go", key="k"),
        ]
        for other in others:
            with pytest.raises(KeyReused, match="Another send used the idempotency key 'k'"):
                await other
        assert await chat.messages() == []
        ada = await runtime.conversation(user="ada")
        assert (await (await ada.send("go", key="k")).result()).text == "two"
        for wrong in ("", " ", "a\n", "x" * 256):
            with pytest.raises(BadRequest, match="idempotency key"):
                await runtime.send("go", key=wrong)


async def test_a_key_is_kept_for_a_day(opened: Open) -> None:
    now = [time.time()]
    async with opened([says("one"), says("two"), says("three")], clock=lambda: now[0]) as runtime:
        first = await runtime.send("go", key="k")
        await first.result()
        now[0] += 24 * 3600 - 1
        assert (await runtime.send("go", key="k")).id == first.id
        now[0] += 2
        second = await runtime.send("other", key="k")
        assert (await second.result()).text == "two"
        now[0] = time.time() - 25 * 3600
        await runtime.send("go", key="old")
        await runtime.store._finish_deletions()  # type: ignore[attr-defined]
        left = [SendKey(name, "", 0.0) for name in ("old", "k")]
        assert await runtime.store.turn_of_key("local", left[0]) is None
        with pytest.raises(KeyReused):  # it is there
            await runtime.store.turn_of_key("local", left[1])


async def test_a_send_without_a_conversation_stores_both_or_neither(opened: Open) -> None:
    """A refused send leaves the list unchanged, and no conversation ever exists without its turn (S2)."""
    async with opened([says("one")]) as runtime:
        for wrong in ({"model": None, "agent": "nobody"}, {"disable": ["nothing"]}):
            with pytest.raises((NotFound, BadRequest)):
                await runtime.send("go", **wrong)
        with pytest.raises(BadRequest):
            await runtime.send(" ")
        assert await runtime.conversations() == []
        sending = asyncio.create_task(runtime.send("go"))
        while not sending.done():
            for conversation in await runtime.conversations():
                assert await runtime.store.turns(conversation.id)
            await asyncio.sleep(0)
        await (await sending).result()


@pytest.mark.parametrize("passes", range(12))
async def test_a_send_that_is_cancelled_half_way_stores_both_or_neither(tmp_path: Path, passes: int) -> None:
    """S2 x cancel, at every point where the event loop passes by."""
    async with runtime_with(tmp_path, [says("one")]) as runtime:
        sending = asyncio.create_task(runtime.send("go"))
        for _ in range(passes):
            await asyncio.sleep(0)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        async with asyncio.timeout(PATIENCE):
            for conversation in await runtime.conversations():
                (row,) = await runtime.store.turns(conversation.id)
                assert (await runtime.turn(row.id).result()).text == "one"


def test_the_synchronous_runtime_takes_a_key(tmp_path: Path) -> None:
    with SyncRuntime(tmp_path / "chat.db", model=ScriptedModel([says("one")])) as runtime:
        first = runtime.send("go", key="k")
        assert first.result().text == "one"
        assert runtime.send("go", key="k").id == first.id
        chat = runtime.conversation()
        with pytest.raises(KeyReused):
            chat.send("go", key="k")
