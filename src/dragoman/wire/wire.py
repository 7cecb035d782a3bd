"""The interfaces of this room: a `Model` answers requests with events; a `Wire` is one provider protocol.

A wire encodes a `Request` as a provider's body and decodes the provider's frames into our events; it is pure.
Models use one over HTTP (`wire/http.py`), or play a script (`wire/scripted.py`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from typing import Protocol

from pydantic import JsonValue

from dragoman.messages.events import (
    Event,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
)
from dragoman.messages.request import Request


class Decoder(Protocol):
    """Decodes one reply, frame by frame. `end` closes whatever is open and says how the reply finished.

    It raises ProviderError where the wire always says that a reply is over, and this one did not.
    """

    finish_word: str | None
    """The provider's own word for how the reply ended, once it has come."""

    def feed(self, frame: bytes) -> Iterator[Event]: ...

    def end(self) -> Iterator[Event]: ...


class Wire(Protocol):
    """One provider protocol: a body for a request, a decoder for its reply."""

    name: str

    def encode(self, request: Request) -> dict[str, JsonValue]: ...

    def decoder(self, reply: str) -> Decoder:
        """A decoder for the reply with this id; the calls in it are named after it."""


class Model(Protocol):
    """Something that answers. `name` is how people write it: `provider/model`."""

    name: str
    context: int | None  # tokens it can take, where known

    def stream(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        """The reply's events, in batches as they arrive; the last is a `MessageEnd`. Raises ProviderError."""


def call_id(reply: str, position: int) -> str:
    """Our own id for the call at this position of a reply. Providers' ids repeat, or are missing."""
    return f"call_{reply.removeprefix('msg_')}_{position}"


class Prose:
    """Text and reasoning as they alternate: sees to it that each starts once and ends before the other."""

    def __init__(self, wire: str) -> None:
        self._wire = wire
        self._open: str | None = None

    def text(self, piece: str) -> Iterable[Event]:
        if not piece:
            return ()
        if self._open == "text":
            return (TextDelta(piece),)
        before = [*self.close()]
        self._open = "text"
        return (*before, TextStart(), TextDelta(piece))

    def reasoning(self, piece: str) -> Iterable[Event]:
        if not piece:
            return ()
        if self._open == "reasoning":
            return (ReasoningDelta(piece),)
        before = [*self.close()]
        self._open = "reasoning"
        return (*before, ReasoningStart(), ReasoningDelta(piece))

    def close(self, *, signature: str | None = None, opaque: JsonValue = None) -> Iterator[Event]:
        """End what is open. A signature or an opaque block without open reasoning makes one of its own."""
        if self._open == "text":
            yield TextEnd()
        if self._open != "reasoning" and (signature is not None or opaque is not None):
            yield ReasoningStart()
            self._open = "reasoning"
        if self._open == "reasoning":
            yield ReasoningEnd(signature, self._wire, opaque)
        self._open = None
