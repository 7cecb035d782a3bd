"""Queued, given-up and limited turns in combination with other events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dragoman import Runtime, ScriptedModel, allow_once, tool
from dragoman.background import Background
from dragoman.messages.events import EVENT, Notice
from dragoman.messages.request import Request
from dragoman.store.postgres.store import PostgresStore
from dragoman.store.sqlite import SqliteStore
from dragoman.store.store import Signal, StoredEvent
from dragoman.store.turns import MemoryJobs
from dragoman.turn.drivers.jobs import TurnLimits
from dragoman.turn.live.event_bus import RemoteEvents
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.postgres import Server, schema_of
from tests.runtimes import add, runtime_with
from tests.turn.test_jobs import SOON, Gate, gate_then_done, until

pytestmark = pytest.mark.slow


async def test_a_turn_that_waits_for_a_place_can_be_cancelled(tmp_path: Path) -> None:
    """T9 × N5"""
    gate = Gate()
    limits = TurnLimits(1)
    async with runtime_with(tmp_path, gate_then_done, tools=[gate.tool], turn_limits=limits) as runtime:
        first = await runtime.send("one")
        await until(lambda: gate.running == 1)
        second = await runtime.send("two")
        assert await second.cancel()
        assert (await asyncio.wait_for(second.result(), PATIENCE)).state == "cancelled"
        gate.open.set()
        assert (await asyncio.wait_for(first.result(), PATIENCE)).text == "done"


async def test_a_turn_is_cancelled_also_where_the_queue_has_given_every_place_away(tmp_path: Path) -> None:
    """A cancel takes effect although the queue hands out no turn while all slots are taken (T9 × N5)."""
    gate = Gate()
    async with (
        runtime_with(tmp_path, gate_then_done, tools=[gate.tool], turn_limits=TurnLimits(1)) as runtime,
        asyncio.timeout(PATIENCE),
    ):
        first = await runtime.send("one")
        await until(lambda: gate.running == 1)
        second = await runtime.send("two")
        await first.cancel()
        await first.result()
        await until(lambda: gate.running == 1 and runtime.bus.here(second.id) is not None)
        third = await runtime.send("three")
        assert await third.cancel()
        assert (await third.result()).state == "cancelled"
        gate.open.set()
        assert (await second.result()).text == "done"


class Meanwhile(SqliteStore):
    """Runs an action while a turn reads its signals."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.meanwhile: dict[str, Callable[[], Awaitable[None]]] = {}

    async def signals(self, turn: str) -> list[Signal]:
        if (happens := self.meanwhile.pop(turn, None)) is not None:
            await happens()
        return await super().signals(turn)


async def test_a_turn_that_ends_while_another_is_given_up_leaves_its_place(tmp_path: Path) -> None:
    """N2 × N5: else there is one less, for good."""
    gate, store = Gate(), Meanwhile(tmp_path / "chat.db")

    def play(request: Request) -> Any:
        return calls("add", a=1, b=2) if request.messages[-1].text == "ask" else gate_then_done(request)

    limits = TurnLimits(2, give_up_after=SOON)
    async with runtime_with(
        tmp_path, play, store=store, tools=[gate.tool, add], allow=["wait"], turn_limits=limits
    ) as runtime:
        waits = await runtime.send("ask")
        assert await waits.reached("waiting")
        ends = await runtime.send("go")
        await until(lambda: gate.running == 1)

        async def end() -> None:
            gate.open.set()
            await until(lambda: runtime.bus.here(ends.id) is None)

        store.meanwhile[waits.id] = end
        await until(lambda: runtime.bus.here(waits.id) is None)
        gate.open.clear()
        turns = [await runtime.send("go") for _ in range(2)]
        await until(lambda: gate.running == 2)
        gate.open.set()
        for turn in turns:
            assert (await asyncio.wait_for(turn.result(), PATIENCE)).text == "done"


class UrgentJobs(MemoryJobs):
    """Forgets what the search for abandoned turns finds, which is not urgent."""

    async def put(self, turn: str, *, urgent: bool = False, delay: float = 0.0) -> None:
        if urgent:
            await super().put(turn, urgent=True)


class BeforeRelease(SqliteStore):
    """Runs an action while a turn is released."""

    happens: Callable[[], Awaitable[object]] | None = None

    async def release(self, turn: str, epoch: int) -> None:
        happens, self.happens = self.happens, None
        if happens is not None:
            await happens()
        await super().release(turn, epoch)


@pytest.mark.parametrize("when", ["while it is given up", "after that"])
async def test_an_answer_takes_up_a_turn_that_was_given_up(tmp_path: Path, when: str) -> None:
    """N2: at once, and not when abandoned turns are looked for."""
    store = BeforeRelease(tmp_path / "chat.db")
    store.job_queue = UrgentJobs  # type: ignore[attr-defined]
    limits = TurnLimits(1, give_up_after=SOON)
    script = [calls("add", a=1, b=2), says("done")]
    async with (
        runtime_with(
            tmp_path, script, store=store, tools=[add], allow=(), role="both", turn_limits=limits
        ) as runtime,
        asyncio.timeout(PATIENCE),
    ):
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        question = turn.question
        if when == "while it is given up":
            store.happens = partial(runtime.answer, question, allow_once())
        else:
            await until(lambda: runtime.bus.here(turn.id) is None)
            await runtime.answer(question, allow_once())
        assert (await turn.result()).text == "done"


