"""Sends live streams as Server-Sent Events: of feeds, from a snapshot or a cursor on, and of one turn."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args

from pydantic import Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from typing_extensions import TypeAliasType

from dragoman.errors import DragomanError, NotFound
from dragoman.messages.events import EVENT, CallAsked, Event, TurnEnd
from dragoman.messages.questions import Question
from dragoman.sentences import sentence
from dragoman.server.connections import Peer, connection_of, session_in, still_in
from dragoman.server.feeds import Feed, FeedReader, Pace, cursor, parse_cursor
from dragoman.server.shapes import ConversationSummary, PresenceView, QueueView, TreeView
from dragoman.turn.api.turn_handle import TurnHandle

ALIVE = 15.0  # seconds of silence after which a comment says that we are still here
STUCK = 60.0  # seconds a client may take to read what it was sent
_BEHIND = 2.0  # seconds in which what was told elsewhere is told here
_LOOK = 1.0  # seconds between looks at the open streams
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
_WELCOME = b": welcome\n\n"
_STILL_HERE = b": still here\n\n"
OVER = "over"  # the number of the end of a turn whose numbers nobody remembers
LIST_RESET = '{"type":"list.reset"}'

log = logging.getLogger("dragoman.server")

Chunks = AsyncGenerator[bytes, None]


# ── the events ────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, kw_only=True)
class ConversationChanged(ConversationSummary):
    """A line of the person's list is new, or not what it was."""

    type: Literal["conversation.changed"] = "conversation.changed"


@dataclass(slots=True, kw_only=True)
class ConversationDeleted:
    id: str
    type: Literal["conversation.deleted"] = "conversation.deleted"


@dataclass(slots=True, kw_only=True)
class QueueChanged(QueueView):
    """What is queued in a conversation, or is to steer a turn there, is not what it was."""

    type: Literal["queue.changed"] = "queue.changed"


@dataclass(slots=True, kw_only=True)
class PresenceChanged(PresenceView):
    """Who has a shared conversation open, or is typing, is not what it was."""

    type: Literal["presence"] = "presence"


@dataclass(slots=True, kw_only=True)
class ListReset:
    """Changes of the list were missed: it is to be read again."""

    type: Literal["list.reset"] = "list.reset"


@dataclass(slots=True, kw_only=True)
class QuestionAsked(CallAsked):
    """In a conversation's stream the question comes whole, as `/questions/ID` has it."""

    whole: Question | None = None


class _NamesItsTurn:
    """For the description alone: a conversation's stream adds `turn` to the event (`publisher.py`)."""

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        turn = {"type": "object", "properties": {"turn": {"type": "string"}}, "required": ["turn"]}
        return {"allOf": [handler(core), turn]}


_IN_STREAM: Any = Union[tuple(QuestionAsked if event is CallAsked else event for event in get_args(Event))]  # noqa: UP007 - of a tuple

TurnEvent = TypeAliasType("TurnEvent", Annotated[Event, Field(discriminator="type")])
LiveEvent = TypeAliasType(
    "LiveEvent",
    Annotated[_IN_STREAM, Field(discriminator="type"), _NamesItsTurn()]
    | TreeView
    | QueueChanged
    | ConversationChanged
    | ConversationDeleted
    | PresenceChanged
    | ListReset,
)


# ── what is sent ──────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Subject:
    """A feed, and how its story begins for who comes late: a snapshot, and the number it is good for."""

    feed: Feed
    snapshot: Callable[[], Awaitable[tuple[Iterable[bytes], int]]] | None = None  # its data, in pieces
    shown: Callable[[bytes], bytes] | None = None  # what of a snapshot this reader is shown


