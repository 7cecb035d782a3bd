"""Send live streams as Server-Sent Events: feeds, from a snapshot or a cursor on, and single turns."""

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

ALIVE = 15.0  # seconds of silence after which a comment keeps the connection alive
STUCK = 60.0  # seconds that a client may take to read what it was sent
_BEHIND = 2.0  # maximum seconds until events of another server arrive here
_LOOK = 1.0  # seconds between checks of the open streams
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
_WELCOME = b": welcome\n\n"
_STILL_HERE = b": still here\n\n"
OVER = "over"  # The event number of a turn's end if its numbers are lost.
LIST_RESET = '{"type":"list.reset"}'

log = logging.getLogger("dragoman.server")

Chunks = AsyncGenerator[bytes, None]


# ── the events ────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, kw_only=True)
class ConversationChanged(ConversationSummary):
    """A line of the user's conversation list is new or has changed."""

    type: Literal["conversation.changed"] = "conversation.changed"


@dataclass(slots=True, kw_only=True)
class ConversationDeleted:
    id: str
    type: Literal["conversation.deleted"] = "conversation.deleted"


@dataclass(slots=True, kw_only=True)
class QueueChanged(QueueView):
    """The queue of a conversation, or the messages that are to steer its turn, have changed."""

    type: Literal["queue.changed"] = "queue.changed"


@dataclass(slots=True, kw_only=True)
class PresenceChanged(PresenceView):
    """The users who have a shared conversation open, or who are typing, have changed."""

    type: Literal["presence"] = "presence"


@dataclass(slots=True, kw_only=True)
class ListReset:
    """The client missed changes of the list and must read it again."""

    type: Literal["list.reset"] = "list.reset"


@dataclass(slots=True, kw_only=True)
class QuestionAsked(CallAsked):
    """In a conversation's stream, the event contains the whole question, as `/questions/ID` does."""

    whole: Question | None = None


class _NamesItsTurn:
    """Only for the description: a conversation's stream adds `turn` to each event (`publisher.py`)."""

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


# ── requests ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Subject:
    """A feed, and the snapshot for readers that join late. The snapshot comes with the number of the last
    frame that it includes."""

    feed: Feed
    # yields the snapshot's data in chunks
    snapshot: Callable[[], Awaitable[tuple[Iterable[bytes], int]]] | None = None
    shown: Callable[[bytes], bytes] | None = None  # filters a snapshot for this reader


