"""Numbered frames about one subject, which each reader takes at its own pace, and can come back to.

A frame is made once, however many read it. Only so much is held: who falls further behind is cut off, and
begins anew with a snapshot.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from dragoman.messages.ids import new_id
from dragoman.server.pace import FeedReader

CAPACITY = 2_000_000  # bytes of frames


class Feed:
    """What there is to tell about one subject: a conversation, or a person's list of them."""

    def __init__(self) -> None:
        self.name = new_id("f")[2:10]
        self.readers: set[FeedReader] = set()
        self.unread_since = time.monotonic()
        self.closed = False
        self._frames: deque[bytes] = deque()  # each begins with its place: `NAME:NUMBER`
        self._size = 0
        self._dropped = 0

    @property
    def last(self) -> int:
        """The number of the newest frame."""
        return self._dropped + len(self._frames)

    def publish(self, type: str, data: str, *, piece: bool = False) -> None:
        """`piece`: one of many that follow each other, which may wait for the next where the loop is late."""
        number = self._dropped + len(self._frames) + 1
        frame = f"{self.name}:{number}\nevent: {type}\ndata: {data}\n\n".encode("utf-8", "replace")
        self._frames.append(frame)
        self._size += len(frame)
        while self._size > CAPACITY and len(self._frames) > 1:
            self._size -= len(self._frames.popleft())
            self._dropped += 1
        for reader in self.readers:
            reader.wake(piece=piece)

    def since(self, number: int) -> Sequence[bytes] | None:
        """The frames after this number. None where they are not all there any more, or never were."""
        frames = self._frames
        behind = self._dropped + len(frames) - number
        if not 0 <= behind <= len(frames):
            return None
        return [frames[place] for place in range(-behind, 0)]

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


def cursor(places: Sequence[tuple[Feed, int]]) -> str:
    """Where a reader of these feeds is, as a text it can give back."""
    return ",".join(f"{feed.name}:{place}" for feed, place in places)


def parse_cursor(text: str, feeds: Sequence[Feed]) -> dict[str, int]:
    """The places it names in these feeds. Of those it does not name, none."""
    known = {feed.name for feed in feeds}
    places = {}
    for piece in text.split(","):
        name, _, number = piece.strip().partition(":")
        if name in known and number.isdecimal() and len(number) < 16:
            places[name] = int(number)
    return places
