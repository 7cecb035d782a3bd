"""Numbered frames about one subject, which each reader takes at its own pace, and can come back to.

A frame is made once, however many read it. Only so much is held: who falls further behind is cut off, and
begins anew with a snapshot.

Readers are written to immediately, unless the event loop is late again and again. Then what comes for a
reader within a tenth of a second is put together into one write. What follows a pause, or is more than a
piece of a text, is written immediately. One stall, however long, changes nothing: holding pieces back would
prolong it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import xor
from zlib import crc32

from dragoman.messages.ids import new_id

TICK = 0.02  # seconds
TICKS = 5  # between two writes of pieces to the same reader, where the loop is late
LATE = 0.01  # seconds behind its time, on average
_WEIGHT = 0.1  # of one tick in that average
_MOST = LATE / _WEIGHT  # seconds that one tick counts for: not enough to be late by itself


class Pace:
    """A clock for all readers of one event loop, which runs while there are any."""

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
        """Call it then: one of the next few ticks."""
        self._waiting[tick % TICKS].append(release)

    def tick(self, lateness: float) -> None:
        """A tick that was due so many seconds ago; where that is long ago, also those that came after it."""
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
    """One who waits for frames. Woken once for everything that came since."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._waiter: asyncio.Future[None] | None = None
        self._woken = True  # at first there is always something to look at
        self._held = False
        self._wrote = -TICKS  # the tick in which it was last written a piece

    def wake(self, *, piece: bool = False) -> None:
        """There is something to read. A piece may be held back for the next one, everything else is not."""
        pace = self._pace
        if not piece:
            self._wrote = -TICKS  # the first piece after it goes at once
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
        if self._held:  # else something else has released it meanwhile
            self._wrote = self._pace.ticks
            self._release()

    def _release(self) -> None:
        self._held = False
        self._woken = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


CAPACITY = 2_000_000  # bytes of frames


class Feed:
    """What there is to tell about one subject: a conversation, or a person's list of them."""

    def __init__(self, name: str = "") -> None:
        self.name = name or new_id("f")[2:10]
        self.readers: set[FeedReader] = set()
        self.unread_since = time.monotonic()
        self.closed = False
        self._frames: deque[bytes] = deque()  # each begins with its place: `NAME:NUMBER`
        self._size = 0
        self._dropped = 0
        self._before = self._place(0)  # all of them

    @property
    def last(self) -> int:
        """The number of the newest frame."""
        return self._dropped + len(self._frames)

    def publish(self, type: str, data: str, *, piece: bool = False) -> None:
        """`piece`: one of many that follow each other, which may wait for the next where the loop is late."""
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
        """The frames after this number. None where they are not all there any more, or never were."""
        frames = self._frames
        behind = self._dropped + len(frames) - number
        if not 0 <= behind <= len(frames):
            return None
        return [frames[place] for place in range(-behind, 0)]

    def find(self, place: str) -> int | None:
        """The number of the first frame after which a reader is at this place."""
        if place == self._before:
            return self._dropped
        head = f"{place}\n".encode()
        found = (at for at, frame in enumerate(self._frames, self._dropped + 1) if frame.startswith(head))
        return next(found, None)

    def place_at(self, number: int) -> str:
        """Where a reader is who has had the frame of this number."""
        at = number - self._dropped
        return _place_of(self._frames[at - 1]) if 0 < at <= len(self._frames) else self._before

    def is_behind(self, place: str) -> bool:
        """Whether somebody can be at this place who has heard elsewhere what is yet to be heard here."""
        return False

    def close(self) -> None:
        """There will be no more: readers come to an end when they have had everything."""
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
    """Its places are the same in every process: they name the turns that began, and how far each is that has
    not ended. Nothing but turns changes what a conversation says."""

    def __init__(self, conversation: str, ended: Iterable[str]) -> None:
        self._began = {*ended}
        self._digest = reduce(xor, map(_short, self._began), 0)
        self._at: dict[str, int] = {}  # turns that have not ended: the last number
        super().__init__(f"{_short(conversation):08x}")

    @property
    def ended(self) -> set[str]:
        return self._began - self._at.keys()

    def has_begun(self, turn: str) -> bool:
        return turn in self._began

    def has_ended(self, turn: str) -> bool:
        return turn in self._began and turn not in self._at

    def last_of(self, turn: str) -> int:
        """The number of the last event that was told of a turn that has not ended."""
        return self._at.get(turn, 0)

    def has(self, turn: str, number: int) -> bool:
        """Whether its readers know this event: the turn was heard before."""
        return turn in self._began and number <= self._at.get(turn, number)

    def advance(self, turn: str, number: int) -> None:
        """The next frame tells this event."""
        self.know([turn])
        self._at[turn] = number

    def end(self, turn: str) -> None:
        """The next frame tells the end of this turn."""
        self.know([turn])
        self._at.pop(turn, None)

    def know(self, turns: Iterable[str]) -> None:
        """The next frame tells of these turns, too."""
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
    """Whether a turn had begun, and not ended, for a reader who is at this place of its conversation."""
    return f".{_short(turn):08x}-" in cursor


def _place_of(frame: bytes) -> str:
    return frame[: frame.index(b"\n")].decode()


def cursor(places: Sequence[tuple[Feed, int]]) -> str:
    """Where a reader of these feeds is, as a text it can give back."""
    return ",".join(feed.place_at(number) for feed, number in places)


def parse_cursor(text: str, feeds: Sequence[Feed]) -> dict[str, str]:
    """The places it names in these feeds. Of those it does not name, none."""
    known = {feed.name for feed in feeds}
    pieces = [piece.strip() for piece in text.split(",")]
    return {name: piece for piece in pieces if (name := piece.partition(":")[0]) in known}
