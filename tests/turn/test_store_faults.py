"""If the store is unreachable for a while, the turn retries and does not get stuck (S2, S3, T8)."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import pytest

from dragoman import Runtime, ScriptedModel, allow_once, tool
from dragoman.errors import StoreUnavailable
from dragoman.messages.message import CallState
from dragoman.messages.request import Request
from dragoman.store.sql.database import Operation
from dragoman.store.sqlite import SqliteStore
from dragoman.wire.scripted import Line, calls, says
from tests.patience import PATIENCE, eventually
from tests.runtimes import add, only_call, runtime_with, with_tables
from tests.sweeps import some

T = TypeVar("T")


@pytest.mark.slow
async def test_a_turn_goes_on_when_a_locked_store_is_free_again(tmp_path: Path) -> None:
    """The turn fails, is given up, and the same process adopts it again, while other turns run on (S3)."""
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
            locked.set()  # the tool returns, and its result cannot be stored
            ended = asyncio.create_task(turn.result())
            with pytest.raises(StoreUnavailable):
                await runtime.send("somebody else")
            assert not ended.done()
            other.execute("ROLLBACK")
        result = await asyncio.wait_for(ended, PATIENCE)
        assert (result.state, result.text) == ("completed", "done")
        assert only_call(result).state is CallState.COMPLETED
        assert (await (await runtime.send("somebody else")).result()).state == "completed"


class Fading(SqliteStore):
    """Claims a turn, and is then unreachable for reads and for releasing the turn."""

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
    """A turn is neither quarantined forever nor owned by a process that does not run it (S3, T14)."""
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


class Faulty(SqliteStore):
    """Fails one statement once, as if the connection to the store broke for a moment."""

    left = -1  # until the one that fails

    def _read(self, operation: Operation[T], *, slow: bool = False) -> Awaitable[T]:
        return self._fails() if self._is_due() else super()._read(operation, slow=slow)

    def _write(
        self, operation: Operation[T], *, sync: bool = False, line: str | None = None
    ) -> asyncio.Future[T]:
        if self._is_due():
            return asyncio.ensure_future(self._fails())
        return super()._write(operation, sync=sync, line=line)

    def _is_due(self) -> bool:
        self.left -= 1
        return self.left == 0

    async def _fails(self) -> Any:
        raise StoreUnavailable("the store", "it is out of reach for a moment", retryable=True)


@pytest.mark.slow
@pytest.mark.parametrize("place", some([1, 2, 3, 4, 5, 6], 2, 0))
async def test_n4_no_statement_that_fails_once_ends_a_turn(tmp_path: Path, place: int) -> None:
    """N4, S3: reads and writes alike. The turn breaks off and resumes."""
    store = Faulty(with_tables(tmp_path / "chat.db"))

    def reply(request: Request) -> Line:
        answered = any(message.role == "assistant" for message in request.messages)
        return says("2") if answered else calls("add", a=1, b=1)

    @tool(name="add", replay="safe")
    def add_again(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    async with Runtime(store, model=ScriptedModel(reply), tools=[add_again], allow=["*"]) as runtime:
        turn = await runtime.send("go")
        store.left = place
        await eventually(
            lambda: state_in(tmp_path / "chat.db", turn.id) in ("completed", "error", "cancelled")
        )
        store.left = -1
        result = await runtime.turn(turn.id).result()
    assert (result.state, result.text) == ("completed", "2")


def state_in(file: Path, turn: str) -> str:
    """By a connection that never fails."""
    with closing(sqlite3.connect(file)) as db:
        return str(db.execute("SELECT state FROM turns WHERE id = ?", (turn,)).fetchone()[0])
