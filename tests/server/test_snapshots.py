"""Check that a client's first snapshot agrees with the events that follow, whenever the client
connects (E2)."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from dragoman.store.sqlite import SqliteStore
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.runtimes import add
from tests.server.site import Site, served

pytestmark = pytest.mark.slow

_READERS = 4
_ROUNDS = 4


class SlowStore(SqliteStore):
    """A store on a slow disk: a write is always in progress when a client connects."""

    def _append(self, *write: Any) -> None:
        time.sleep(0.02)
        super()._append(*write)


async def _come_again_and_again(site: Site, conversation: str, turn: str) -> None:
    """Connect repeatedly until the turn is over. A turn that the last snapshot shows as running must be
    followed to its end."""
    path = f"/api/conversations/{conversation}/events"
    while True:
        (seen,) = await site.until(path, "snapshot")
        if not seen.data["turns"]:
            return
        if not (await site.runtime.store.turn(turn)).live:
            await site.until(path, "turn.end", seen.id)
            return


async def test_a_snapshot_never_shows_a_turn_as_running_whose_end_was_told_before(tmp_path: Path) -> None:
    """Readers connect all the time while turns end. A reader that missed an end would wait for it forever
    (E2)."""
    script = [calls("add", a=1, b=2), says("3")] * _ROUNDS
    store = SlowStore(tmp_path / "chat.db")
    async with served(tmp_path, script, tools=[add], store=store) as site, asyncio.timeout(PATIENCE):
        id = await site.conversation()
        for _ in range(_ROUNDS):
            turn = await site.say("go", id)
            await asyncio.gather(*(_come_again_and_again(site, id, turn) for _ in range(_READERS)))


async def test_who_is_told_that_a_turn_waits_finds_its_question(tmp_path: Path) -> None:
    """Everything that a caller receives is on disk (S2)."""
    store = SlowStore(tmp_path / "chat.db")
    script = [calls("add", a=1, b=2), says("3")]
    async with served(tmp_path, script, tools=[add], store=store, allow=()) as site:
        async with asyncio.timeout(PATIENCE):
            turn = await site.say("go")
            while await site.state(turn) != "waiting":
                pass
            (question,) = (await site.get("/api/questions"))["items"]
            assert question["turn"] == turn
