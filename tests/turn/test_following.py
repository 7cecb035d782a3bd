"""Clients can follow events in any process, under the same numbers, each event once (E2, N3)."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from dragoman import Runtime, ScriptedModel, allow_once, tool
from dragoman.background import Background
from dragoman.errors import NotFound, StoreUnavailable
from dragoman.messages.events import EVENT, Event, MessageAdded, StepStart, TextDelta, TurnEnd
from dragoman.messages.usage import Usage
from dragoman.store.sqlite import SqliteStore
from dragoman.store.store import Store, TurnRow
from dragoman.store.turns import Change, Started, StoredEvent
from dragoman.turn.live.event_bus import EventBus, Mirror, RemoteEvents
from dragoman.turn.live.event_log import number_before, owner_of
from dragoman.turn.live.log import TurnLog
from dragoman.wire.scripted import calls, says
from tests.fork_server import python
from tests.patience import PATIENCE
from tests.runtimes import runtime_with

OWNER = textwrap.dedent(
    """
    import asyncio, sys
    from pathlib import Path
    from dragoman import Runtime, ScriptedModel, tool
    from dragoman.wire.scripted import calls, says

    @tool
    async def hold() -> str:
        "Wait until somebody has heard the beginning."
        while not Path(sys.argv[2]).exists():
            await asyncio.sleep(0.01)
        return "heard"

    async def main():
        model = ScriptedModel([says("word " * 30) + calls("hold"), says("word " * 30)])
        async with Runtime(sys.argv[1], model=model, tools=[hold], allow=["hold"]) as runtime:
            turn = await runtime.send("go")
            print(turn.id, flush=True)
            await turn.result()

    asyncio.run(main())
    """
)


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True], ids=["while it runs", "when it is over"])
async def test_a_follower_in_another_process_gets_the_deltas(tmp_path: Path, late: bool) -> None:
    """A follower receives deltas as they arrive, in order and without a gap. A second follower resumes where
    the first stopped, also if the turn ended in between (E2)."""
    heard = tmp_path / "heard"
    owner = await asyncio.create_subprocess_exec(
        *python("-c", OWNER, str(tmp_path / "chat.db"), str(heard)), stdout=asyncio.subprocess.PIPE
    )
    assert owner.stdout is not None
    turn = (await owner.stdout.readline()).decode().strip()
    async with runtime_with(tmp_path, [], adopts=False) as follower:
        first: list[Event] = []
        async for event in follower.turn(turn).events():
            first.append(event)
            if sum(isinstance(one, TextDelta) for one in first) == 5:
                break
        assert (await follower.store.turn(turn)).live  # they came while it ran
        heard.touch()
        if late:
            await owner.wait()
        rest = [event async for event in follower.turn(turn).events(after=first[-1].seq)]
    await owner.wait()
    numbers = [event.seq for event in (*first, *rest)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert "".join(event.text for event in (*first, *rest) if isinstance(event, TextDelta)) == "word " * 60
    assert isinstance(rest[-1], TurnEnd)


async def test_what_another_runtime_asks_can_be_heard_and_answered(tmp_path: Path) -> None:
    """E2, P6"""

    @tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    script = [calls("add", a=1, b=2), says("3")]
    async with (
        runtime_with(tmp_path, script, tools=[add], allow=()) as owner,
        runtime_with(tmp_path, [], adopts=False) as follower,
    ):
        turn = await owner.send("go")
        kinds = []
        async for event in follower.turn(turn.id).events():
            kinds.append(event.type)
            if event.type == "call.asked":
                await follower.answer(event.question, allow_once())
        assert kinds.count("call.asked") == 1
        assert kinds[-1] == "turn.end"
        assert "call.end" in kinds
        assert (await follower.turn(turn.id).result()).text == "3"


async def test_a_turn_that_is_taken_up_here_is_followed_on(tmp_path: Path) -> None:
    """E2, S3: the numbers of the new owner come after those of the old one."""

    @tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    async with runtime_with(tmp_path, [calls("add", a=1, b=2)], tools=[add], allow=()) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        seen = (await turn.snapshot()).last
    async with runtime_with(tmp_path, [says("3")], tools=[add], allow=()) as second:
        numbers = []
        async for event in second.turn(turn.id).events(after=seen):
            numbers.append(event.seq)
            if event.type == "call.asked":
                await second.answer(event.question, allow_once())
        assert numbers == sorted(set(numbers))
        assert numbers[0] > seen


class Pausing(SqliteStore):
    """Starts queued turns, and delays its report of the start."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.begun, self.says_so = asyncio.Event(), asyncio.Event()

    async def start_queued(self, turn: str) -> Started | None:
        started = await super().start_queued(turn)
        if started is not None:
            self.begun.set()
            await self.says_so.wait()
        return started


