"""A store that cannot be reached for a while: the turn tries again, and nothing is stuck (S2, S3, T8)."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dragoman import Runtime, ScriptedModel, allow_once, tool
from dragoman.errors import StoreUnavailable
from dragoman.messages.message import CallState
from dragoman.store.sqlite import SqliteStore
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.runtimes import add, only_call, runtime_with


@pytest.mark.slow
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


class Fading(SqliteStore):
    """Claims a turn, and is gone then, for reading and for giving it up."""

    gone = False

    async def facts(self, turn: str) -> list[str]:
        self._check()
        return await super().facts(turn)

    async def release(self, turn: str, epoch: int) -> None:
        self._check()
        await super().release(turn, epoch)

    def _check(self) -> None:
        if self.gone:
            raise StoreUnavailable("the store", "it is gone for a moment", retryable=True)


@pytest.mark.long
@pytest.mark.slow
async def test_a_turn_is_not_kept_by_who_could_not_read_it(tmp_path: Path) -> None:
    """S3, T14: neither set aside for good, nor owned by a process that does not run it."""
    async with runtime_with(tmp_path, [calls("add", a=1, b=1)], tools=[add], allow=()) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
    store = Fading(tmp_path / "chat.db")
    async with runtime_with(tmp_path, [says("2")], tools=[add], allow=(), store=store) as second:
        store.gone = True
        with pytest.raises(StoreUnavailable):
            await second.turn(turn.id).resume()
        store.gone = False
        async with asyncio.timeout(PATIENCE):
            while not await second.turn(turn.id).resume():  # noqa: ASYNC110 - it is given up in the background
                await asyncio.sleep(0.05)
        await second.answer(turn.question, allow_once())
        assert (await second.turn(turn.id).result()).text == "2"
