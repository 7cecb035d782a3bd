"""Turns that a queue hands out: in roles, within limits, and given up while they wait for a person."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Runtime, ScriptedModel, ToolContext, allow_once, reply, tool
from dragoman.errors import ConfigError
from dragoman.messages.events import Event
from dragoman.messages.request import Request
from dragoman.store.postgres.store import PostgresStore
from dragoman.store.sqlite import SqliteStore
from dragoman.store.turns import MemoryJobs
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.turn.drivers.jobs import JobDriver, TurnLimits
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.postgres import Server, schema_of
from tests.runtimes import add, runtime_with

pytestmark = pytest.mark.slow

SOON = 0.4  # seconds until a waiting turn is given up
Opened = Callable[..., Runtime]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Return a runtime that receives its turns from a queue, with a separate store per test."""
    server: Server | None = request.getfixturevalue("postgres") if request.param == "postgres" else None

    def open(script: Any, **options: Any) -> Runtime:
        store = (
            SqliteStore(tmp_path / "chat.db")
            if server is None
            else PostgresStore(server.url(schema_of(tmp_path)), lease=4.0)
        )
        options.setdefault("role", "both")
        options.setdefault("turn_limits", TurnLimits(4, give_up_after=SOON))
        return runtime_with(tmp_path, script, store=store, **options)

    return open