async def follow(subjects: Sequence[Subject], pace: Pace, after: str = "") -> Chunks:
    """Everything that is published about these subjects from the cursor on; without one, after a snapshot.

    Ends where the reader is so far behind that frames it has not had are gone.
    """
    feeds = [subject.feed for subject in subjects]
    reader = FeedReader(pace)
    pace.add_reader()
    for feed in feeds:
        feed.add_reader(reader)
    try:
        named = parse_cursor(after, feeds)
        places: dict[str, int] = {}
        now = {feed.name: feed.last for feed in feeds}
        yield _WELCOME  # whoever has heard this misses nothing
        for subject in subjects:
            feed = subject.feed
            if feed.name in named and (found := await _found(feed, named[feed.name], reader)) is not None:
                places[feed.name] = found
                continue  # it goes on where it was
            places[feed.name] = now[feed.name]
            if subject.snapshot is not None:
                data, places[feed.name] = await subject.snapshot()
                if feed.closed:
                    return  # the snapshot is of the one that took its place
                yield f"id: {_at(feeds, places)}\nevent: snapshot\ndata: ".encode()
                for piece in data if subject.shown is None else [subject.shown(b"".join(data))]:
                    yield piece
                yield b"\n\n"
            elif after:  # it has missed something, and has to ask for the whole again
                yield f"id: {_at(feeds, places)}\nevent: list.reset\ndata: {LIST_RESET}\n\n".encode()
        while True:
            await reader.wait()
            chunk = _next(subjects, places)
            if chunk is None or (not chunk and any(feed.closed for feed in feeds)):
                return
            if chunk:
                yield chunk
    finally:
        pace.remove_reader()
        for feed in feeds:
            feed.remove_reader(reader)


async def _found(feed: Feed, place: str, reader: FeedReader) -> int | None:
    """The number of a place. What was heard elsewhere may be heard here in a moment."""
    try:
        async with asyncio.timeout(_BEHIND):
            while (found := feed.find(place)) is None and feed.is_behind(place):
                await reader.wait()
            return found
    except TimeoutError:
        return None
    finally:
        reader.wake()  # what it was woken for is still to be read


def _at(feeds: Sequence[Feed], places: dict[str, int]) -> str:
    return cursor([(feed, places[feed.name]) for feed in feeds if feed.name in places])


_SNAPSHOT = b"\nevent: snapshot\ndata: "


def _as_shown(frame: bytes, shown: Callable[[bytes], bytes]) -> bytes:
    head, mark, data = frame.partition(_SNAPSHOT)
    return head + mark + shown(data) + b"\n\n" if mark and b"\n" not in head else frame


def _next(subjects: Sequence[Subject], places: dict[str, int]) -> bytes | None:
    """All frames that there are now, in one piece. None where some are gone already."""
    chunk: list[bytes] = []
    feeds = [subject.feed for subject in subjects]
    for subject in subjects:
        feed = subject.feed
        frames = feed.since(places[feed.name])
        if frames is None:
            return None
        if not frames:
            continue
        others = [(other, places[other.name]) for other in feeds if other is not feed]
        head = f"id: {cursor(others)},".encode() if others else b"id: "
        for frame in frames:  # which begins with its own place
            chunk += (head, frame if subject.shown is None else _as_shown(frame, subject.shown))
        places[feed.name] += len(frames)
    return b"".join(chunk)


async def follow_turn(turn: TurnHandle, after: int) -> Chunks:
    """The events of a turn under its own numbers, until it ends. One that waits for a person is not over."""
    yield _WELCOME
    with suppress(NotFound):  # it was called off before it began, or deleted
        async for event in turn.events(after):
            number = event.seq or (OVER if isinstance(event, TurnEnd) else "")
            id = f"id: {number}\n" if number else ""
            yield f"{id}event: {event.type}\ndata: {EVENT.dump(event)}\n\n".encode("utf-8", "replace")


STOPS = sentence("server.goes_on")
FAREWELL = (
    f"event: server.stops\ndata: {json.dumps({'code': 'server.stops', 'text': str(STOPS)})}\n\n".encode()
)

# ── sending it ────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, frozen=True)
class Reader:
    """Who reads a stream, and the conversation that it tells of: it ends when they may not read that."""

    person: str
    conversation: str