@pytest.mark.parametrize("adopts", [True, False])
async def test_what_is_about_to_begin_here_is_followed_here(tmp_path: Path, adopts: bool) -> None:
    """The store lists the turn as no longer queued, but it does not run yet (E2 × T13)."""
    store, may_end = Pausing(tmp_path / "chat.db"), asyncio.Event()

    @tool
    async def hold() -> str:
        """Wait."""
        await may_end.wait()
        return "held"

    model = ScriptedModel([calls("hold"), says("first"), says("second")])
    async with Runtime(store, model=model, tools=[hold], allow=["*"], adopts=adopts) as runtime:
        chat = await runtime.conversation()
        await chat.send("one")
        queued = await chat.send("two", queue=True)
        may_end.set()
        await store.begun.wait()
        following = asyncio.ensure_future(anext(aiter(runtime.turn(queued.id).events())))
        await asyncio.sleep(0)
        store.says_so.set()
        assert (await following).seq == 1
        heard = [event async for event in runtime.turn(queued.id).events()]
    assert "".join(event.text for event in heard if isinstance(event, TextDelta)) == "second"


async def test_who_waits_for_a_queued_turn_hears_when_it_begins_here(tmp_path: Path) -> None:
    """E2: without looking again and again."""
    may_end = asyncio.Event()

    @tool
    async def hold() -> str:
        """Wait."""
        await may_end.wait()
        return "held"

    script = [calls("hold"), says("first"), says("second")]
    async with runtime_with(tmp_path, script, tools=[hold]) as runtime, asyncio.timeout(PATIENCE):
        chat = await runtime.conversation()
        await chat.send("one")
        queued = await chat.send("two", queue=True)
        begins = asyncio.ensure_future(runtime.bus.until_here(queued.id, 10 * PATIENCE))
        may_end.set()
        await begins
        assert (await queued.result()).text == "second"


class GoneAtTheEnd(SqliteStore):
    """A store that is unreachable when the first turn ends."""

    gone = True

    def append(
        self, turn: str, epoch: int, seq: int, change: Change, *, sync: bool = False
    ) -> asyncio.Future[None]:
        if change.live or not self.gone:
            return super().append(turn, epoch, seq, change, sync=sync)
        self.gone = False
        failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        failed.set_exception(StoreUnavailable("the store", "it is gone for a moment", retryable=True))
        return failed


async def test_a_turn_whose_end_is_not_stored_is_followed_until_it_is(tmp_path: Path) -> None:
    """A follower waits for the stored end, because the events before it are incomplete (E2 × S3)."""
    store = GoneAtTheEnd(tmp_path / "chat.db")
    async with runtime_with(tmp_path, [says("done")], store=store) as runtime, asyncio.timeout(PATIENCE):
        turn = await runtime.send("go")
        with pytest.raises(StoreUnavailable):
            await turn.result()
        rest = [event async for event in runtime.turn(turn.id).events(after=1)]
        assert isinstance(rest[-1], TurnEnd)
        assert not (await runtime.store.turn(turn.id)).live