class Gate:
    """A tool that runs until the test opens it, and counts how many do."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.running = 0
        self.most = 0

        @tool(cancellable=True)
        async def wait(context: ToolContext) -> str:
            """Wait."""
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                await self.open.wait()
            finally:
                self.running -= 1
            return "ready"

        self.tool = wait


def _has_result(request: Request) -> bool:
    return request.messages[-1].role == "assistant"


def _said(request: Request) -> str:
    return "".join(part.text for part in request.messages[-1].parts if part.type == "text")


def gate_then_done(request: Request) -> Any:
    return says("done") if _has_result(request) else calls("wait")


def add_then_done(request: Request) -> Any:
    return says("done") if _has_result(request) else calls("add", a=1, b=2)


async def until(what: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not what():  # noqa: ASYNC110 - several things move it
            await asyncio.sleep(0.02)


async def to_the_end(turn: TurnHandle, *, answer_after: float | None = None) -> list[Event]:
    events: list[Event] = []
    async with asyncio.timeout(PATIENCE):
        async for event in turn.events():
            events.append(event)
            if event.type == "call.asked" and answer_after is not None:
                await asyncio.sleep(answer_after)
                await turn.answer(event.question, allow_once())
    return events


async def test_more_turns_than_there_are_places_wait_their_turn(opened: Opened) -> None:
    """N5: per node. All of them come to their end."""
    gate = Gate()
    async with opened(gate_then_done, tools=[gate.tool], turn_limits=TurnLimits(2)) as runtime:
        turns = [await runtime.send("0")]
        assert runtime.bus.here(turns[0].id) is not None  # it begins at once, without the queue
        assert await turns[0].resume()
        turns += [await runtime.send(f"{n}") for n in range(1, 5)]
        await until(lambda: gate.running == 2)
        gate.open.set()
        for turn in turns:
            assert (await asyncio.wait_for(turn.result(), PATIENCE)).text == "done"
    assert gate.most == 2


async def test_a_person_has_so_many_turns_at_once_and_another_theirs(opened: Opened) -> None:
    """N5"""
    gate = Gate()
    limits = TurnLimits(8, per_person=1)
    async with opened(gate_then_done, tools=[gate.tool], turn_limits=limits) as runtime:
        chats = [await runtime.conversation(user=user) for user in ("ada", "ada", "bob")]
        turns = [await chat.send("go") for chat in chats]
        await until(lambda: gate.running == 2)
        await asyncio.sleep(0.3)
        assert gate.most == 2  # one of each
        gate.open.set()
        for turn in turns:
            assert (await asyncio.wait_for(turn.result(), PATIENCE)).text == "done"


async def test_a_provider_has_so_many_turns_at_once(opened: Opened) -> None:
    """N5"""
    gate = Gate()
    limits = TurnLimits(8, per_provider=1)
    async with opened(gate_then_done, tools=[gate.tool], turn_limits=limits) as runtime:
        turns = [await runtime.send(f"{n}") for n in range(3)]
        await until(lambda: gate.running == 1)
        gate.open.set()
        for turn in turns:
            assert (await asyncio.wait_for(turn.result(), PATIENCE)).text == "done"
    assert gate.most == 1


async def test_another_provider_has_turns_beside_it(tmp_path: Path) -> None:
    """N5"""
    gate = Gate()
    models = {name: ScriptedModel(gate_then_done, name=name) for name in ("one/model", "other/model")}
    options: dict[str, Any] = {"role": "both", "turn_limits": TurnLimits(8, per_provider=1)}
    options |= {"tools": [gate.tool], "allow": ["*"], "model": lambda name: models[name]}
    async with Runtime(tmp_path / "chat.db", **options) as runtime:
        turns = [await runtime.send("go", model=name) for name in ("one/model", *models)]
        await until(lambda: gate.running == 2)
        gate.open.set()
        for turn in turns:
            assert (await asyncio.wait_for(turn.result(), PATIENCE)).text == "done"
    assert gate.most == 2


class ForgetfulJobs(MemoryJobs):
    """Forgets each postponed job, as a real queue can."""

    def __init__(self) -> None:
        super().__init__()
        self.put_off: list[str] = []
        self.again = asyncio.Event()

    async def put(self, turn: str, *, urgent: bool = False, delay: float = 0.0) -> None:
        if delay:
            self.put_off.append(turn)
            return
        if urgent and turn in self.put_off:  # the search for abandoned turns is not urgent
            self.again.set()
        await super().put(turn, urgent=urgent)


@pytest.mark.parametrize("limits", [TurnLimits(per_person=1), TurnLimits(per_provider=1)])
async def test_a_turn_that_met_a_limit_begins_when_there_is_a_place(
    tmp_path: Path, limits: TurnLimits
) -> None:
    """A turn that met a limit starts when a slot is free, and not only at the next scan (N5)."""
    jobs = ForgetfulJobs()
    store = SqliteStore(tmp_path / "chat.db")
    store.job_queue = lambda: jobs  # type: ignore[attr-defined]  # as a store does that has one
    options: dict[str, Any] = {"role": "both", "turn_limits": limits}
    gate = Gate()
    async with (
        runtime_with(tmp_path, gate_then_done, store=store, tools=[gate.tool], **options) as runtime,
        asyncio.timeout(PATIENCE),
    ):
        first = await runtime.send("one")
        await until(lambda: runtime.bus.here(first.id) is not None)  # it has the place
        second = await runtime.send("two")
        await until(lambda: jobs.put_off == [second.id])
        await first.cancel()
        await jobs.again.wait()
        gate.open.set()
        assert (await second.result()).text == "done"


async def test_what_is_put_off_can_be_begun_now() -> None:
    """T6 × N5: a cancel does not wait for it."""
    jobs = MemoryJobs()
    await jobs.put("turn", delay=3600.0)
    assert await jobs.waiting() == (0, 0.0)
    await jobs.put("turn", urgent=True)
    assert (await jobs.waiting())[0] == 1


async def test_turns_begin_in_the_order_they_came_and_urgent_ones_first() -> None:
    jobs, begun = MemoryJobs(), list[str]()

    async def begin(turn: str) -> None:
        for _ in range(2):
            begun.append(turn)
            await asyncio.sleep(0)  # no other turn has the place
        if len(begun) == 8:
            working.cancel()

    for turn in ("turn_2", "turn_1", "turn_4", "turn_3"):
        await jobs.put(turn, urgent=turn > "turn_2")
    working = asyncio.ensure_future(jobs.work(begin, places=1))
    await asyncio.wait({working})
    assert begun == [turn for turn in ("turn_4", "turn_3", "turn_2", "turn_1") for _ in range(2)]


async def test_a_turn_that_waits_for_a_person_holds_no_place(opened: Opened) -> None:
    """A turn that waits for a user holds no slot, and resumes with every event once when the answer comes
    (N2)."""
    limits = TurnLimits(1, give_up_after=SOON)
    async with opened(add_then_done, tools=[add], allow=(), ask=["add"], turn_limits=limits) as runtime:
        first = await runtime.send("one")
        following = asyncio.create_task(to_the_end(first))
        assert await first.reached("waiting")
        second = await runtime.send("two")
        assert await asyncio.wait_for(second.reached("waiting"), PATIENCE)
        for turn in (first, second):
            for question in (await turn.snapshot()).questions:
                await turn.answer(question, allow_once())
            assert (await asyncio.wait_for(turn.result(), PATIENCE)).text == "done"
        events = await following
    numbers = [event.seq for event in events]
    assert numbers == sorted(set(numbers))
    assert [event.type for event in events].count("call.end") == 1
    assert events[-1].type == "turn.end"


async def test_an_answer_to_a_turn_that_was_given_up_waits_for_a_place(opened: Opened) -> None:
    """N5 × N2"""
    gate = Gate()

    def script(request: Request) -> Any:
        return (gate_then_done if _said(request) == "hold" else add_then_done)(request)

    limits = TurnLimits(1, give_up_after=SOON)
    async with opened(
        script, tools=[add, gate.tool], allow=["wait"], ask=["add"], turn_limits=limits
    ) as runtime:
        waiting = await runtime.send("go")
        assert await waiting.reached("waiting")
        await until(lambda: runtime.bus.here(waiting.id) is None)
        holding = await runtime.send("hold")
        await until(lambda: gate.running == 1)
        await runtime.answer((await runtime.questions())[0].id, allow_once())
        assert runtime.bus.here(waiting.id) is None
        gate.open.set()
        for turn in (holding, waiting):
            assert (await asyncio.wait_for(turn.result(), PATIENCE)).text == "done"


async def test_an_answer_that_comes_at_once_and_one_that_comes_late_do_the_same(opened: Opened) -> None:
    """An answer has the same effect before the turn is given up, at that moment, and long after (P6, N2)."""
    async with opened(add_then_done, tools=[add], allow=(), ask=["add"]) as runtime:
        turns = [await runtime.send(f"{n}") for n in range(4)]
        after = (0.0, SOON * 0.9, SOON * 1.1, SOON * 3)
        told = await asyncio.gather(
            *(to_the_end(turn, answer_after=seconds) for turn, seconds in zip(turns, after, strict=True))
        )
        for events in told:
            assert [event.type for event in events].count("call.start") == 1
            assert events[-1].type == "turn.end"
            numbers = [event.seq for event in events]
            assert numbers == sorted(set(numbers))


async def test_who_comes_when_a_turn_was_given_up_hears_what_it_asks(opened: Opened) -> None:
    """A client that connects to a turn without a running process still sees its question (E2, N2)."""
    async with opened(add_then_done, tools=[add], allow=(), ask=["add"]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        await until(lambda: runtime.bus.here(turn.id) is None)
        events = await to_the_end(runtime.turn(turn.id), answer_after=0.0)
    types = [event.type for event in events]
    assert (types[0], types[-1], types.count("call.asked")) == ("call.asked", "turn.end", 1)


async def test_a_task_needs_no_place_of_its_own(opened: Opened) -> None:
    """N5: else a turn would wait for its task, and the task for the turn."""

    def play(request: Request) -> Any:
        if _has_result(request):
            return says("done")
        given = any(offer.name == "task" for offer in request.tools)
        return calls("task", agent="helper", request="do it") if given else says("the task is done")

    helper = Agent(name="helper", description="helps", tools=())
    async with opened(play, agents=[helper], turn_limits=TurnLimits(1, give_up_after=SOON)) as runtime:
        turns = [await runtime.send(f"{n}") for n in range(3)]
        for turn in turns:
            assert (await asyncio.wait_for(turn.result(), PATIENCE)).text == "done"


async def test_a_turn_whose_task_asks_counts_for_nobody(opened: Opened) -> None:
    """Only a user can move the turn or its task, also if another call of the turn waits next to the task, so
    neither counts against the user's limit (N5)."""

    def play(request: Request) -> Any:
        if "hello" in _said(request) or _has_result(request):
            return says("done")
        given = any(offer.name == "task" for offer in request.tools)
        ask = calls("add", a=1, b=2)
        return calls("task", agent="helper", request="do it") + ask if given else ask

    helper = Agent(name="helper", description="helps", tools=("add",))
    limits = TurnLimits(1, per_person=1, give_up_after=SOON)
    async with opened(
        play, tools=[add], agents=[helper], allow=["task"], ask=["add"], turn_limits=limits
    ) as runtime:
        turn = await runtime.send("one")
        async with asyncio.timeout(PATIENCE):
            while len(asked := await runtime.questions()) < 2:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.02)
        other = await runtime.send("hello")
        assert (await asyncio.wait_for(other.result(), PATIENCE)).text == "done"
        for question in asked:
            await runtime.answer(question.id, allow_once())
        assert (await asyncio.wait_for(turn.result(), PATIENCE)).text == "done"


