"""A queued turn starts where its resources exist, and waits until then. Exports include queued turns."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import Runtime, ScriptedModel, tool
from dragoman.errors import NotFound
from dragoman.store.postgres.store import PostgresStore
from dragoman.store.sqlite import SqliteStore
from dragoman.turn.live.loading import needs_of
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.postgres import Server, schema_of
from tests.runtimes import with_tables

Open = Callable[..., Runtime]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """A runtime that has these models and no other, on one store."""
    server: Server | None = request.getfixturevalue("postgres") if request.param == "postgres" else None

    def open(gate: asyncio.Event, *names: str) -> Runtime:
        def script(request: Any) -> Any:
            return says("over") if request.messages[-1].role == "assistant" else calls("wait")

        models = {
            "a": ScriptedModel(script, name="a"),
            "b": ScriptedModel(lambda _: says("by b"), name="b"),
        }

        def find(name: str | None) -> ScriptedModel:
            if (name or "a") not in names:
                raise NotFound("model", str(name))
            return models[name or "a"]

        @tool(replay="safe")
        async def wait() -> str:
            """Wait."""
            await gate.wait()
            return "waited"

        store = (
            SqliteStore(with_tables(tmp_path / "chat.db"))
            if server is None
            else PostgresStore(server.url(schema_of(tmp_path)))
        )
        return Runtime(store, model=find, tools=[wait], allow=["*"])

    return open


async def test_a_queued_turn_waits_for_a_process_that_has_its_model(
    opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    """T13, T14: queue x missing model. It does not fail, says what it waits for, and begins where that is."""
    gate = asyncio.Event()
    async with opened(gate, "a", "b") as both:
        chat = await both.conversation()
        first = await chat.send("go")
        async for event in first.events():
            if event.type == "call.start":
                break
        queued = await chat.send("then", queue=True, model="b")
    gate.set()
    async with opened(gate, "a") as one:
        async with asyncio.timeout(PATIENCE):
            assert (await one.turn(first.id).result()).text == "over"
        await asyncio.sleep(1.5)  # longer than the time that others get to start it
        await one.driver.start_queued(queued.id)
        assert caplog.text.count(f"turn {queued.id} stays in the queue") == 1  # however often it is tried
        assert await one.store.queue() == [queued.id]
        (waiting,) = await one.store.queued()
        assert (waiting.turn, needs_of(waiting)) == (queued.id, "a running process that has the model 'b'")
    async with opened(gate, "a", "b") as again, asyncio.timeout(PATIENCE):
        assert (await again.turn(queued.id).result()).text == "by b"


async def test_exports_have_what_is_queued_and_an_import_starts_none_of_it(opened: Open) -> None:
    """S1, T13: JSON and Markdown. In the copy they are below the leaf, and answered if a person wants."""
    gate = asyncio.Event()
    async with opened(gate, "a", "b") as runtime:
        chat = await runtime.conversation()
        first = await chat.send("go")
        async for event in first.events():
            if event.type == "call.start":
                break
        await chat.send("then this", queue=True, model="b")
        await chat.send("and that", queue=True, model="b")
        exported = json.loads(json.dumps(await runtime.export(chat.id)))
        page = await runtime.export_markdown(chat.id)
        assert page.index("## Person (queued)\n\nthen this") < page.index("## Person (queued)\n\nand that")
        copy = await runtime.import_conversation(exported)
        assert await runtime.store.turns(copy.id) == []
        assert await runtime.store.queued(conversation=copy.id) == []
        assert "then this" not in [message.text for message in await copy.messages()]
        tree = await copy.tree()
        below = {message.text: message for message in tree if message.metadata.get("queued")}
        assert [*below] == ["then this", "and that"]
        assert {message.parent for message in below.values()} == {(await copy.info()).leaf}
        answer = await (await copy.rerun(below["and that"].id, model="b")).result()
        assert answer.text == "by b"
        assert "then this" not in [message.text for message in await copy.messages()]
        again = await runtime.export(copy.id)
        assert again["queued"] == []
        gate.set()