class GoneAtTheRequest(SqliteStore):
    """A store that is unreachable while the first request is built, and works again before the reply."""

    gone = True

    def append(
        self, turn: str, epoch: int, seq: int, change: Change, *, sync: bool = False
    ) -> asyncio.Future[None]:
        if not self.gone or not any("request_built" in fact for fact in change.facts):
            return super().append(turn, epoch, seq, change, sync=sync)
        self.gone = False
        failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        failed.set_exception(StoreUnavailable("the store", "it is gone for a moment", retryable=True))
        return failed


SAID = "word " * 10


def test_the_number_of_an_event_tells_which_owner_published_it() -> None:
    for epoch in (1, 2, 7):
        first, last = number_before(epoch) + 1, number_before(epoch + 1)
        assert (owner_of(first), owner_of(last)) == (epoch, epoch)


async def test_after_a_write_that_failed_nothing_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Clients did not receive the start of the reply, so they do not receive its text either. The next owner
    of the turn requests the reply again (E2 × S3)."""
    store, script = GoneAtTheRequest(tmp_path / "chat.db"), [says(SAID, waits=0.02)] * 2
    told: list[Event] = []
    async with runtime_with(tmp_path, script, store=store) as runtime, asyncio.timeout(PATIENCE):
        runtime.bus.watchers.append(lambda log: log.events.watchers.append(told.append))
        turn = await runtime.send("go")
        assert (await turn.result()).text == SAID
    starts = [owner_of(event.seq) for event in told if isinstance(event, StepStart)]
    texts = {owner_of(event.seq) for event in told if isinstance(event, TextDelta)}
    assert starts == [2]
    assert texts == {2}
    assert "broke off; trying again" in caplog.text


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "in another process"])
async def test_of_a_deleted_turn_nothing_is_told_any_more(tmp_path: Path, elsewhere: bool) -> None:
    """E2: also to who was in the middle of it."""
    async with (
        runtime_with(tmp_path, [says("secret")]) as runtime,
        runtime_with(tmp_path, [], adopts=False) as other,
    ):
        turn = await runtime.send("go")
        await turn.result()
        id = (await runtime.store.turn(turn.id)).conversation
        await (other if elsewhere else runtime).delete(id)
        with pytest.raises(NotFound):
            [event async for event in runtime.turn(turn.id).events(after=1)]
        assert elsewhere or runtime.bus.rest(turn.id, 0) is None


class GoneOnce(SqliteStore):
    gone = True

    async def put_events(self, events: Sequence[StoredEvent], epochs: Mapping[str, int]) -> None:
        """Fail the first time."""
        if self.gone:
            self.gone = False
            raise StoreUnavailable("the store", "it is gone for a moment", retryable=True)
        await super().put_events(events, epochs)


async def test_events_whose_write_failed_are_written_again(tmp_path: Path) -> None:
    """E2: a follower gets them also if no other event comes after them."""
    may_end = asyncio.Event()

    @tool
    async def hold() -> str:
        """Wait."""
        await may_end.wait()
        return "held"

    script = [calls("hold"), says("done")]
    async with (
        asyncio.timeout(PATIENCE),
        runtime_with(tmp_path, script, store=GoneOnce(tmp_path / "chat.db"), tools=[hold]) as owner,
        runtime_with(tmp_path, [], adopts=False) as follower,
    ):
        turn, types = await owner.send("go"), []
        async for event in follower.turn(turn.id).events():
            types.append(event.type)
            if event.type == "call.start":
                may_end.set()
    assert types[0] == "turn.start"
    assert types[-1] == "turn.end"


class Silent(SqliteStore):
    async def put_events(self, events: Sequence[StoredEvent], epochs: Mapping[str, int]) -> None:
        """As if the process had ended before."""


async def test_who_heard_nothing_of_a_turn_is_told_what_it_said(tmp_path: Path) -> None:
    """E2: its owner did not come to tell the store."""
    heard, may_end = asyncio.Event(), asyncio.Event()

    @tool
    async def hold() -> str:
        """Wait."""
        heard.set()
        await may_end.wait()
        return "held"

    model = ScriptedModel([calls("hold"), says("done")])
    async with (
        Runtime(Silent(tmp_path / "chat.db"), model=model, tools=[hold], allow=["*"]) as owner,
        runtime_with(tmp_path, [], adopts=False) as follower,
    ):
        turn = await owner.send("go")
        await heard.wait()
        events = follower.turn(turn.id).events()
        following = asyncio.ensure_future(anext(events))
        await asyncio.wait([following], timeout=0.1)
        may_end.set()
        told = [await following, *[event async for event in events]]
    assert [event.message.text for event in told if isinstance(event, MessageAdded)][-1] == "done"
    assert isinstance(told[-1], TurnEnd)


class Held(Background):
    """Runs repeated work when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.work: list[Callable[[], Awaitable[None]]] = []

    def repeat(self, name: str, work: Callable[[], Awaitable[None]], *, every: float) -> asyncio.Task[None]:
        self.work.append(work)
        return self.run(name, partial(asyncio.sleep, 0))


