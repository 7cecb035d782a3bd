"""Numbered frames about one subject, which each reader takes at its own pace, and can come back to.

A frame is made once, however many read it. Only so much is held: who falls further behind is cut off, and
begins anew with a snapshot.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence

from dragoman.messages.ids import new_id

KEPT = 2_000_000  # bytes of frames


class Feed:
    """What there is to tell about one subject: a conversation, or a person's list of them."""

    def __init__(self) -> None:
        self.name = new_id("f")[2:10]
        self.readers: set[asyncio.Event] = set()
        self.left = time.monotonic()  # when the last reader went
        self._frames: deque[bytes] = deque()
        self._size = 0
        self._dropped = 0
        self.closed = False

    @property
    def last(self) -> int:
        """The number of the newest frame."""
        return self._dropped + len(self._frames)

    def publish(self, type: str, data: str) -> None:
        frame = f"event: {type}\ndata: {data}\n\n".encode("utf-8", "replace")
        self._frames.append(frame)
        self._size += len(frame)
        while self._size > KEPT and len(self._frames) > 1:
            self._size -= len(self._frames.popleft())
            self._dropped += 1
        for wake in self.readers:
            wake.set()

    def since(self, number: int) -> Sequence[bytes] | None:
        """The frames after this number. None where they are not all there any more, or never were."""
        if not self._dropped <= number <= self.last:
            return None
        behind = self.last - number
        return [self._frames[place] for place in range(len(self._frames) - behind, len(self._frames))]

    def close(self) -> None:
        """There will be no more: readers come to an end when they have had everything."""
        self.closed = True
        for wake in self.readers:
            wake.set()

    def join(self, reader: asyncio.Event) -> None:
        self.readers.add(reader)

    def leave(self, reader: asyncio.Event) -> None:
        self.readers.discard(reader)
        self.left = time.monotonic()


def with_type(type: str, data: str) -> str:
    """The JSON object, with its type in it: whoever reads the data alone knows what it is."""
    return f'{data[:-1]}{"," if len(data) > 2 else ""}"type":"{type}"}}'


def cursor(places: Sequence[tuple[Feed, int]]) -> str:
    """Where a reader of these feeds is, as a text it can give back."""
    return ",".join(f"{feed.name}:{place}" for feed, place in places)


def places(text: str, feeds: Sequence[Feed]) -> dict[str, int]:
    """What a cursor says of these feeds. Of those it does not name, nothing."""
    known = {feed.name for feed in feeds}
    found = {}
    for piece in text.split(","):
        name, _, number = piece.strip().partition(":")
        if name in known and number.isdecimal() and len(number) < 16:
            found[name] = int(number)
    return found