async def test_who_waits_for_a_state_hears_of_it_also_where_the_turn_was_given_up(opened: Opened) -> None:
    """A client that waits for a state sees it, whichever process resumes the turn (N2, E2)."""
    async with opened([calls("add", a=1, b=2), says("done")], tools=[add], allow=()) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        question, over = turn.question, asyncio.ensure_future(turn.reached("completed"))
        await until(lambda: runtime.bus.here(turn.id) is None)
        await runtime.answer(question, allow_once())
        assert await asyncio.wait_for(over, PATIENCE)


async def test_a_tool_that_asks_while_it_runs_is_not_run_again(opened: Opened) -> None:
    """A running tool stays in memory however long the user takes, and its slot is free until it goes on
    (N2 × P6)."""
    runs: list[int] = []
    gate = asyncio.Event()

    @tool
    async def careful(context: ToolContext) -> str:
        """Ask first."""
        runs.append(1)
        said = str(await context.ask("sure?"))
        await gate.wait()
        return said

    def play(request: Request) -> Any:
        if _has_result(request):
            return says("done")
        return calls("careful") if "careful" in _said(request) else says("hello")

    async with opened(play, tools=[careful], turn_limits=TurnLimits(1, give_up_after=SOON)) as runtime:
        turn = await runtime.send("careful")
        assert await turn.reached("waiting")
        other = await runtime.send("hello")
        assert (await asyncio.wait_for(other.result(), PATIENCE)).text == "hello"
        await turn.answer(turn.question, reply("yes"))
        driver = runtime.driver
        assert isinstance(driver, JobDriver)
        await until(lambda: turn.id in driver._places)  # it counts again
        gate.set()
        assert (await asyncio.wait_for(turn.result(), PATIENCE)).text == "done"
    assert runs == [1]