async def test_a_turn_that_was_steered_while_it_waits_holds_no_place_either(tmp_path: Path) -> None:
    """A waiting turn that a user steered holds no slot, and reads the message when it resumes (T13 × N2)."""

    def play(request: Request) -> Any:
        if len(request.messages) == 1:
            return calls("add", a=1, b=2)
        return says("done")

    limits = TurnLimits(1, give_up_after=SOON)
    async with runtime_with(
        tmp_path, play, tools=[add], allow=(), ask=["add"], turn_limits=limits
    ) as runtime:
        first = await runtime.send("one")
        assert await first.reached("waiting")
        await first.steer("and be quick")
        second = await runtime.send("two")
        assert await asyncio.wait_for(second.reached("waiting"), PATIENCE)
        for turn in (first, second):
            for question in (await turn.snapshot()).questions:
                await turn.answer(question, allow_once())
            assert (await asyncio.wait_for(turn.result(), PATIENCE)).text == "done"
        said = [message.text for message in await (await _chat(runtime, first.id)).messages()]
        assert "and be quick" in said


async def _chat(runtime: Runtime, turn: str) -> Any:
    return await runtime.conversation((await runtime.store.turn(turn)).conversation)


async def test_a_turn_that_is_given_up_twice_is_followed_to_its_end(tmp_path: Path) -> None:
    """E2 × N2"""

    def play(request: Request) -> Any:
        results = sum(part.type == "call" for message in request.messages for part in message.parts)
        return says("done") if results == 2 else calls("add", a=results, b=2)

    limits = TurnLimits(4, give_up_after=SOON)
    async with runtime_with(
        tmp_path, play, tools=[add], allow=(), ask=["add"], turn_limits=limits
    ) as runtime:
        turn = await runtime.send("one")
        numbers: list[int] = []
        kinds: list[str] = []
        async with asyncio.timeout(PATIENCE):
            async for event in turn.events():
                numbers.append(event.seq)
                kinds.append(event.type)
                if event.type == "call.asked":
                    await until(lambda: runtime.bus.here(turn.id) is None)
                    await turn.answer(event.question, allow_once())
        assert kinds.count("call.end") == 2
        assert kinds[-1] == "turn.end"
        assert numbers == sorted(set(numbers))


async def test_who_joins_while_others_read_gets_everything(tmp_path: Path) -> None:
    """E2: a read that is under way for one follower is none for who joins."""
    store = SqliteStore(tmp_path / "chat.db")
    async with Runtime(store, model=ScriptedModel([says("x")])) as runtime:
        turn = (await runtime.send("go")).id
        await runtime.turn(turn).result()
        events = [StoredEvent(turn, n, EVENT.dump(_numbered(n))) for n in range(1, 102)]
        await store.put_events(events[:100], {turn: 1})
        remote = RemoteEvents(store, background := Background())
        async with remote.follow(turn, 100) as first:
            await store.put_events(events[100:], {turn: 1})
            reading = asyncio.create_task(remote._read())
            await asyncio.sleep(0)
            async with remote.follow(turn, 0) as second:
                await reading
                got = [event.seq for event in await second.take(PATIENCE)]
                assert got == list(range(1, 102))
            assert [event.seq for event in await first.take(PATIENCE)] == [101]
        await background.close()


def _numbered(number: int) -> Notice:
    event = Notice(str(number), "test")
    event.seq = number
    return event


async def test_nothing_goes_on_after_a_runtime_was_closed(tmp_path: Path) -> None:
    """A closing runtime publishes the last events of a turn. The store is closed for later tasks (E2)."""
    before = asyncio.all_tasks()
    script = [calls("add", a=1, b=2), says("done")]
    async with runtime_with(tmp_path, script, tools=[add], allow=(), ask=["add"]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        await runtime.store.post(turn.id, "follow", {})  # as another process does
        await turn.answer(turn.question, allow_once())
        await turn.result()
    assert asyncio.all_tasks() == before


@pytest.mark.long
async def test_a_database_that_restarts_costs_no_call(tmp_path: Path, postgres: Server) -> None:
    """A process that lived before the restart still counts as alive after it, whatever happened to its lock
    (N4)."""
    gate = Gate()
    runs: list[int] = []

    @tool
    async def once() -> str:
        """Run once."""
        runs.append(1)
        await gate.open.wait()
        return "ready"

    def play(request: Request) -> Any:
        return says("done") if request.messages[-1].role == "assistant" else calls("once")

    def node(script: Any) -> Runtime:
        store = PostgresStore(postgres.url(schema_of(tmp_path)), lease=6.0)
        return Runtime(store, model=ScriptedModel(script), tools=[once], allow=["*"], role="both")

    async with node(play) as one:
        turn = await one.send("go")
        await until(lambda: runs == [1])
        async with node(play) as two:
            await asyncio.to_thread(postgres.stop)
            await asyncio.to_thread(postgres.start)
            async with asyncio.timeout(PATIENCE):
                while not await _answers(two):  # noqa: ASYNC110 - the server comes back
                    await asyncio.sleep(0.05)
            assert not await two.store.is_abandoned(turn.id)
            await asyncio.sleep(3)  # it has renewed its lease by now
            assert not await two.store.is_abandoned(turn.id)
            gate.open.set()
            assert (await asyncio.wait_for(one.turn(turn.id).result(), PATIENCE)).text == "done"
    assert runs == [1]


async def _answers(runtime: Runtime) -> bool:
    try:
        await runtime.store.conversations(limit=1)
    except Exception:
        return False
    return True


@pytest.mark.long
async def test_a_worker_that_is_told_to_stop_ends_although_the_database_is_away(
    tmp_path: Path, postgres: Server
) -> None:
    """N4"""
    store = PostgresStore(postgres.url(schema_of(tmp_path)), lease=4.0)
    runtime = Runtime(store, model=ScriptedModel([]), role="worker")
    await runtime.__aenter__()
    await asyncio.to_thread(postgres.stop)
    try:
        async with asyncio.timeout(PATIENCE):
            await runtime.__aexit__(None, None, None)
    finally:
        await asyncio.to_thread(postgres.start)
