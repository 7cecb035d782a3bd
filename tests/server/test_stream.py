"""Check live streams: numbered, resumed exactly, with a snapshot for late readers, and without slowing others
(E1–E3)."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from dragoman import tool
from dragoman.conversation.tree import LOCAL, Conversation
from dragoman.errors import StoreUnavailable
from dragoman.server import feeds
from dragoman.server.feeds import ConversationFeed, Feed, cursor, parse_cursor
from dragoman.server.list_feeds import Lists
from dragoman.server.snapshots import TreeSnapshot
from dragoman.store.sqlite import SqliteStore
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.runtimes import runtime_with
from tests.server.site import Received, served
from tests.sweeps import some

pytestmark = pytest.mark.slow

TEXT = "".join(f"{n} " for n in range(300))


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def text_of(received: list[Received]) -> str:
    return "".join(event.data["text"] for event in received if event.type == "text.delta")


async def test_a_conversation_tells_a_snapshot_and_then_everything(tmp_path: Path) -> None:
    """E1, E2"""
    async with served(tmp_path, [says(TEXT)]) as site:
        id = await site.conversation()
        async with site.events(f"/api/events?conversation={id}") as events:
            first = await anext(events)
            assert (first.type, first.data["messages"]) == ("snapshot", [])
            await site.say("go", id)
            received = [first]
            async for event in events:
                received.append(event)
                if event.type == "turn.end":
                    break
        added = [event.data["message"]["role"] for event in received if event.type == "message.added"]
        assert added == ["user"]
        assert text_of(received) == TEXT
        assert len({event.id for event in received}) == len(received)


async def test_who_lost_the_connection_gets_each_event_once(tmp_path: Path) -> None:
    """E2: cut off after every so many events, and resumed from the last number."""
    async with served(tmp_path, [says(TEXT, waits=0.001)]) as site:
        id = await site.conversation()
        path = f"/api/conversations/{id}/events"
        (snapshot,) = await site.until(path, "snapshot")
        await site.say("go", id)
        received: list[Received] = []
        while not received or received[-1].type != "turn.end":
            async with site.events(path, received[-1].id if received else snapshot.id) as events:
                for _ in range(40):
                    received.append(await anext(events))
                    if received[-1].type == "turn.end":
                        break
        assert text_of(received) == TEXT
        numbers = [event.data["seq"] for event in received if event.data.get("seq")]
        assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("pieces", [1, 20, 100])
async def test_who_comes_in_the_middle_gets_a_snapshot_and_the_rest(tmp_path: Path, pieces: int) -> None:
    """The snapshot and the events after it are the whole turn, without duplicates (E2)."""
    async with served(tmp_path, [says(TEXT, waits=0.005)]) as site:
        id = await site.conversation()
        path = f"/api/conversations/{id}/events"
        async with site.events(path) as first:
            await anext(first)
            turn = await site.say("go", id)
            heard = 0
            while heard < pieces:
                heard += (await anext(first)).type == "text.delta"
            received = await site.until(path, "turn.end")
        before = _replied(received[0], turn)
        assert before
        assert text_of(received)
        assert before + text_of(received) == TEXT


def _replied(snapshot: Received, turn: str) -> str:
    """Return the text of the turn so far, as a snapshot contains it."""
    assert snapshot.type == "snapshot"
    replies = [message for message in snapshot.data["messages"] if message["role"] == "assistant"]
    parts = [part for reply in replies if reply["turn"] == turn for part in reply["parts"]]
    return "".join(part["text"] for part in parts if part["type"] == "text")


@pytest.mark.parametrize("tab", some(range(8), 2))
async def test_late_readers_of_a_turn_with_calls_see_the_same_end(tmp_path: Path, tab: int) -> None:
    """This holds however late the reader is, and also while events are being stored (E2)."""
    script = [*[calls("add", a=n, b=1) for n in range(5)], says(TEXT)]
    async with served(tmp_path, script, tools=[add]) as site:
        id = await site.conversation()
        async with site.events(f"/api/conversations/{id}/events") as watching:
            await anext(watching)
            turn = await site.say("go", id)
            seen = 0
            async for event in watching:
                seen += 1
                if seen == tab * 9 + 3 or event.type == "turn.end":
                    break
        (snapshot,) = await site.until(f"/api/conversations/{id}/events", "snapshot")
        rest = []
        if snapshot.data["turns"]:  # else it is over, and the snapshot has it all
            rest = await site.until(f"/api/conversations/{id}/events", "turn.end", snapshot.id)
        assert _replied(snapshot, turn) + text_of(rest) == TEXT


async def test_two_tabs_hear_the_same_and_an_answer_in_one_is_told_to_the_other(tmp_path: Path) -> None:
    """E2, P6"""
    async with served(tmp_path, [calls("add", a=1, b=2), says("3")], tools=[add], allow=[]) as site:
        id = await site.conversation()
        path = f"/api/events?conversation={id}"
        async with site.events(path) as one, site.events(path) as other:
            assert [(await anext(tab)).type for tab in (one, other)] == ["snapshot", "snapshot"]
            await site.say("go", id)
            question = await site.question()
            await site.post(f"/api/questions/{question['id']}/answer", {"verdict": "allow"})
            heard = [await _types(one), await _types(other)]
        assert heard[0] == heard[1]
        assert "call.answered" in heard[0]


async def _types(events: AsyncIterator[Received]) -> list[str]:
    types = []
    async for event in events:
        if event.type != "conversation.changed":
            types.append(event.type)
        if event.type == "turn.end":
            break
    return types


async def test_a_question_is_told_whole(tmp_path: Path) -> None:
    """P3, P9: with its cause."""
    async with served(tmp_path, [calls("add", a=1, b=2), says("3")], tools=[add], allow=[]) as site:
        id = await site.conversation()
        async with site.events(f"/api/conversations/{id}/events") as events:
            await anext(events)
            await site.say("go", id)
            async for event in events:
                if event.type == "call.asked":
                    break
        whole = event.data["whole"]
        assert whole["rules"] == [{"permission": "add", "pattern": "*", "action": "allow", "origin": ""}]
        assert whole["because"] == "rule"
        assert whole["schema"]["required"] == ["a", "b"]


async def test_closing_the_stream_does_not_stop_the_turn(tmp_path: Path) -> None:
    """E2"""
    async with served(tmp_path, [says(TEXT, waits=0.001)]) as site:
        turn = await site.say("go")
        await site.until(f"/api/turns/{turn}/events", "text.delta")
        received = await site.until(f"/api/turns/{turn}/events", "turn.end")
        assert received[-1].data["state"] == "completed"


async def test_a_turn_that_was_taken_up_at_the_start_is_told_too(tmp_path: Path) -> None:
    """E2, S3"""
    async with served(tmp_path, [says("x"), says(TEXT, waits=0.05)]) as site:
        id = await site.conversation()
        await site.until(f"/api/turns/{await site.say('go', id)}/events", "turn.end")
        await site.say("go", id)
    async with served(tmp_path, [says(TEXT, waits=0.001)]) as site:
        received = await site.until(f"/api/conversations/{id}/events", "turn.end")
        assert "text.delta" in {event.type for event in received}


async def test_a_turn_resumes_by_its_own_numbers(tmp_path: Path) -> None:
    """E2"""
    async with served(tmp_path, [says(TEXT, waits=0.005)]) as site:
        path = f"/api/turns/{await site.say('go')}/events"
        start = await site.until(path, "text.delta")
        rest = await site.until(path, "turn.end", start[-1].id)
        assert text_of(start) + text_of(rest) == TEXT
        numbers = [int(event.id) for event in (*start, *rest)]
        assert numbers == list(range(1, len(numbers) + 1))


async def test_a_new_conversation_and_a_new_title_are_told_to_the_list(tmp_path: Path) -> None:
    """E1"""
    async with served(tmp_path, [says("x")]) as site, site.events("/api/events") as events:
        id = await site.conversation()
        assert (await anext(events)).data["id"] == id
        await site.ask("PATCH", f"/api/conversations/{id}", {"title": "Birds"})
        assert (await anext(events)).data["title"] == "Birds"
        await site.ask("DELETE", f"/api/conversations/{id}")
        assert (await anext(events)).type == "conversation.deleted"


async def test_what_another_process_does_is_told(tmp_path: Path) -> None:
    """E2: to a single reader too, and whole."""
    async with served(tmp_path, [says("x")]) as site:
        id = await site.conversation()
        async with site.events(f"/api/conversations/{id}/events") as events:
            await anext(events)
            async with runtime_with(tmp_path, [says("from elsewhere")]) as other:
                await (await (await other.conversation(id)).send("hi")).result()
            async with asyncio.timeout(PATIENCE):
                received = await anext(events)
        assert received.type == "snapshot"
        assert [message["role"] for message in received.data["messages"]] == ["user", "assistant"]


async def test_a_turn_of_our_own_is_not_told_twice(tmp_path: Path) -> None:
    """E2: not by itself and then again as something that another process did."""
    async with served(tmp_path, [says("x")]) as site:
        id = await site.conversation()
        async with site.events(f"/api/conversations/{id}/events") as events:
            types = [(await anext(events)).type]
            await site.say("hi", id)
            async with asyncio.timeout(PATIENCE):
                while types[-1] != "turn.end":
                    types.append((await anext(events)).type)
            with suppress(TimeoutError):
                # the interval in which the process scans for changes of others
                async with asyncio.timeout(2.5):
                    async for event in events:
                        types.append(event.type)
        assert types.count("snapshot") == 1


async def test_who_missed_something_of_the_list_is_told_so(tmp_path: Path) -> None:
    """E2"""
    async with served(tmp_path, [says("x")]) as site, site.events("/api/events", "other:5") as events:
        assert (await anext(events)).type == "list.reset"


async def test_nothing_is_told_of_what_is_deleted(tmp_path: Path) -> None:
    """E2: its deletion is the last that is heard of it."""
    async with served(tmp_path, [says(TEXT, waits=0.001)]) as site, site.events("/api/events") as events:
        ids = [await site.conversation() for _ in range(5)]
        for id in ids:
            await site.say("go", id)
            await site.ask("DELETE", f"/api/conversations/{id}")
        last = await site.conversation()
        gone: set[str] = set()
        async for event in events:
            assert event.data["id"] not in gone
            if event.type == "conversation.deleted":
                gone.add(event.data["id"])
            if event.data["id"] == last:
                break
        assert gone == set(ids)


async def nothing_more() -> None:
    pass


async def test_a_deletion_is_told_once(tmp_path: Path) -> None:
    """This also holds if the scan for changes of others runs before the local deletion is complete
    (E2 × N3)."""
    async with runtime_with(tmp_path, [says("x")]) as runtime, asyncio.timeout(PATIENCE):
        lists = Lists(runtime, nothing_more)
        await runtime.store.list_changes()
        feed = await lists.feed_of(LOCAL)
        await runtime.store.add_conversation(Conversation("conv_1"))
        await runtime.delete("conv_1")
        lists.take(await runtime.store.list_changes())
        while not feed.last:  # noqa: ASYNC110 - a feed wakes those who read it, and nobody does
            await asyncio.sleep(0)
        lists.gone("conv_1", LOCAL)
        assert feed.last == 1


async def test_what_is_begun_anew_under_its_old_name_is_in_the_list_again(tmp_path: Path) -> None:
    """E1 × S1: clients of other protocols name conversations themselves."""
    async with served(tmp_path, [says("x")]) as site, site.events("/api/events") as events:
        for _ in range(2):
            await site.runtime.store.add_conversation(Conversation("conv_named"))
            async with asyncio.timeout(PATIENCE):
                assert (await anext(events)).type == "conversation.changed"
            await site.ask("DELETE", "/api/conversations/conv_named")
            assert (await anext(events)).type == "conversation.deleted"


async def test_a_turn_that_is_over_has_nothing_more_for_who_heard_it(tmp_path: Path) -> None:
    """E2: a client that comes back of itself stops coming back."""
    async with served(tmp_path, [says("x")]) as site:
        turn = await site.say("go")
        received = await site.until(f"/api/turns/{turn}/events", "turn.end")
        again = await site.ask(
            "GET", f"/api/turns/{turn}/events", headers={"last-event-id": received[-1].id or "9"}
        )
        assert again.status == 204


async def test_who_comes_back_when_a_turn_is_over_gets_the_rest_of_it(tmp_path: Path) -> None:
    """E2: each event once, and then no more."""
    followed = asyncio.Event()

    @tool
    async def wait() -> None:
        """Wait until somebody follows the turn."""
        await followed.wait()

    async with served(tmp_path, [calls("wait"), says(TEXT)], tools=[wait]) as site:
        path = f"/api/turns/{await site.say('go')}/events"
        async with site.events(path) as events:
            whole = [await anext(events)]
            followed.set()
            whole += [event async for event in events]
        lost = next(at for at, event in enumerate(whole) if event.type == "text.delta")
        rest = await site.until(path, "turn.end", whole[lost].id)
        assert [event.id for event in rest] == [event.id for event in whole[lost + 1 :]]
    async with served(tmp_path, []) as site:  # which has other numbers
        *_, added, end = await site.until(path, "turn.end", whole[lost].id)
        assert (added.data["message"]["parts"][0]["text"], end.id) == (TEXT, "over")
        again = await site.ask("GET", path, headers={"last-event-id": "over"})
        by_address = await site.ask("GET", f"{path}?after=over")
        assert (again.status, by_address.status) == (204, 204)
        wrong = await site.ask("GET", f"{path}?after=-1")
        assert (wrong.status, wrong.body["detail"][:13]) == (422, "query.after: ")


async def test_what_is_kept_of_turns_that_are_over_has_an_end(tmp_path: Path) -> None:
    """E2: the latest are."""
    async with runtime_with(tmp_path, lambda _: says("word " * 8_000)) as runtime:
        turns = []
        for _ in range(6):
            turns.append(await runtime.send("go"))
            await turns[-1].result()
        assert runtime.bus.rest(turns[0].id, 0) is None
        assert runtime.bus.rest(turns[-1].id, 0)


async def test_a_client_that_reads_nothing_slows_nobody(tmp_path: Path) -> None:
    """The turn ends, another reader receives it whole, and the memory for the stuck reader is
    bounded (E2)."""
    size = 0

    @tool
    async def babble() -> AsyncIterator[str]:
        """Report twice as much as is kept for readers, no faster than one of them reads."""
        for sent in range(0, 2 * feeds.CAPACITY, 1000):
            yield "x" * 1000
            async with asyncio.timeout(PATIENCE):
                while sent - size > feeds.CAPACITY // 4:  # noqa: ASYNC110 - it is read over HTTP
                    await asyncio.sleep(0.001)

    async with served(tmp_path, [calls("babble"), says("done")], tools=[babble]) as site:
        id = await site.conversation()
        host = urlsplit(site.url)
        sleeper = socket.create_connection((host.hostname, host.port))
        sleeper.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        request = f"GET /api/conversations/{id}/events HTTP/1.1\r\nHost: {host.netloc}\r\n"
        sleeper.sendall(f"{request}Authorization: Bearer key of local\r\n\r\n".encode())
        async with site.events(f"/api/conversations/{id}/events") as events:
            await anext(events)
            await site.say("go", id)
            async for event in events:
                size += len(event.data["value"]) if event.type == "call.progress" else 0
                if event.type == "turn.end":
                    break
        sleeper.close()
        assert size == 2 * feeds.CAPACITY


def test_a_snapshot_comes_in_pieces_that_block_nobody() -> None:
    """E2: a piece ends with the message that makes it long enough."""
    messages = [f'"{letter * 31_998}"' for letter in "abcdefg"]
    snapshot = TreeSnapshot('{"revision":1}', messages, 1, nothing_queued=True)
    assert [len(piece) // 32_000 for piece in snapshot] == [3, 3, 1]
    assert json.loads(b"".join(snapshot)) == json.loads(snapshot.text())
    assert json.loads(snapshot.text()) == {
        "type": "snapshot",
        "messages": [json.loads(one) for one in messages],
        "revision": 1,
    }


def test_a_feed_forgets_what_is_beyond_its_bound_and_says_so() -> None:
    """E2"""
    feed = Feed()
    for _ in range(100):
        feed.publish("text.delta", "x" * (feeds.CAPACITY // 50))
    assert feed.last == 100
    assert feed.since(0) is None
    assert feed.since(101) is None
    assert len(feed.since(99) or []) == 1
    assert feed.since(100) == []
    large = Feed()
    for _ in range(3):
        large.publish("text.delta", "x" * feeds.CAPACITY)
    assert (large.since(1), len(large.since(2) or [])) == (None, 1)
    first = next(number for number in range(100) if feed.since(number) is not None)
    assert 50 <= first <= 52
    assert [feed.find(feed.place_at(number)) for number in (first, first + 1, 100)] == [first, first + 1, 100]
    assert [feed.place_at(number) for number in (100, 101, first - 1)] == [
        f"{feed.name}:{number}" for number in (100, first, first)
    ]


def test_a_cursor_is_good_only_for_its_own_feeds() -> None:
    """E2"""
    one, other = Feed(), Feed()
    for feed in (one, other, other):
        feed.publish("text.delta", "x")
    text = cursor([(one, 1), (other, 2)])
    places = parse_cursor(text, [one, other])
    assert (one.find(places[one.name]), other.find(places[other.name])) == (1, 2)
    assert parse_cursor(text, [Feed()]) == {}
    assert parse_cursor("::,x:,:-1,\x00", [one]) == {}
    assert [one.find(f"{one.name}:{place}") for place in ("", "-1", "2", "\x00")] == [None] * 4


def test_a_feed_knows_whether_a_reader_of_another_server_is_ahead() -> None:
    """Only of turns that go on there (E2, N3)."""
    here, there = (ConversationFeed("conv", ["old"]) for _ in range(2))

    def ahead() -> bool:
        there.publish("text.delta", "x")
        return here.is_behind(there.place_at(there.last))

    seen = [ahead()]
    for feed, number in ((there, 1), (here, 1), (there, 3), (here, 2), (here, 3)):
        feed.advance("turn", number)
        seen.append(ahead())
    there.advance("turn", 9)
    here.end("turn")
    assert [*seen, ahead()] == [False, True, False, True, True, False, False]
    assert (here.has("turn", 9), here.has("other", 1), there.has("turn", 10)) == (True, False, False)
    assert (here.ended, there.ended, there.last_of("turn")) == ({"old", "turn"}, {"old"}, 9)
    assert (there.has_begun("turn"), there.has_ended("turn"), here.has_ended("turn")) == (True, False, True)
    assert not here.is_behind(f"{here.name}:0.{'0' * 8}-x.5")


async def test_a_reader_sees_a_turn_of_another_process_while_it_runs(tmp_path: Path) -> None:
    """The reader gets its chunks, its approval requests and its end, and the conversation is not sent again
    (E2, N3)."""
    script = [says("before ", waits=0.01) + calls("add", a=1, b=2), says(TEXT, waits=0.005)]
    async with served(tmp_path, []) as site:
        id = await site.conversation()
        async with site.events(f"/api/conversations/{id}/events") as events:
            assert (await anext(events)).type == "snapshot"
            async with runtime_with(tmp_path, script, tools=[add], allow=()) as other:
                turn = await (await other.conversation(id)).send("go")
                received: list[Received] = []
                async for event in events:
                    received.append(event)
                    if event.type == "call.asked":
                        question = event.data["whole"]["id"]
                        await site.post(f"/api/questions/{question}/answer", {"verdict": "allow"})
                    if event.type == "text.delta" and event.data["text"].startswith("0"):
                        assert (await other.store.turn(turn.id)).live
                    if event.type == "turn.end":
                        break
                await site.post(f"/api/conversations/{id}/turns", {"text": "and on"})  # the next turn
                received.append(await anext(events))
        kinds = [event.type for event in received]
        assert text_of(received) == "before " + TEXT
        assert (kinds.count("call.asked"), kinds.count("snapshot"), kinds[-1]) == (1, 0, "message.added")


async def test_a_turn_of_another_process_that_is_deleted_there_is_no_error_here(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its reader reaches the end of the stream without any other report (E2, N3)."""
    async with served(tmp_path, []) as site, asyncio.timeout(PATIENCE):
        id = await site.conversation()
        async with site.events(f"/api/conversations/{id}/events") as events:
            assert (await anext(events)).type == "snapshot"
            async with runtime_with(tmp_path, [calls("add", a=1, b=2)], tools=[add], allow=()) as other:
                turn = await (await other.conversation(id)).send("go")
                async for event in events:
                    if event.type == "call.asked":
                        await other.delete(id)
        following = [one for one in asyncio.all_tasks() if one.get_name() == f"following turn {turn.id}"]
        await asyncio.gather(*following)
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == []


class UnreadableStore(SqliteStore):
    """A store that fails for readers of messages."""

    async def message_texts(self, conversation: str) -> tuple[dict[str, str], int]:
        raise StoreUnavailable("the store", "it is gone for a moment", retryable=True)


async def test_a_stream_that_breaks_off_is_logged_in_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """O2: by Dragoman, and not by the HTTP server as well."""
    store = UnreadableStore(tmp_path / "chat.db")
    async with served(tmp_path, [], store=store) as site, asyncio.timeout(PATIENCE):
        id = await site.conversation()
        with suppress(aiohttp.ClientError):
            await site.until(f"/api/conversations/{id}/events", "snapshot")
    lines = [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
    assert len(lines) == 1
    assert lines[0].startswith("a stream broke off: ")
