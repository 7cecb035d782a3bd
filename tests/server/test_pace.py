"""Check when readers receive events: immediately unless the loop is late. Check how silent and stuck readers
end (E2)."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.server.connections import CONNECTION
from dragoman.server.event_stream import ALIVE, STUCK, EventStream, OpenStreams, Subject, follow
from dragoman.server.feeds import LATE, TICK, TICKS, Feed, FeedReader, Pace
from tests.patience import PATIENCE
from tests.server.site import listening


def late() -> Pace:
    pace = Pace()
    for _ in range(20):
        pace.tick(2 * LATE)
    assert pace.late
    return pace


def ids(chunk: bytes) -> list[str]:
    return re.findall(r"^id: (.*)$", chunk.decode(), re.MULTILINE)


def texts(chunk: bytes) -> list[str]:
    return re.findall(r"^data: (.*)$", chunk.decode(), re.MULTILINE)


async def begun(feeds: list[Feed], pace: Pace) -> AsyncGenerator[bytes, None]:
    chunks = follow([Subject(feed) for feed in feeds], pace)
    assert (await anext(chunks)).startswith(b":")
    return chunks


async def take(chunks: AsyncGenerator[bytes, None]) -> bytes:
    async with asyncio.timeout(PATIENCE):
        return await anext(chunks)


async def test_a_piece_is_written_at_once() -> None:
    """E2: where the loop keeps its time, each comes as it is."""
    feed, pace = Feed(), Pace()
    chunks = await begun([feed], pace)
    for n in range(20):
        feed.publish("text.delta", str(n), piece=True)
        assert texts(await take(chunks)) == [str(n)]
    await chunks.aclose()


async def test_where_the_loop_is_late_pieces_go_out_together_in_order_with_their_own_ids() -> None:
    """The first chunk goes out immediately, none is lost or reordered, and a reader can resume from each
    (E2)."""
    feed, pace = Feed(), late()
    chunks = await begun([feed], pace)
    feed.publish("text.delta", "0", piece=True)
    assert texts(await take(chunks)) == ["0"]
    for n in range(1, 50):
        feed.publish("text.delta", str(n), piece=True)
    chunk = await take(chunks)
    assert texts(chunk) == [str(n) for n in range(1, 50)]
    assert ids(chunk) == [f"{feed.name}:{n}" for n in range(2, 51)]
    await chunks.aclose()
    middle = ids(chunk)[20]
    again = follow([Subject(feed)], pace, middle)
    assert (await take(again)).startswith(b":")
    assert texts(await take(again)) == [str(n) for n in range(22, 50)]
    await again.aclose()


async def test_what_is_more_than_a_piece_waits_for_nothing_and_takes_what_waited_along() -> None:
    """An approval request, and the first chunk after it, go out immediately, also if the loop is
    late (E2)."""
    feed, pace = Feed(), late()
    chunks = await begun([feed], pace)
    for type in ("text.delta", "text.delta", "call.asked"):
        feed.publish(type, type, piece=type == "text.delta")
    assert texts(await take(chunks)) == ["text.delta", "text.delta", "call.asked"]
    await chunks.aclose()
    reader = FeedReader(late())
    reader.wake(piece=True)
    await reader.wait()
    reader.wake(piece=True)  # would wait
    waiting = asyncio.ensure_future(reader.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    reader.wake()
    await asyncio.sleep(0)
    assert waiting.done()
    reader.wake(piece=True)  # the first after something else
    async with asyncio.timeout(PATIENCE):
        await reader.wait()


async def test_a_piece_waits_for_a_few_ticks_at_most() -> None:
    """E2"""
    pace = late()
    reader = FeedReader(pace)
    reader.wake(piece=True)
    await reader.wait()
    reader.wake(piece=True)
    waiting = asyncio.ensure_future(reader.wait())
    for _ in range(TICKS - 1):
        pace.tick(LATE)
        await asyncio.sleep(0)
        assert not waiting.done()
    pace.tick(0)
    await asyncio.sleep(0)
    assert waiting.done()


async def test_the_clock_runs_while_there_are_readers() -> None:
    """A server without readers does nothing (E2)."""
    pace = Pace()
    pace.add_reader()
    pace.add_reader()
    pace.remove_reader()
    ticked = asyncio.Event()
    pace.at_tick(pace.ticks + 1, ticked.set)
    async with asyncio.timeout(PATIENCE):
        await ticked.wait()
    pace.remove_reader()
    stopped = pace.ticks
    await asyncio.sleep(3 * TICK)
    assert pace.ticks == stopped


async def test_ticks_that_the_loop_has_missed_are_made_up_for() -> None:
    """No reader waits longer because the loop was late (E2)."""
    pace = late()
    reader = FeedReader(pace)
    reader.wake(piece=True)
    await reader.wait()
    reader.wake(piece=True)
    pace.tick(TICK * TICKS)
    async with asyncio.timeout(PATIENCE):
        await reader.wait()


def test_a_loop_that_was_held_up_once_is_not_taken_for_a_late_one() -> None:
    """Readers would otherwise get the next events even later. A loop that is held up repeatedly is
    late (E2)."""
    pace = Pace()
    pace.tick(3600)
    assert not pace.late
    for _ in range(100):
        pace.tick(0)
        pace.tick(3600)
    assert pace.late


def test_a_loop_that_is_on_time_again_is_soon_taken_for_that() -> None:
    """E2"""
    pace = late()
    for _ in range(100):
        pace.tick(0)
    assert not pace.late


@given(st.lists(st.tuples(st.sampled_from(["one", "other"]), st.booleans()), max_size=60), st.booleans())
def test_whatever_is_published_whenever_it_is_read_each_frame_comes_once_in_order(
    frames: list[tuple[str, bool]], behind: bool
) -> None:
    """E2: of two feeds, with cursors that name the place in both."""

    async def run() -> None:
        feeds = {"one": Feed(), "other": Feed()}
        pace = late() if behind else Pace()
        chunks = await begun([*feeds.values()], pace)
        received: list[tuple[str, str]] = []
        for n, (name, piece) in enumerate(frames):
            feeds[name].publish("x", str(n), piece=piece)
            if n % 3 == 0:
                await asyncio.sleep(0)
        while len(received) < len(frames):
            chunk = await take(chunks)
            received += zip(ids(chunk), texts(chunk), strict=True)
        for name, feed in feeds.items():
            own = [str(n) for n, (where, _) in enumerate(frames) if where == name]
            places = [dict(part.split(":") for part in id.split(",")) for id, _ in received]
            mine = [
                text
                for place, before, (_, text) in zip(places, [{}, *places], received, strict=False)
                if place[feed.name] != before.get(feed.name, "0")
            ]
            assert mine == own
        await chunks.aclose()

    asyncio.run(run())


# ── streams that are looked after together ────────────────────────────────────────────────────────


class Client:
    """The other side of an ASGI application: it records what was sent and can stop receiving."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self.gone = asyncio.Event()

    async def send(self, message: Any) -> None:
        await self.reads.wait()
        self.sent.append(message.get("body", b""))

    async def receive(self) -> Any:
        await self.gone.wait()
        return {"type": "http.disconnect"}