async def test_a_cancel_reaches_a_turn_that_was_given_up(opened: Opened) -> None:
    """T9 × N2"""
    async with opened(add_then_done, tools=[add], allow=(), ask=["add"]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        await until(lambda: runtime.bus.here(turn.id) is None)
        assert await turn.cancel("enough")
        assert await asyncio.wait_for(turn.reached("cancelled"), PATIENCE)
        chat = runtime.turn(turn.id)
        assert (await chat.result()).state == "cancelled"
        assert await runtime.questions() == []


async def test_queued_messages_come_in_order_although_their_turns_are_handed_out(opened: Opened) -> None:
    """T4 × N2"""
    async with opened(
        lambda request: says(_said(request)), turn_limits=TurnLimits(1, give_up_after=SOON)
    ) as runtime:
        chat = await runtime.conversation()
        turns = [await chat.send(f"{n}", queue=True) for n in range(5)]
        for number, turn in enumerate(turns):
            assert (await asyncio.wait_for(turn.result(), PATIENCE)).text == str(number)
        assert [m.text for m in await chat.messages() if m.role == "user"] == ["0", "1", "2", "3", "4"]


# ── several nodes ─────────────────────────────────────────────────────────────────────────────────


def node(server: Server, folder: Path, script: Any, **options: Any) -> Runtime:
    store = PostgresStore(server.url(schema_of(folder)), lease=4.0)
    return Runtime(store, model=ScriptedModel(script), **options)


async def test_a_web_node_runs_nothing_and_shows_everything(tmp_path: Path, postgres: Server) -> None:
    """The worker runs the turn, and the web node shows the same events under the same numbers (N2, N3)."""
    options: dict[str, Any] = {"tools": [add], "ask": ["add"]}
    async with (
        node(postgres, tmp_path, [], role="web", **options) as web,
        node(postgres, tmp_path, add_then_done, role="worker", **options) as worker,
    ):
        turn = await web.send("go")
        events = await to_the_end(turn, answer_after=0.0)
        assert (await turn.result()).text == "done"
        assert web.bus.turns() == []
        assert isinstance(worker.driver, JobDriver)
        assert [event.type for event in events].count("turn.start") == 1
        assert await to_the_end(worker.turn(turn.id)) == events


async def test_a_turn_waits_for_a_worker_to_come(tmp_path: Path, postgres: Server) -> None:
    """N2: however late it starts."""
    async with node(postgres, tmp_path, [], role="web") as web:
        turn = await web.send("go")
        await asyncio.sleep(0.2)
        assert (await turn.snapshot()).state == "preparing"
        async with node(postgres, tmp_path, [says("here")], role="worker"):
            assert (await asyncio.wait_for(turn.result(), PATIENCE)).text == "here"


async def test_a_worker_that_stops_hands_over_what_runs(tmp_path: Path, postgres: Server) -> None:
    """A worker that stops hands over its turns immediately, and the next worker repeats a replayable tool
    (N4)."""
    gate, other = Gate(), Gate()
    other.open.set()

    def tools(of: Gate) -> dict[str, Any]:
        @tool(replay="safe", cancellable=True)
        async def wait(context: ToolContext) -> str:
            """Wait."""
            of.running += 1
            await of.open.wait()
            return "ready"

        return {"tools": [wait], "allow": ["*"]}

    async with node(postgres, tmp_path, [], role="web", **tools(gate)) as web:
        async with node(postgres, tmp_path, gate_then_done, role="worker", **tools(gate)):
            turn = await web.send("go")
            await until(lambda: gate.running == 1)
        async with node(postgres, tmp_path, gate_then_done, role="worker", **tools(other)):
            assert (await asyncio.wait_for(turn.result(), PATIENCE)).text == "done"
    assert other.running == 1


async def test_a_turn_that_is_handed_over_takes_its_task_along(tmp_path: Path, postgres: Server) -> None:
    """A process with only one of the two turns cannot see that both wait for a user (N4 × N5)."""
    gate = Gate()

    def play(request: Request) -> Any:
        if _has_result(request):
            return says("done")
        given = any(offer.name == "task" for offer in request.tools)
        return calls("task", agent="helper", request="do it") if given else calls("wait")

    @tool(replay="safe", cancellable=True)
    async def wait() -> str:
        """Wait."""
        gate.running += 1
        await gate.open.wait()
        return "ready"

    helper = Agent(name="helper", description="helps", tools=("wait",))
    options: dict[str, Any] = {"tools": [wait], "agents": [helper], "allow": ["*"]}
    async with node(postgres, tmp_path, [], role="web", **options) as web:
        async with node(postgres, tmp_path, play, role="worker", **options):
            turn = await web.send("go")
            await until(lambda: gate.running == 1)
        assert isinstance(web.driver, JobDriver)
        assert (await web.driver._jobs.waiting())[0] == 1
        gate.open.set()
        async with node(postgres, tmp_path, play, role="worker", **options):
            assert (await asyncio.wait_for(turn.result(), PATIENCE)).text == "done"


async def test_limits_hold_across_nodes(tmp_path: Path, postgres: Server) -> None:
    """N5"""
    gate = Gate()
    limits = TurnLimits(8, per_person=2)
    options: dict[str, Any] = {"tools": [gate.tool], "allow": ["*"], "turn_limits": limits}
    async with (
        node(postgres, tmp_path, gate_then_done, **options) as one,
        node(postgres, tmp_path, gate_then_done, **options) as two,
    ):
        turns = [await runtime.send("go") for _ in range(3) for runtime in (one, two)]
        await until(lambda: gate.running == 2)
        await asyncio.sleep(0.3)
        gate.open.set()
        for turn in turns:
            assert (await asyncio.wait_for(turn.result(), PATIENCE)).text == "done"
    assert gate.most == 2


async def test_a_role_without_a_shared_store_is_refused(tmp_path: Path) -> None:
    """N2"""
    with pytest.raises(ConfigError, match="PostgreSQL"):
        Runtime(tmp_path / "chat.db", model=ScriptedModel([]), role="web")
    with pytest.raises(ConfigError, match="web, worker, both"):
        Runtime(tmp_path / "chat.db", model=ScriptedModel([]), role="boss")  # type: ignore[arg-type]


async def test_a_job_that_cannot_be_struck_off_leaves_no_failed_task_behind(
    tmp_path: Path, postgres: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """If the queue cannot remove a job, the log reports it once and the event loop reports no failed task
    (O2)."""
    unseen: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
    all_run = asyncio.Barrier(8)
    async with runtime_with(tmp_path, [], store=PostgresStore(postgres.url(schema_of(tmp_path)))) as runtime:
        store = runtime.store
        assert isinstance(store, PostgresStore)
        jobs = store.job_queue()
        await jobs.open()

        async def run(turn: str) -> None:
            if await all_run.wait() == 0:
                async with store._connection() as connection:
                    query = "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, $1)"
                    name = await connection.fetchval(query, f"{store.schema}_jobs")
                    await connection.execute(f'DROP SCHEMA "{name}" CASCADE')
            await all_run.wait()

        working = asyncio.create_task(jobs.work(run, places=20))
        for number in range(8):
            await jobs.put(f"turn_{number}")
        await until(lambda: "cannot read the queue of turns" in caplog.text)
        working.cancel()
        await asyncio.wait([working])
        await jobs.close()
    gc.collect()
    assert unseen == []