class OpenStreams:
    """The streams that are open. They are looked after together: none has timers of its own."""

    def __init__(self, on_reader: Callable[[], None] = lambda: None) -> None:
        self._streams: set[EventStream] = set()
        self._on_reader = on_reader  # somebody reads a conversation: it has to be heard who no longer may
        self.new_readers: set[Reader] = set()  # since it was last looked whether they still may
        self._timer: asyncio.TimerHandle | None = None
        self.closed = False

    def __bool__(self) -> bool:
        return bool(self._streams)

    def add(self, stream: EventStream) -> None:
        self._streams.add(stream)
        if stream.reader is not None:
            self.new_readers.add(stream.reader)
            self._on_reader()
        if self.closed:
            stream.end()
        elif self._timer is None:
            self._schedule()

    def remove(self, stream: EventStream) -> None:
        self._streams.discard(stream)
        if not self._streams and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end_session(self, session: str) -> None:
        """Whoever reads them has signed out. At other nodes the middleware looks again."""
        for stream in list(self._streams):
            if stream.session == session:
                stream.end()

    @property
    def readers(self) -> set[Reader]:
        return {stream.reader for stream in self._streams if stream.reader is not None}

    def end_reader(self, reader: Reader) -> None:
        """The reader lost the right to read that conversation."""
        for stream in list(self._streams):
            if stream.reader == reader:
                stream.end()

    async def recheck(self) -> None:
        """Somebody lost a right. The streams that this is about end."""
        verdicts: dict[str, bool] = {}  # by sign-in: many streams have the same
        for stream in list(self._streams):
            if stream.still_in is None:
                continue
            found = verdicts.get(stream.session) if stream.session is not None else None
            verdict = await stream.still_in() if found is None else found
            if stream.session is not None:
                verdicts[stream.session] = verdict
            if not verdict:
                stream.end()

    def close(self) -> None:
        """The server closes: nobody has to wait for them."""
        self.closed = True
        for stream in list(self._streams):
            stream.end()

    def _schedule(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_LOOK, self._look)

    def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        for stream in list(self._streams):
            stream.look_after(now)
        self._schedule()


class EventStream(Response):
    """Chunks of `text/event-stream` until they end, the client goes, or it does not read for too long."""

    media_type = "text/event-stream"

    def __init__(
        self,
        chunks: Chunks,
        streams: OpenStreams,
        headers: Mapping[str, str] | None = None,
        *,
        reader: Reader | None,
        farewell: Callable[[], bytes] = lambda: FAREWELL,
    ) -> None:
        """`reader` is None for what is told of no conversation. `farewell` is what a server that stops says
        last: an error that a client of its protocol tries again after. A plain end would look like the end of
        the answer."""
        super().__init__(headers={**_HEADERS, **(headers or {})})
        del self.headers["content-length"]
        self._chunks = chunks
        self._streams = streams
        self._sending = 0
        self._last = 0.0  # when something was last sent
        self._work: asyncio.Task[None] | None = None
        self._beat: asyncio.Task[None] | None = None
        self._connection: Peer | None = None
        self._closing = False
        self._ending = False  # its last message is on its way
        self._farewell = farewell
        self.reader = reader
        self.session: str | None = None  # the sign-in that it was opened with
        self.still_in: Callable[[], Awaitable[bool]] | None = None  # whether its reader may still read it

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._time = asyncio.get_running_loop().time
        self._send = send
        self._connection = connection_of(scope)
        self.session, self.still_in = session_in(scope), still_in(scope)
        async with aclosing(self._chunks):
            first = await anext(self._chunks, b"")  # who gets the headers is listened to already
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._write(first)
            self._work = work = asyncio.create_task(self._send_all())
            gone = asyncio.create_task(_disconnected(receive))
            self._streams.add(self)
            try:
                await asyncio.wait([work, gone], return_when=asyncio.FIRST_COMPLETED)
            finally:
                self._streams.remove(self)
                tasks = [task for task in (work, gone, self._beat) if task is not None]
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        # A task that is cancelled in its last step comes to its end, and counts as cancelled all the same.
        if self._closing and work.cancelled() and not self._ending:
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    if self._streams.closed:
                        await self._write(self._farewell())
                    await self._send_end()
        if not work.cancelled() and (error := work.exception()) is not None:
            _report(error)
            if self._connection is not None:
                self._connection.hang_up()  # else the server logs, too, that the response is not complete
                await _disconnected(receive)

    def end(self) -> None:
        self._closing = True
        if self._work is not None and not self._ending:
            self._work.cancel()

    def look_after(self, now: float) -> None:
        if self._sending and now - self._last > STUCK:
            assert self._work is not None
            if self._connection is not None:
                self._connection.hang_up()  # to close it in order would wait for what it does not read
            self._work.cancel()
        elif not self._sending and now - self._last > ALIVE:
            self._beat = asyncio.create_task(self._write(_STILL_HERE))

    async def _send_all(self) -> None:
        async for chunk in self._chunks:
            await self._write(chunk)
        await self._send_end()

    async def _send_end(self) -> None:
        self._ending = True
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _write(self, chunk: bytes) -> None:
        self._last = self._time()
        self._sending += 1
        try:
            await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
        finally:
            self._sending -= 1


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _report(error: BaseException) -> None:
    if isinstance(error, DragomanError):
        log.warning("a stream broke off: %s", error)
    else:
        log.error("a stream broke off", exc_info=error)
