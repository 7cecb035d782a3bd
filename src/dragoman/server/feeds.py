"""Publish numbered frames about a subject. Each reader reads at a separate pace and can resume.

A frame is built once, however many readers there are. A feed keeps a limited number of bytes: a reader that
falls further behind is cut off, and starts again with a snapshot.

Readers are written to immediately, unless the event loop is late repeatedly. In that case, chunks for one
reader within a tenth of a second are combined into one write. Frames after a pause, and frames that are not
chunks of text, are still written immediately. A single stall, however long, changes nothing: holding chunks
back would prolong it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import xor
from typing import TypeVar
from zlib import crc32

from dragoman.messages.ids import new_id

TICK = 0.02  # seconds
TICKS = 5  # between two writes of chunks to the same reader, when the loop is late
LATE = 0.01  # average seconds of lateness from which the loop counts as late
_UNREAD = 120.0  # seconds after which a feed without readers is dropped
_WEIGHT = 0.1  # weight of one tick in that average
# maximum seconds that one tick counts for, so that a single tick never makes the loop late
_MOST = LATE / _WEIGHT


class Pace:
    """A clock for all readers of one event loop. It runs while there are readers."""

    def __init__(self) -> None:
        self.ticks = 0
        self.late = False
        self._lateness = 0.0
        self._readers = 0
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: list[list[Callable[[], None]]] = [[] for _ in range(TICKS)]

    def add_reader(self) -> None:
        self._readers += 1
        if self._timer is None:
            self._schedule()

    def remove_reader(self) -> None:
        self._readers -= 1
        if not self._readers and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def at_tick(self, tick: int, release: Callable[[], None]) -> None:
        """Call `release` at one of the next few ticks."""
        self._waiting[tick % TICKS].append(release)

    def tick(self, lateness: float) -> None:
        """Handle a tick that was due `lateness` seconds ago, and the ticks that were missed since."""
        self._lateness += _WEIGHT * (min(lateness, _MOST) - self._lateness)
        self.late = self._lateness > LATE
        for _ in range(1 + min(int(lateness / TICK), TICKS)):
            self.ticks += 1
            due, self._waiting[self.ticks % TICKS] = self._waiting[self.ticks % TICKS], []
            for release in due:
                release()

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = loop.time() + TICK
        self._timer = loop.call_at(self._due, self._look)

    def _look(self) -> None:
        self.tick(asyncio.get_running_loop().time() - self._due)
        self._schedule()


class FeedReader:
    """A waiting reader of frames. One wake-up covers all frames published since the last."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._waiter: asyncio.Future[None] | None = None
        self._woken = True  # A new reader always checks for frames first.
        self._held = False
        self._wrote = -TICKS  # the tick of the last write of a chunk

    def wake(self, *, piece: bool = False) -> None:
        """Wake the reader. A chunk can be held back and combined with the next one, other frames cannot."""
        pace = self._pace
        if not piece:
            self._wrote = -TICKS  # The first chunk after this frame is written immediately.
        elif pace.late and pace.ticks - self._wrote < TICKS:
            if not self._held:
                self._held = True
                pace.at_tick(self._wrote + TICKS, self._release_held)
            return
        else:
            self._wrote = pace.ticks
        self._release()

    async def wait(self) -> None:
        if not self._woken:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        self._woken = False

    def _release_held(self) -> None:
        if self._held:  # Otherwise another frame has released it in the meantime.
            self._wrote = self._pace.ticks
            self._release()

    def _release(self) -> None:
        self._held = False
        self._woken = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


CAPACITY = 2_000_000  # bytes of frames


class Feed:
    """The frames about one subject: a conversation, or a user's list of conversations."""

    def __init__(self, name: str = "") -> None:
        self.name = name or new_id("f")[2:10]
        self.readers: set[FeedReader] = set()
        self.unread_since = time.monotonic()
        self.closed = False
        self._frames: deque[bytes] = deque()  # Each frame begins with its place, `NAME:NUMBER`.
        self._size = 0
        self._dropped = 0
        self._before = self._place(0)  # the place before the first kept frame

    @property
    def last(self) -> int:
        """The number of the newest frame."""
        return self._dropped + len(self._frames)

    def publish(self, type: str, data: str, *, piece: bool = False) -> None:
        """Append a frame and wake the readers. `piece` marks one of many consecutive chunks, which can wait
        for the next one when the loop is late."""
        place = self._place(self._dropped + len(self._frames) + 1)
        frame = f"{place}\nevent: {type}\ndata: {data}\n\n".encode("utf-8", "replace")
        self._frames.append(frame)
        self._size += len(frame)
        while self._size > CAPACITY and len(self._frames) > 1:
            dropped = self._frames.popleft()
            self._size -= len(dropped)
            self._dropped += 1
            self._before = _place_of(dropped)
        for reader in self.readers:
            reader.wake(piece=piece)

    def since(self, number: int) -> Sequence[bytes] | None:
        """Return the frames after this number. None if some are gone or the number is unknown."""
        frames = self._frames
        behind = self._dropped + len(frames) - number
        if not 0 <= behind <= len(frames):
            return None
        return [frames[place] for place in range(-behind, 0)]

    def find(self, place: str) -> int | None:
        """Return the number of the first frame after which a reader is at this place, or None."""
        if place == self._before:
            return self._dropped
        head = f"{place}\n".encode()
        found = (at for at, frame in enumerate(self._frames, self._dropped + 1) if frame.startswith(head))
        return next(found, None)

    def place_at(self, number: int) -> str:
        """Return the place of a reader that has received the frame of this number."""
        at = number - self._dropped
        return _place_of(self._frames[at - 1]) if 0 < at <= len(self._frames) else self._before

    def is_behind(self, place: str) -> bool:
        """Return whether a reader at this place has received events elsewhere that are yet to arrive here."""
        return False

    def close(self) -> None:
        """Close the feed: readers end after the last frame."""
        self.closed = True
        for reader in self.readers:
            reader.wake()

    def add_reader(self, reader: FeedReader) -> None:
        self.readers.add(reader)

    def remove_reader(self, reader: FeedReader) -> None:
        self.readers.discard(reader)
        self.unread_since = time.monotonic()

    def _place(self, number: int) -> str:
        return f"{self.name}:{number}"


