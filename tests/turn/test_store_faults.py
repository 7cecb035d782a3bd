"""A store that cannot be reached for a while: the turn tries again, and nothing is stuck (S2, S3, T8)."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dragoman import Runtime, ScriptedModel, tool
from dragoman.errors import StoreUnavailable
from dragoman.messages.parts import CallState
from dragoman.store.sqlite import SqliteStore
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.runtimes import only_call


async def test_a_turn_goes_on_when_a_locked_store_is_free_again(tmp_path: Path) -> None:
    """S3: it breaks off, is given up, and is adopted again by the same process; others are not held up."""
    entered, locked = asyncio.Event(), asyncio.Event()
    runs = 0

    @tool(replay="safe")
    async def count() -> str:
        """Count."""
        nonlocal runs
        runs += 1
        entered.set()
        await locked.wait()
        return f"{runs}"

    path = tmp_path / "chat.db"
    model = ScriptedModel(lambda request: says("done") if len(request.messages) > 1 else calls("count"))
    async with Runtime(
        SqliteStore(path, busy_timeout=0.2), model=model, tools=[count], allow=["*"]
    ) as runtime:
        turn = await runtime.send("go")
        await asyncio.wait_for(entered.wait(), PATIENCE)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            locked.set()  # the tool returns, and what came of it cannot be written
            with pytest.raises(StoreUnavailable, match="locked"):
                await turn.result()
            with pytest.raises(StoreUnavailable):
                await runtime.send("somebody else")
            other.execute("ROLLBACK")
        result = await asyncio.wait_for(runtime.turn(turn.id).result(), PATIENCE)
        assert (result.state, result.text) == ("completed", "done")
        assert only_call(result).state is CallState.COMPLETED
        assert (await (await runtime.send("somebody else")).result()).state == "completed"
