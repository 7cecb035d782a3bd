"""Check that a reader who joins a turn of another process gets a snapshot and the rest, without loss or
duplicates (N3, E2)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Runtime, tool
from dragoman.errors import StoreUnavailable
from dragoman.messages.events import EVENT, Event, TurnEnd
from dragoman.messages.questions import allow_once
from dragoman.server.feeds import ConversationFeed, FeedReader, Pace
from dragoman.server.publisher import Publisher
from dragoman.store.postgres import PostgresStore
from dragoman.store.sqlite import SqliteStore
from dragoman.store.store import Store, StoredEvent, TurnRow
from dragoman.tools.tool import Tool
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.postgres import Server, schema_of
from tests.runtimes import add, runtime_with
from tests.server.site import Received, Site, served
from tests.server.test_stream import text_of

pytestmark = pytest.mark.slow

WORDS = "".join(f"w{n} " for n in range(150))
SCRIPT = [says("I add. ", waits=0.01) + calls("add", a=1, b=2), says(WORDS, waits=0.01)]


Opens = Callable[[], Store]


@pytest.fixture(params=["a file", "postgresql"])
def opens(tmp_path: Path, request: pytest.FixtureRequest) -> Opens:
    """One store, for each process that uses it. On a busy machine none takes a turn from another."""
    if request.param == "a file":
        return lambda: SqliteStore(tmp_path / "chat.db")
    server: Server = request.getfixturevalue("postgres")
    return lambda: PostgresStore(server.url(schema_of(tmp_path)), lease=PATIENCE)


@asynccontextmanager
async def running_elsewhere(
    folder: Path, opens: Opens
) -> AsyncIterator[tuple[Site, Runtime, TurnHandle, str]]:
    """A server, and another runtime on its store that is in the middle of its answer."""
    async with (
        served(folder, [], store=opens()) as site,
        runtime_with(folder, SCRIPT, tools=[add], store=opens()) as other,
    ):
        id = await site.conversation()
        turn = await (await other.conversation(id)).send("go")
        said = ""
        async for event in turn.events():
            said += event.text if event.type == "text.delta" else ""
            if "w20 " in said:
                break
        async with asyncio.timeout(PATIENCE):
            yield site, other, turn, id


def replied(snapshot: Received, turn: str) -> str:
    assert snapshot.type == "snapshot"
    own = [one for one in snapshot.data["messages"] if (one["turn"], one["role"]) == (turn, "assistant")]
    return "".join(part["text"] for message in own for part in message["parts"] if part["type"] == "text")


async def read_to_the_end(site: Site, id: str, after: str = "") -> list[Received]:
    return await site.until(f"/api/conversations/{id}/events", "turn.end", after)


def whole(received: list[Received], turn: str) -> str:
    snapshot, *rest = received
    assert "snapshot" not in [event.type for event in rest]
    numbers = [event.data["seq"] for event in rest if event.data.get("seq")]
    assert numbers == sorted({*numbers})  # nothing twice, and nothing out of order
    assert numbers[-1] - numbers[0] == len(numbers) - 1  # and nothing left out
    begun = replied(snapshot, turn)
    again = {"turn.start", "step.start", "call.start", "call.end"} & {event.type for event in rest}
    assert not begun or not again  # a quick reader receives the beginning as events
    return begun + text_of(rest)


async def test_readers_who_come_in_the_middle_get_the_whole(tmp_path: Path, opens: Opens) -> None:
    """N3, E2: the first at this node, one who comes later, and one who comes back with a cursor."""
    async with running_elsewhere(tmp_path, opens) as (site, _, turn, id):
        path = f"/api/conversations/{id}/events"
        async with site.events(path) as events:
            first = [await anext(events)]
            later: asyncio.Task[list[Received]] | None = None
            back: list[Received] = []
            async for event in events:
                first.append(event)
                if later is None and len(first) > 3:
                    later = asyncio.create_task(read_to_the_end(site, id))
                if not back and len(first) > 6:
                    back = first[:]
                if event.type == "turn.end":
                    break
        assert later is not None
        assert back
        again = back + await read_to_the_end(site, id, back[-1].id)
        said = "I add. " + WORDS
        for received in (first, await later, again):
            snapshot = received[0]
            assert 0 < len(replied(snapshot, turn.id)) < len(said)
            (shown,) = snapshot.data["turns"]
            assert (shown["id"], shown["state"]) == (turn.id, "streaming")
            assert whole(received, turn.id) == said


async def read_until(site: Site, id: str, turn: str, word: str) -> list[Received]:
    received: list[Received] = []
    async with site.events(f"/api/conversations/{id}/events") as events:
        async for event in events:
            received.append(event)
            if word in replied(received[0], turn) + text_of(received):
                break
    return received


def cursors(received: list[Received]) -> dict[tuple[str, int], str]:
    """By turn and number."""
    numbered = [event for event in received if event.data.get("seq")]
    return {(event.data["turn"], event.data["seq"]): event.id for event in numbered}


@pytest.mark.parametrize("runs", ["first", "second", "worker"])
async def test_a_reader_who_moves_to_another_server_goes_on_there(
    tmp_path: Path, opens: Opens, runs: str
) -> None:
    """A cursor is the same on every server, whichever server runs the turn. No snapshot is sent again: in the
    middle of a turn, after its end, and for a turn that began in between (N3)."""
    script = [says(WORDS, waits=0.02)] * 2
    async with (
        served(tmp_path, script if runs == "first" else [], store=opens()) as first,
        served(tmp_path, script if runs == "second" else [], store=opens()) as second,
        runtime_with(tmp_path, script if runs == "worker" else [], store=opens()) as worker,
        asyncio.timeout(PATIENCE),
    ):
        runner = {"first": first.runtime, "second": second.runtime, "worker": worker}[runs]
        id = await first.conversation()
        conversation = await runner.conversation(id)
        turn = await conversation.send("go")
        beside = asyncio.create_task(read_to_the_end(first, id))
        early, late = await asyncio.gather(
            *(read_until(first, id, turn.id, word) for word in ("w80 ", "w90 "))
        )
        rest = [await read_to_the_end(second, id, one[-1].id) for one in (late, early)]
        for before, after in zip((late, early), rest, strict=True):
            assert whole(before + after, turn.id) == WORDS
        known = cursors(await beside)
        for received in rest:
            assert cursors(received).items() <= known.items()

        await conversation.send("and on")
        last = rest[0][-1].id
        for received in await asyncio.gather(*(read_to_the_end(site, id, last) for site in (first, second))):
            assert [event.type for event in received][:2] == ["message.added", "turn.start"]
            assert text_of(received) == WORDS
        async with served(tmp_path, [], store=opens()) as third:
            assert cursors(await read_to_the_end(third, id, last)).keys() == cursors(received).keys()


async def test_a_reader_who_missed_a_turn_that_nobody_told_gets_a_snapshot(
    tmp_path: Path, opens: Opens
) -> None:
    """N3: its cursor says what it has not heard, also where the server knows the cursor."""
    async with served(tmp_path, [], store=opens()) as site, asyncio.timeout(PATIENCE):
        id = await site.conversation()
        path = f"/api/conversations/{id}/events"
        (empty,) = await site.until(path, "snapshot")
        async with runtime_with(tmp_path, [says("Done. ")], store=opens()) as other:
            turn = await (await other.conversation(id)).send("go")
            await turn.result()
        (whole,) = await site.until(path, "snapshot", empty.id)
        assert replied(whole, turn.id) == "Done. "
        assert whole.id != empty.id
        async with served(tmp_path, [says("More. ")], store=opens()) as second:
            await second.runtime.turn(await second.say("on", id)).result()
            received = await read_to_the_end(second, id, whole.id)
            assert [event.type for event in received][:2] == ["message.added", "turn.start"]


async def test_readers_who_come_all_the_time_get_the_whole(tmp_path: Path, opens: Opens) -> None:
    """This holds also between stored and published state: for calls, steps and the end (N3, E2)."""
    async with served(tmp_path, [], store=opens()) as site, asyncio.timeout(PATIENCE):
        id = await site.conversation()
        script = [says("I add. ", waits=0.02) + calls("add", a=n, b=n) for n in range(8)]
        async with runtime_with(tmp_path, [*script, says("Done. ")], tools=[add], store=opens()) as other:
            turn = await (await other.conversation(id)).send("go")
            seen: list[list[Received]] = []
            while (await other.store.turn(turn.id)).live:
                seen.append(await site.until(f"/api/conversations/{id}/events", "snapshot"))
            rest = [await read_to_the_end(site, id, one[0].id) for one in seen if one[0].data["turns"]]
            shown = [one[0] for one in seen if one[0].data["turns"]]
            calls_made = {call.id for one in (await other.store.messages(id))[0] for call in one.calls}
        assert len(shown) > 5
        for snapshot, after in zip(shown, rest, strict=True):
            own = [message for message in snapshot.data["messages"] if message["turn"] == turn.id]
            ended = {part["id"] for one in own for part in one["parts"] if part.get("state") == "completed"}
            told = [event.data["call"] for event in after if event.type == "call.end"]
            assert sorted(told) == sorted({*told} - ended)
            assert {*ended, *told} == calls_made


async def test_a_look_at_other_processes_is_for_what_is_read_here(tmp_path: Path, opens: Opens) -> None:
    """N3: it asks for the turns of these conversations, however many others there are."""
    async with running_elsewhere(tmp_path, opens) as (site, _, turn, id):
        empty = await site.conversation()
        assert [row.id for row in await site.runtime.store.live_turns_among([id, empty])] == [turn.id]
        assert await site.runtime.store.live_turns_among([empty]) == []


async def _without_its_end(other: Runtime, turn: TurnHandle) -> int:
    """As an owner leaves it that dies when it has stored the end, and before it has told of it."""
    async with asyncio.timeout(PATIENCE):
        while True:
            stored = await other.store.events({turn.id: 0})
            told: list[Event] = [EVENT.load(one.body) for one in stored]
            if told and isinstance(told[-1], TurnEnd):
                break
            await asyncio.sleep(0.02)
    await other.store.drop_events(turn.id)
    epoch = {turn.id: (await other.store.turn(turn.id)).epoch}
    await other.store.put_events([StoredEvent(turn.id, one.seq, one.body) for one in stored[:-1]], epoch)
    return stored[-2].seq


async def test_an_end_that_its_owner_did_not_tell_is_told(tmp_path: Path, opens: Opens) -> None:
    """A reader that resumes from the last stored event gets the end, and only a reader that has the end gets
    204 (N3)."""
    async with running_elsewhere(tmp_path, opens) as (site, other, turn, _):
        following = asyncio.create_task(site.until(f"/api/turns/{turn.id}/events", "turn.end"))
        await following
        last = await _without_its_end(other, turn)
        for after in (f"{last}", f"{last - 3}"):
            received = await site.until(f"/api/turns/{turn.id}/events", "turn.end", after)
            end: dict[str, Any] = received[-1].data
            assert (end["state"], end["text"]) == ("completed", WORDS)
            heard = {"last-event-id": received[-1].id}
            assert (await site.ask("GET", f"/api/turns/{turn.id}/events", headers=heard)).status == 204


class EndsUntold(SqliteStore):
    """The store of a process that dies after it stored the end of a turn and before it published that end."""

    async def put_events(self, events: Sequence[StoredEvent], epochs: Mapping[str, int]) -> None:
        told = [one for one in events if one.seq < 0 or not isinstance(EVENT.load(one.body), TurnEnd)]
        await super().put_events(told, epochs)


async def test_who_reads_the_conversation_is_told_of_an_end_that_nobody_told(tmp_path: Path) -> None:
    """The reader gets the end and then the stored state, since more events can be lost (N3)."""
    dying = EndsUntold(tmp_path / "chat.db")
    async with (
        served(tmp_path, []) as site,
        runtime_with(tmp_path, [says(WORDS, waits=0.01)], store=dying) as other,
        asyncio.timeout(PATIENCE),
    ):
        id = await site.conversation()
        async with site.events(f"/api/conversations/{id}/events") as events:
            received = [await anext(events)]
            await (await other.conversation(id)).send("go")
            async for event in events:
                received.append(event)
                if event.type == "snapshot":
                    break
    *_, said, end, snapshot = received
    assert said.data["message"]["role"] == "assistant"
    assert (end.type, end.data["state"], end.data["text"]) == ("turn.end", "completed", WORDS)
    assert (snapshot.data["turns"], snapshot.data["messages"][-1]["finish"]) == ([], "stop")


def holds(finish: asyncio.Event) -> Tool:
    @tool
    async def hold() -> str:
        """Wait."""
        await finish.wait()
        return "held"

    return hold


class FaultyStore(SqliteStore):
    """A store that loses track of a turn once, and that blocks readers of messages until the test releases
    them."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.faulty, self.failed = False, asyncio.Event()
        self.reading, self.go_on = asyncio.Event(), asyncio.Event()
        self.go_on.set()

    async def live_turns_named(self, turns: Collection[str]) -> list[TurnRow]:
        return [] if self.faulty else await super().live_turns_named(turns)

    async def turn(self, id: str) -> TurnRow:
        if self.faulty:
            self.faulty = False
            self.failed.set()
            raise StoreUnavailable("the store", "it is gone for a moment", retryable=True)
        return await super().turn(id)

    async def message_texts(self, conversation: str) -> tuple[dict[str, str], int]:
        read = await super().message_texts(conversation)
        self.reading.set()
        await self.go_on.wait()
        return read