class Counting:
    """A store that is unreachable for some calls."""

    reads = 0
    gone = True

    def __init__(self, *stored: StoredEvent) -> None:
        self.stored = stored

    async def events(self, after: Mapping[str, int], most: int) -> list[StoredEvent]:
        return [one for one in self.stored if one.seq > after[one.turn]][:most]

    async def put_events(self, events: Sequence[StoredEvent], epochs: Mapping[str, int]) -> None:
        gone, self.gone = self.gone, False
        if gone:
            raise StoreUnavailable("the store", "it is gone for a moment")

    async def wait_for_events(self, seconds: float) -> None:
        self.reads += 1

    async def live_turns_named(self, turns: Collection[str]) -> list[TurnRow]:
        self.reads += 1
        raise StoreUnavailable("the store", "it is gone for a moment")


async def _waits(work: Callable[[], Awaitable[None]]) -> bool:
    waiting = asyncio.ensure_future(work())
    await asyncio.sleep(0)
    return not waiting.done() and waiting.cancel()


async def test_a_store_is_read_only_while_somebody_follows() -> None:
    """After an error, the next check does not wait for a write (N3)."""
    store, background = Counting(), Held()
    remote = RemoteEvents(cast("Store", store), background)
    async with remote.follow("turn_1", 0) as follower:
        for turn, called in (("turn_2", False), ("turn_1", True)):
            remote.look_up(turn)
            assert follower.called is called
        read_next, look_after = background.work
        await read_next()
        remote.written.set()
        with pytest.raises(StoreUnavailable):
            await look_after()
        assert (store.reads, remote.written.is_set()) == (2, True)
    for work in background.work:
        await work()
    assert store.reads == 2
    assert await _waits(read_next)


async def test_events_are_written_again_after_an_error_and_then_not_before_the_next() -> None:
    """N3"""
    background = Held()
    events = SimpleNamespace(watchers=[], closed=False, since=lambda at: [])
    log = cast("TurnLog", SimpleNamespace(id="turn_1", events=events))
    Mirror(cast("Store", Counting()), background).add(log)
    (write,) = background.work
    with pytest.raises(StoreUnavailable):
        await write()
    await write()
    assert await _waits(write)


async def test_the_end_of_a_turn_elsewhere_is_heard_by_its_number() -> None:
    """E2"""
    said: list[Event] = [TextDelta("hi", seq=1), TurnEnd("completed", "hi", Usage(), seq=2)]
    stored = [StoredEvent("turn_1", event.seq, EVENT.dump(event)) for event in said]
    bus = EventBus(cast("Store", Counting(*stored)), Held())
    assert [await bus.is_heard("turn_1", upto) for upto in (1, 2, 3)] == [False, True, False]