async def _silent() -> AsyncGenerator[bytes, None]:
    yield b": welcome\n\n"
    await asyncio.Event().wait()


async def _settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_silent_stream_says_that_it_is_there_and_ends_when_the_client_goes() -> None:
    """E2"""
    client, streams = Client(), OpenStreams()
    stream = EventStream(_silent(), streams, reader=None)
    running = asyncio.create_task(stream({}, client.receive, client.send))
    await _settled()
    now = asyncio.get_running_loop().time()
    stream.look_after(now + ALIVE - 1)
    await _settled()
    assert client.sent == [b"", b": welcome\n\n"]
    stream.look_after(now + ALIVE + 1)
    await _settled()
    assert client.sent[2:] == [b": still here\n\n"]
    assert streams
    client.gone.set()
    async with asyncio.timeout(PATIENCE):
        await running
    assert not streams


async def test_a_client_that_reads_nothing_is_hung_up_on() -> None:
    """E2"""
    client, streams = Client(), OpenStreams()

    async def chatty() -> AsyncGenerator[bytes, None]:
        yield b": welcome\n\n"
        client.reads.clear()
        yield b"data: 1\n\n"

    stream = EventStream(chatty(), streams, reader=None)
    running = asyncio.create_task(stream({}, client.receive, client.send))
    await _settled()
    now = asyncio.get_running_loop().time()
    stream.look_after(now + STUCK - 1)
    await _settled()
    assert not running.done()
    stream.look_after(now + STUCK + 1)
    async with asyncio.timeout(PATIENCE):
        await running
    assert client.sent == [b"", b": welcome\n\n"]


@pytest.mark.parametrize("before", [True, False])
async def test_streams_end_when_the_server_closes(before: bool) -> None:
    """U1: also one that begins at that very moment."""
    client, streams = Client(), OpenStreams()
    if before:
        streams.close()
    running = asyncio.create_task(
        EventStream(_silent(), streams, reader=None)({}, client.receive, client.send)
    )
    await _settled()
    streams.close()
    async with asyncio.timeout(PATIENCE):
        await running
    assert client.sent[-1] == b""


async def test_a_stream_that_ends_by_itself_while_the_server_closes_ends_once() -> None:
    """U1: a signal comes in the middle of anything, also of the last step of a stream."""
    client, streams = Client(), OpenStreams()

    async def interrupted() -> AsyncGenerator[bytes, None]:
        yield b": welcome\n\n"
        streams.close()

    async with asyncio.timeout(PATIENCE):
        await EventStream(interrupted(), streams, reader=None)({}, client.receive, client.send)
    assert client.sent == [b"", b": welcome\n\n", b""]


async def test_what_is_written_is_sent_whether_or_not_the_last_piece_has_come() -> None:
    """Over a connection that was kept open, answers used to come 40 ms late (E2)."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        connection = scope["state"][CONNECTION].transport.get_extra_info("socket")
        waits = not connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        await Response(str(waits))(scope, receive, send)

    async with listening(app) as url, aiohttp.ClientSession(url) as client, client.get("/") as answer:
        assert await answer.text() == "False"