async def test_a_snapshot_shows_no_turn_as_open_that_its_place_says_is_over(tmp_path: Path) -> None:
    """While a snapshot is read, the turn is followed again after a store fault, and ends. Otherwise its
    reader would wait forever for the end (N3 × S3)."""
    finish = asyncio.Event()
    store = FaultyStore(tmp_path / "chat.db")
    script = [calls("hold"), says("Done. ")]
    async with (
        served(tmp_path, [], store=store) as site,
        runtime_with(tmp_path, script, tools=[holds(finish)], allow=("hold",)) as other,
        asyncio.timeout(PATIENCE),
    ):
        id = await site.conversation()
        path = f"/api/conversations/{id}/events"
        async with site.events(path) as events:
            await anext(events)  # the snapshot is taken, so the call is not in it
            turn = await (await other.conversation(id)).send("go")
            while (await anext(events)).type != "call.start":
                pass
            store.faulty = True
            await store.failed.wait()
            store.reading.clear()
            store.go_on.clear()
            late = asyncio.create_task(site.until(path, "snapshot"))
            await store.reading.wait()
            finish.set()
            while (await anext(events)).type != "turn.end":
                pass
            store.go_on.set()
        (snapshot,) = await late
        assert snapshot.data["turns"] == []
        assert replied(snapshot, turn.id) == "Done. "