async def follow(subjects: Sequence[Subject], pace: Pace, after: str = "") -> Chunks:
    """Yield everything that is published about these subjects after the cursor, or after a snapshot if there
    is none.

    Ends if the reader is so far behind that frames it has not received are gone.
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
        yield _WELCOME  # A client that has received this misses no later event.
        for subject in subjects:
            feed = subject.feed
            if feed.name in named and (found := await _found(feed, named[feed.name], reader)) is not None:
                places[feed.name] = found
                continue  # This subject resumes after its cursor.
            places[feed.name] = now[feed.name]
            if subject.snapshot is not None:
                data, places[feed.name] = await subject.snapshot()
                if feed.closed:
                    return  # This feed was closed, and the snapshot belongs to the feed that replaced it.
                yield f"id: {_at(feeds, places)}\nevent: snapshot\ndata: ".encode()
                for piece in data if subject.shown is None else [subject.shown(b"".join(data))]:
                    yield piece
                yield b"\n\n"
            elif after:  # The client has missed events and must read the whole list again.
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
    """Return the number of a place, or None. Waits a moment for events that the client has received from
    another server."""
    try:
        async with asyncio.timeout(_BEHIND):
            while (found := feed.find(place)) is None and feed.is_behind(place):
                await reader.wait()
            return found
    except TimeoutError:
        return None
    finally:
        reader.wake()  # The frames that woke the reader are still unread.


def _at(feeds: Sequence[Feed], places: dict[str, int]) -> str:
    return cursor([(feed, places[feed.name]) for feed in feeds if feed.name in places])


_SNAPSHOT = b"\nevent: snapshot\ndata: "


def _as_shown(frame: bytes, shown: Callable[[bytes], bytes]) -> bytes:
    head, mark, data = frame.partition(_SNAPSHOT)
    return head + mark + shown(data) + b"\n\n" if mark and b"\n" not in head else frame


def _next(subjects: Sequence[Subject], places: dict[str, int]) -> bytes | None:
    """Return all available frames as one chunk. None if some are already gone."""
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
        for frame in frames:  # Each frame starts with its place.
            chunk += (head, frame if subject.shown is None else _as_shown(frame, subject.shown))
        places[feed.name] += len(frames)
    return b"".join(chunk)


async def follow_turn(turn: TurnHandle, after: int) -> Chunks:
    """Yield the events of a turn under their numbers until the turn ends. A turn that waits for a user has
    not ended."""
    yield _WELCOME
    with suppress(NotFound):  # The turn was cancelled before it began, or deleted.
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
    """The user who reads a stream, and its conversation. The stream ends if the user may not read that
    conversation."""

    person: str
    conversation: str


class OpenStreams:
    """All open streams. One timer serves them all."""

    def __init__(self, on_reader: Callable[[], None] = lambda: None) -> None:
        self._streams: set[EventStream] = set()
        self._on_reader = on_reader  # called for each reader of a conversation, to watch for lost rights
        self.new_readers: set[Reader] = set()  # readers added since the last check of their rights
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
        """End the streams of a sign-in that was signed out. On other servers, the middleware checks again."""
        for stream in list(self._streams):
            if stream.session == session:
                stream.end()

    @property
    def readers(self) -> set[Reader]:
        return {stream.reader for stream in self._streams if stream.reader is not None}

    def end_reader(self, reader: Reader) -> None:
        """End the streams of a reader who lost the right to read that conversation."""
        for stream in list(self._streams):
            if stream.reader == reader:
                stream.end()

    async def recheck(self) -> None:
        """End all streams whose users may not read them any longer. Called after a user lost a right."""
        verdicts: dict[object, bool] = {}  # by sign-in: many streams share one
        for stream in list(self._streams):
            if stream.still_in is None:
                continue
            sign_in = stream.session or stream
            if sign_in not in verdicts:
                verdicts[sign_in] = await stream.still_in()
            if not verdicts[sign_in]:
                stream.end()

    def close(self) -> None:
        """End all streams, so that closing the server does not wait for them."""
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
    """A response of `text/event-stream` chunks. It ends with them, when the client disconnects, or when the
    client reads nothing for too long."""

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
        """`reader` is None for streams that belong to no conversation.

        `farewell` returns the last message of a stopping server: an error after which a client of that
        protocol retries. A plain end would look like the end of the answer.
        """
        super().__init__(headers={**_HEADERS, **(headers or {})})
        del self.headers["content-length"]
        self._chunks = chunks
        self._streams = streams
        self._sending = 0
        self._last = 0.0  # time of the last write
        self._work: asyncio.Task[None] | None = None
        self._beat: asyncio.Task[None] | None = None
        self._connection: Peer | None = None
        self._closing = False
        self._ending = False  # the last message is being sent
        self._farewell = farewell
        self.reader = reader
        self.session: str | None = None  # the sign-in that opened the stream
        # whether the user may still read the stream
        self.still_in: Callable[[], Awaitable[bool]] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._time = asyncio.get_running_loop().time
        self._send = send
        self._connection = connection_of(scope)
        self.session, self.still_in = session_in(scope), still_in(scope)
        async with aclosing(self._chunks):
            # Start listening before the headers are sent: a client that has them misses no event.
            first = await anext(self._chunks, b"")
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
        # A task that is cancelled in its last step completes, but counts as cancelled.
        if self._closing and work.cancelled() and not self._ending:
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    if self._streams.closed:
                        await self._write(self._farewell())
                    await self._send_end()
        if not work.cancelled() and (error := work.exception()) is not None:
            _report(error)
            if self._connection is not None:
                self._connection.disconnect()  # Otherwise the server logs an incomplete response, too.
                await _disconnected(receive)

    def end(self) -> None:
        self._closing = True
        if self._work is not None and not self._ending:
            self._work.cancel()

    def look_after(self, now: float) -> None:
        if self._sending and now - self._last > STUCK:
            assert self._work is not None
            if self._connection is not None:
                # An orderly close would wait for data that the client does not read.
                self._connection.disconnect()
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
