"""How the events of a reply are cut out of its bytes: an axis of its own, beside the wire that reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, Protocol, TypeAlias

from dragoman.wire.aws_events import AwsEventSplitter
from dragoman.wire.sse import Splitter

FramingName: TypeAlias = Literal["sse", "aws_events", "bytes"]


class Framing(Protocol):
    """Splits one reply. `pending` are the bytes of an event that is not complete."""

    pending: int

    def feed(self, chunk: bytes) -> Iterable[bytes]: ...

    def end(self) -> Iterable[bytes]:
        """What is left when the stream ends."""


class Unsplit:
    """A reply that is a file, such as a sound: each piece as it comes."""

    pending = 0

    def feed(self, chunk: bytes) -> Iterable[bytes]:
        return (chunk,)

    def end(self) -> Iterable[bytes]:
        return ()


FRAMINGS: dict[FramingName, Callable[[], Framing]] = {
    "sse": Splitter,
    "aws_events": AwsEventSplitter,
    "bytes": Unsplit,
}