class SlowStore(SqliteStore):
    """A store that blocks reading the events of one turn until the test releases it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.slow, self.reading, self.go_on = "", asyncio.Event(), asyncio.Event()

    async def events(self, after: Mapping[str, int], limit: int = 1000) -> list[StoredEvent]:
        if self.slow in after:
            self.reading.set()
            await self.go_on.wait()
        return await super().events(after, limit)


async def test_a_feed_that_takes_the_place_of_another_tells_each_turn_from_its_start(tmp_path: Path) -> None:
    """This also holds for a turn that is followed while the older one is read again (N3)."""
    finish = asyncio.Event()
    store = SlowStore(tmp_path / "chat.db")
    script = [says("One. "), calls("hold"), says("Done. ")]
    async with (
        runtime_with(tmp_path, [], store=store) as runtime,
        runtime_with(tmp_path, script, tools=[holds(finish)], allow=("hold",)) as other,
        asyncio.timeout(PATIENCE),
    ):
        conversation = await other.conversation()
        publisher = Publisher(runtime)
        older = (await publisher.conversation(conversation.id)).feed
        assert isinstance(older, ConversationFeed)
        first = await conversation.send("one")
        await first.result()
        turn = await conversation.send("two")
        store.slow = first.id
        opening = asyncio.create_task(publisher.conversation(conversation.id, "a cursor of another server"))
        await store.reading.wait()
        runtime.bus.hand_over(turn.id, conversation.id)
        older.add_reader(reader := FeedReader(Pace()))
        while not older.last_of(turn.id):
            await reader.wait()
        store.go_on.set()
        feed = (await opening).feed
        assert isinstance(feed, ConversationFeed)
        finish.set()
        feed.add_reader(reader := FeedReader(Pace()))
        while not feed.has_ended(turn.id):
            await reader.wait()
        frames = feed.since(0) or []
        told = [frame for frame in frames if turn.id.encode() in frame]
        assert [b"event: turn.start" in frame for frame in told].count(True) == 1
        assert [b"event: step.start" in frame for frame in told].count(True) == 2


async def test_what_is_queued_at_one_server_is_shown_at_another(tmp_path: Path, opens: Opens) -> None:
    """This holds without a turn that begins or ends, and also for changed and cancelled messages (N3)."""
    async with (
        served(tmp_path, [calls("add", a=1, b=2)], store=opens(), tools=[add], allow=()) as first,
        served(tmp_path, [], store=opens()) as second,
        asyncio.timeout(PATIENCE),
    ):
        id = await first.conversation()
        await first.say("go", id)
        await first.question()
        async with second.events(f"/api/conversations/{id}/events") as events:
            shown = (await anext(events)).data
            assert (shown["queued"], [one["tool"] for one in shown["questions"]]) == ([], ["add"])
            assert shown["turns"][0]["live"]
            queued = await first.say("then", id, queue=True)
            assert await _queued(events, ["then"])
            await first.ask("PATCH", f"/api/turns/{queued}", {"text": "and then"})
            assert await _queued(events, ["and then"])
            await first.post(f"/api/turns/{queued}/cancel")
            assert await _queued(events, [])
            (shown,) = (await first.get(f"/api/conversations/{id}/tree"))["turns"]
            assert shown["live"]
            turn = shown["id"]
            await first.post(f"/api/turns/{turn}/steer", {"text": "rather not"})
            assert await _queued(events, ["rather not"], "steering")
            (steering,) = (await first.get(f"/api/conversations/{id}/queue"))["steering"]
            await first.ask("DELETE", f"/api/turns/{turn}/steering/{steering['id']}")
            assert await _queued(events, [], "steering")


class CountingStore(SqliteStore):
    """A store that counts how often one turn was read."""

    asked = 0

    async def turn(self, id: str) -> TurnRow:
        self.asked += 1
        return await super().turn(id)


async def test_followers_of_a_turn_that_waits_ask_for_nothing(tmp_path: Path) -> None:
    """Followers are notified when the turn resumes, however many they are (N3)."""
    async with (
        runtime_with(tmp_path, [calls("add", a=1, b=2), says("Done.")], tools=[add], allow=()) as owner,
        asyncio.timeout(PATIENCE),
    ):
        turn = await owner.send("go")
        assert await turn.reached("waiting")
        store = CountingStore(tmp_path / "chat.db")
        async with Runtime(store, adopts=False) as other:
            followers = [aiter(other.turn(turn.id).events()) for _ in range(20)]
            for follower in followers:
                while (await anext(follower)).type != "call.asked":
                    pass
            resting = [asyncio.ensure_future(anext(follower)) for follower in followers]
            store.asked = 1
            while store.asked:  # The first look at who runs it may take its time. Then nothing is asked.
                store.asked = 0
                await asyncio.sleep(2.0)
            (question,) = await owner.store.questions()
            await owner.answer(question.id, allow_once())
            assert {(await event).type for event in resting} == {"call.answered"}


async def _queued(events: AsyncIterator[Received], wanted: list[str], where: str = "queued") -> bool:
    """Return whether readers are shown that exactly these messages are queued."""
    async for event in events:
        if event.type == "queue.changed":
            texts = [one["message"]["parts"][0]["text"] for one in event.data[where]]
            if texts == wanted:
                return True
    return False


async def test_servers_whose_clocks_are_an_hour_apart_agree(tmp_path: Path, opens: Opens) -> None:
    """A message follows the one it answers, whichever clock is right. The approval request of one server is
    answered at the other, a message queued at one starts after the running turn of the other, and a key
    starts one turn (N2, N3)."""
    script = [calls("add", a=1, b=2), says("Three. "), says("Then. ")]
    early, late = (lambda: time.time() - 3600), time.time
    async with (
        served(tmp_path, script, store=opens(), clock=late, tools=[add], allow=()) as first,
        served(tmp_path, [says("Early. ")], store=opens(), clock=early) as second,
        asyncio.timeout(PATIENCE),
    ):
        id = await first.conversation()
        path = f"/api/conversations/{id}/turns"
        turn = await first.say("add", id)
        question = await second.question()
        queued = await second.post(path, {"text": "then", "queue": True})
        await second.post(f"/api/questions/{question['id']}/answer", {"verdict": "allow"})
        await first.until(f"/api/turns/{turn}/events", "turn.end")
        await first.until(f"/api/turns/{queued['turn']}/events", "turn.end")
        key = {"idempotency-key": "once"}
        sent = [await site.post(path, {"text": "early"}, headers=key) for site in (second, first)]
        assert sent[0]["turn"] == sent[1]["turn"]
        await first.until(f"/api/turns/{sent[0]['turn']}/events", "turn.end")
        trees = [await site.get(f"/api/conversations/{id}/tree") for site in (first, second)]
        assert trees[0] == trees[1]
        said = ["".join(part.get("text", "") for part in one["parts"]) for one in trees[0]["messages"]]
        assert said == ["add", "", "Three. ", "then", said[4], "early", "Early. "]
        assert trees[0]["conversation"]["leaf"] == trees[0]["messages"][-1]["id"]
        assert trees[0]["conversation"]["updated"] > time.time() - 60


async def test_the_feed_of_a_conversation_that_another_server_deletes_ends(tmp_path: Path) -> None:
    """It also ends for readers who have no name, such as those of a link (N3)."""
    async with (
        runtime_with(tmp_path, []) as runtime,
        runtime_with(tmp_path, []) as other,
        asyncio.timeout(PATIENCE),
    ):
        conversation = await other.conversation()
        feed = (await Publisher(runtime).conversation(conversation.id)).feed
        feed.add_reader(reader := FeedReader(Pace()))
        await other.store.delete_conversation(conversation.id)
        while not feed.closed:
            await reader.wait()


async def test_a_conversation_that_another_server_deletes_ends_for_its_readers(
    tmp_path: Path, opens: Opens
) -> None:
    """This holds in the middle of a turn. Readers of the turn do not wait for its end, and its unfinished
    writes leave nothing in the store (N3 × S1)."""
    async with running_elsewhere(tmp_path, opens) as (site, other, turn, id):
        conversation, own = (f"/api/conversations/{id}/events", f"/api/turns/{turn.id}/events")
        async with site.events(conversation) as events, site.events(own) as of_turn:
            for stream in (events, of_turn):
                await anext(stream)
            await other.store.delete_conversation(id)
            assert "turn.end" not in [event.type async for event in events]
            assert [event.type async for event in of_turn if event.type == "turn.end"] == []
        assert (await site.ask("GET", f"/api/conversations/{id}/tree")).status == 404
        assert await other.store.events({turn.id: 0}) == []
        assert await other.store.turns_with_signals() == []
