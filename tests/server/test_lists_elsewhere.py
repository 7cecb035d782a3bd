"""A list of conversations follows what another node does, or another process on the same file (N3)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from dragoman.conversation.tree import Conversation
from dragoman.errors import StoreUnavailable
from dragoman.server.feeds import FeedReader, Pace
from dragoman.server.list_feeds import Lists
from dragoman.store.sqlite import SqliteStore
from dragoman.wire.scripted import calls, says
from tests.fleet import Fleet, Node, node
from tests.loopback import Body, Reply, loopback
from tests.patience import PATIENCE
from tests.postgres import Server, schema_of
from tests.runtimes import runtime_with

pytestmark = pytest.mark.slow


class Breaks(SqliteStore):
    """A store that cannot be reached once."""

    broken = False

    async def conversation(self, id: str) -> Conversation:
        if self.broken:
            self.broken = False
            raise StoreUnavailable("the store", "it is gone for a moment", retryable=True)
        return await super().conversation(id)


async def test_a_line_that_could_not_be_read_is_told_at_the_next_look(tmp_path: Path) -> None:
    """N3 × S3"""
    store = Breaks(tmp_path / "chat.db")
    async with runtime_with(tmp_path, [], store=store) as runtime, asyncio.timeout(PATIENCE):
        lists = Lists(runtime, AsyncMock())
        feed = await lists.feed_of("local")
        id = (await runtime.conversation()).id
        store.broken = True
        lists.changed(id)
        while store.broken or not lists.unsettled:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0)
        assert feed.last == 0
        feed.add_reader(reader := FeedReader(Pace()))
        lists.take([])
        while not feed.last:
            await reader.wait()
        (frame,) = feed.since(0) or []
        assert b"event: conversation.changed" in frame
        assert id.encode() in frame
        lists.gone(id, "local")
        lists.gone(id, "local")
        assert [b"conversation.deleted" in frame for frame in feed.since(1) or []] == [True]
        lists.take(None)
        assert b"event: list.reset" in (feed.since(2) or [b""])[0]


async def list_events(node: Node) -> AsyncIterator[tuple[str, Any]]:
    """Yield the list events that a client of this node receives, after the stream is open."""
    kind = ""
    async with node.http.get("/api/events") as events:
        async for line in events.content:
            if line.startswith(b": welcome"):
                yield "welcome", None
            elif line.startswith(b"event: "):
                kind = line[7:].decode().strip()
            elif line.startswith(b"data: "):
                yield kind, json.loads(line[6:])


async def until(events: AsyncIterator[tuple[str, Any]], wanted: str, **shown: Any) -> None:
    """Skips what comes before it."""
    async for kind, data in events:
        assert kind != "list.reset"
        if kind == wanted and (data is None or data.items() >= shown.items()):
            return
    raise AssertionError(f"the stream ended before {wanted} {shown}")


@pytest.mark.parametrize("engine", [pytest.param("postgres", marks=pytest.mark.long), "sqlite"])
async def test_a_list_follows_what_another_node_does(tmp_path: Path, postgres: Server, engine: str) -> None:
    """The list shows new conversations, titles, pins, running turns, waiting approval requests and deletions
    (N3)."""

    def play(body: Body) -> Reply:
        done = body["messages"][-1]["role"] == "tool"
        return says("It is done.") if done else calls("shell", command="true")

    store = postgres.url(schema_of(tmp_path)) if engine == "postgres" else str(tmp_path / "chat.db")
    async with (
        loopback(play) as model,
        node(fleet := Fleet(tmp_path, store, model.url)) as here,
        node(fleet) as there,
        asyncio.timeout(PATIENCE),
    ):
        events = list_events(here)
        await until(events, "welcome")
        id = (await there.post("/api/conversations", {}))["id"]
        await until(events, "conversation.changed", id=id, title=None)
        await patch(there, id, title="Ravens")
        await until(events, "conversation.changed", id=id, title="Ravens")
        await patch(there, id, pinned=True)
        await until(events, "conversation.changed", id=id, pinned=True)
        await there.post(f"/api/conversations/{id}/turns", {"text": "do it"})
        await until(events, "conversation.changed", id=id, live=True, waiting=1)
        (question,) = (await here.get("/api/questions"))["items"]
        await there.post(f"/api/questions/{question['id']}/answer", {"verdict": "allow"})
        await until(events, "conversation.changed", id=id, live=False, waiting=0)
        async with there.http.delete(f"/api/conversations/{id}") as answer:
            assert answer.status < 300
        await until(events, "conversation.deleted", id=id)
        await events.aclose()  # type: ignore[attr-defined]


async def patch(node: Node, conversation: str, **change: Any) -> None:
    async with node.http.patch(f"/api/conversations/{conversation}", json=change) as answer:
        assert answer.status < 300, await answer.text()
