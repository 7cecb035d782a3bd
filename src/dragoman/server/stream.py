"""Feeds in, Server-Sent Events out: each once, a snapshot first for who comes late, and no end to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.server.feed import Feed, cursor, places, with_type

log = logging.getLogger("dragoman.server")
ALIVE = 15.0  # seconds of silence after which a comment says that we are still here
STUCK = 60.0  # seconds a client may take to read what it was sent
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


@dataclass(slots=True)
class Subject:
    """A feed, and how its story begins for who comes late: a snapshot, and the number it is good for."""

    feed: Feed
    snapshot: Callable[[], Awaitable[tuple[str, int]]] | None = None  # its data, without a frame around it


class EventStream(Response):
    """Chunks of `text/event-stream` until the client goes, or does not read for too long."""

    media_type = "text/event-stream"

    def __init__(self, chunks: AsyncIterator[bytes], closing: asyncio.Event) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._chunks = chunks
        self._ended = False
        self._closing = closing  # of the house: nobody has to wait for us then

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        first = await anext(self._chunks, b"")  # who gets the headers is listened to already
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": first, "more_body": True})
        work = asyncio.create_task(self._send_all(send))
        others = [asyncio.create_task(_gone(receive)), asyncio.create_task(self._closing.wait())]
        try:
            await asyncio.wait([work, *others], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, *others):
                task.cancel()
            await asyncio.gather(work, *others, return_exceptions=True)
        if self._closing.is_set() and not self._ended:
            async with asyncio.timeout(1):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        if not work.cancelled() and (error := work.exception()) is not None:
            log.error("a stream broke off", exc_info=error)

    async def _send_all(self, send: Send) -> None:
        try:
            async for chunk in self._chunks:
                async with asyncio.timeout(STUCK):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            self._ended = True
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            pass  # it reads nothing: what it holds of us is its own buffer, and no more of it


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def follow(subjects: Sequence[Subject], after: str = "") -> AsyncIterator[bytes]:
    """Everything that is told of these subjects from the cursor on; from a snapshot where there is none.

    Ends where the reader is so far behind that frames it has not had are gone.
    """
    feeds = [subject.feed for subject in subjects]
    wake = asyncio.Event()
    for feed in feeds:
        feed.join(wake)
    try:
        at = places(after, feeds)
        now = {feed.name: feed.last for feed in feeds}
        yield b": welcome\n\n"  # whoever has heard this misses nothing
        for subject in subjects:
            if (frame := await _beginning(subject, at, now, missed=bool(after))) is not None:
                yield _numbered(frame, feeds, at)
        while True:
            wake.clear()
            chunk = _next(feeds, at)
            if chunk:
                yield chunk
                continue
            if chunk is None or any(feed.closed for feed in feeds):
                return
            try:
                async with asyncio.timeout(ALIVE):
                    await wake.wait()
            except TimeoutError:
                yield b": still here\n\n"
    finally:
        for feed in feeds:
            feed.leave(wake)


async def _beginning(
    subject: Subject, at: dict[str, int], now: dict[str, int], *, missed: bool
) -> bytes | None:
    """What a reader has to be told before the frames of a feed, and where it is then. None goes on there."""
    feed = subject.feed
    if feed.name in at and feed.since(at[feed.name]) is not None:
        return None
    if subject.snapshot is None:
        at[feed.name] = now[feed.name]
        return _frame("list.reset", "{}") if missed else None  # it has to be asked for again
    data, at[feed.name] = await subject.snapshot()
    return _frame("snapshot", data)


def _frame(type: str, data: str) -> bytes:
    return f"event: {type}\ndata: {with_type(type, data)}\n\n".encode("utf-8", "replace")


def _next(feeds: Sequence[Feed], at: dict[str, int]) -> bytes | None:
    """All frames that there are now, in one piece. None where some are gone already."""
    chunk = bytearray()
    for feed in feeds:
        frames = feed.since(at[feed.name])
        if frames is None:
            return None
        for frame in frames:
            at[feed.name] += 1
            chunk += _numbered(frame, feeds, at)
    return bytes(chunk)


def _numbered(frame: bytes, feeds: Sequence[Feed], at: dict[str, int]) -> bytes:
    known = [(feed, at[feed.name]) for feed in feeds if feed.name in at]
    return b"id: " + cursor(known).encode() + b"\n" + frame
