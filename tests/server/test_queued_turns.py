"""Check that a turn that is not running is shown as waiting for a slot or as unable to resume (N5, T14)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman import Runtime, ScriptedModel
from dragoman.messages.request import Request
from dragoman.store.postgres.store import PostgresStore
from dragoman.turn.drivers.jobs import TurnLimits
from dragoman.wire.scripted import Line, says
from tests.patience import PATIENCE
from tests.postgres import Server, schema_of
from tests.runtimes import runtime_with
from tests.server.site import Site, served, serving

pytestmark = pytest.mark.slow


def play(request: Request) -> Line:
    last = request.messages[-1].parts[0]
    return says("never said", waits=60) if last.type == "text" and last.text == "long" else says("done")


async def test_a_turn_over_a_limit_is_queued_until_there_is_a_place(tmp_path: Path) -> None:
    """The sender and every watcher see it: no state is published in which no process has the turn
    (N5, E1)."""
    async with served(tmp_path, play, turn_limits=TurnLimits(1)) as site, asyncio.timeout(PATIENCE):
        first = await site.say("long")
        await site.until(f"/api/turns/{first}/events", "step.start")
        id = await site.conversation()
        async with site.events(f"/api/conversations/{id}/events") as events:
            assert (await anext(events)).data["turns"] == []
            second = await site.say("short", id)
            assert await site.state(second) == "queued"
            async for event in events:
                if event.type == "snapshot":
                    break
            assert [(one["id"], one["state"]) for one in event.data["turns"]] == [(second, "queued")]
            await site.post(f"/api/turns/{first}/cancel")
            told = []
            async for event in events:
                told.append(event.type)
                if event.type == "turn.end":
                    break
        assert "turn.start" in told
        assert await site.state(second) == "completed"


async def test_a_turn_that_is_queued_is_cancelled_at_once(tmp_path: Path) -> None:
    """T6 × N5: no place has to become free for that."""
    async with served(tmp_path, play, turn_limits=TurnLimits(1)) as site, asyncio.timeout(PATIENCE):
        first = await site.say("long")
        await site.until(f"/api/turns/{first}/events", "step.start")
        second = await site.say("short")
        await site.post(f"/api/turns/{second}/cancel")
        await site.until(f"/api/turns/{second}/events", "turn.end")
        assert (await site.state(first), await site.state(second)) == ("streaming", "cancelled")


@asynccontextmanager
async def watched(folder: Path, server: Server) -> AsyncIterator[Site]:
    """Yield a web node of a fleet whose workers come and go."""
    store = PostgresStore(server.url(schema_of(folder)), lease=4.0)
    async with (
        runtime_with(folder, [], store=store, role="web") as runtime,
        serving(folder, runtime) as site,
        asyncio.timeout(PATIENCE),
    ):
        yield site


def worker(folder: Path, server: Server, model: ScriptedModel) -> Runtime:
    return Runtime(
        PostgresStore(server.url(schema_of(folder)), lease=4.0),
        model=model,
        workspace=folder,
        role="worker",
        turn_limits=TurnLimits(4),
    )


@pytest.mark.long
async def test_a_turn_waits_in_line_while_there_is_no_worker(tmp_path: Path, postgres: Server) -> None:
    """A worker takes the turn when it starts (N2)."""
    async with watched(tmp_path, postgres) as site:
        turn = await site.say("short")
        assert await site.state(turn) == "queued"
        async with worker(tmp_path, postgres, ScriptedModel([says("done")], name="scripted/model")):
            await site.until(f"/api/turns/{turn}/events", "turn.end")
        assert await site.state(turn) == "completed"


async def test_a_turn_that_no_worker_can_run_says_so(tmp_path: Path, postgres: Server) -> None:
    """A watcher at a node that runs no turns sees the reason, and a worker that can run the turn does (T14,
    N2)."""
    async with watched(tmp_path, postgres) as site:
        id = await site.conversation()
        async with site.events(f"/api/conversations/{id}/events") as events:
            assert (await anext(events)).data["turns"] == []
            turn = await site.say("short", id)
            async with worker(tmp_path, postgres, ScriptedModel([says("x")], name="other/model")):
                async for event in events:
                    if event.type == "notice":
                        break
                assert event.data["kind"] == "quarantined"
                assert "scripted/model" in event.data["text"]
                async for event in events:
                    if event.type == "snapshot":
                        break
                assert [one["state"] for one in event.data["turns"]] == ["interrupted"]
            assert await site.state(turn) == "interrupted"
            async with worker(tmp_path, postgres, ScriptedModel([says("done")], name="scripted/model")):
                async for event in events:
                    if event.type == "turn.end":
                        break
        assert await site.state(turn) == "completed"