class ConversationFeed(Feed):
    """A feed whose places are the same in every process. They name the turns that began, and how far each
    unfinished turn is. Only turns change a conversation."""

    def __init__(self, conversation: str, ended: Iterable[str]) -> None:
        self._began = {*ended}
        self._digest = reduce(xor, map(_short, self._began), 0)
        self._at: dict[str, int] = {}  # the last number of each unfinished turn
        super().__init__(f"{_short(conversation):08x}")

    @property
    def ended(self) -> set[str]:
        return self._began - self._at.keys()

    def has_begun(self, turn: str) -> bool:
        return turn in self._began

    def has_ended(self, turn: str) -> bool:
        return turn in self._began and turn not in self._at

    def last_of(self, turn: str) -> int:
        """Return the number of the last published event of an unfinished turn."""
        return self._at.get(turn, 0)

    def has(self, turn: str, number: int) -> bool:
        """Return whether the readers have received this event."""
        return turn in self._began and number <= self._at.get(turn, number)

    def advance(self, turn: str, number: int) -> None:
        """Record that the next frame contains this event."""
        self.know([turn])
        self._at[turn] = number

    def end(self, turn: str) -> None:
        """Record that the next frame contains the end of this turn."""
        self.know([turn])
        self._at.pop(turn, None)

    def know(self, turns: Iterable[str]) -> None:
        """Record that the next frame also covers these turns."""
        for turn in {*turns} - self._began:
            self._began.add(turn)
            self._digest ^= _short(turn)

    def is_behind(self, place: str) -> bool:
        heard = dict(one.partition("-")[::2] for one in place.split(".")[1:])
        ended = {f"{_short(turn):08x}" for turn in self.ended}
        at = {f"{_short(turn):08x}": number for turn, number in self._at.items()}
        return any(
            number.isdecimal() and int(number[:18]) > at.get(turn, 0)
            for turn, number in heard.items()
            if turn not in ended
        )

    def _place(self, number: int) -> str:
        at = "".join(f".{_short(turn):08x}-{last}" for turn, last in sorted(self._at.items()))
        return f"{self.name}:{self._digest:08x}{at}"


def _short(id: str) -> int:
    return crc32(id.encode())


def is_named(turn: str, cursor: str) -> bool:
    """Return whether the turn was running at this place of its conversation."""
    return f".{_short(turn):08x}-" in cursor


def _place_of(frame: bytes) -> str:
    return frame[: frame.index(b"\n")].decode()


def cursor(places: Sequence[tuple[Feed, int]]) -> str:
    """Return a reader's position in these feeds as a string that the reader can send back."""
    return ",".join(feed.place_at(number) for feed, number in places)


def parse_cursor(text: str, feeds: Sequence[Feed]) -> dict[str, str]:
    """Return the places that the text names in these feeds, by feed name."""
    known = {feed.name for feed in feeds}
    pieces = [piece.strip() for piece in text.split(",")]
    return {name: piece for piece in pieces if (name := piece.partition(":")[0]) in known}


FeedT = TypeVar("FeedT", bound=Feed)


def publish_typed(feed: Feed, type: str, data: str) -> None:
    """Publish data with its type inside, for clients that read only the data."""
    feed.publish(type, f'{{"type":"{type}",{data[1:]}')


def drop_unread(feeds: dict[str, FeedT]) -> list[str]:
    """Drop feeds that were not read for a while, and return their names."""
    long_ago = time.monotonic() - _UNREAD
    unread = [name for name, feed in feeds.items() if not feed.readers and feed.unread_since < long_ago]
    for name in unread:
        del feeds[name]
    return unread
