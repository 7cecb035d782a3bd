"""Define the interfaces of this package: `Model` answers requests with events. `Wire` is a provider protocol.

A wire encodes a `Request` as a provider's body and decodes the provider's frames into our events; it is pure.
Models use one over HTTP (`wire/http_client/http_model.py`), or play a script (`wire/scripted.py`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from pydantic import JsonValue

from dragoman.messages.events import (
    Event,
    ItemAdded,
    Notice,
    ProviderData,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StepModel,
    StepRetry,
    TextDelta,
    TextEnd,
    TextStart,
)
from dragoman.messages.message import File
from dragoman.messages.request import Request
from dragoman.wire.endpoint import Endpoint
from dragoman.wire.files.file_parts import NO_ATTACHMENTS, Attachments
from dragoman.wire.options import Extra
from dragoman.wire.prose import LONE, is_whole, join_all, join_halves, split_half

Voice: TypeAlias = Literal["text", "reasoning"]


class Decoder(Protocol):
    """Decodes one reply, frame by frame. `end` closes whatever is open and reports how the reply finished.

    It raises ProviderError if the wire always marks the end of a reply, and this reply had no mark. If an
    event marks the end, the decoder may set `over`: then nothing of the reply follows, even if the connection
    stays open.
    """

    finish_word: str | None
    """The provider's word for how the reply ended, once it has come."""

    def feed(self, frame: bytes) -> Iterable[Event]: ...

    def end(self) -> Iterator[Event]: ...


@runtime_checkable
class ReadsWhole(Protocol):
    """A decoder that can read a reply in one JSON body: some servers do not stream, even if requested."""

    def whole(self, body: JsonValue) -> Iterable[Event] | None:
        """Return its events, without those of `end`. None if it is not a reply."""


@runtime_checkable
class BreaksOff(Protocol):
    """A decoder that holds back data that is useful even without its end, such as audio."""

    def break_off(self) -> Iterable[Event]:
        """Return what it has of a reply that reached a limit or broke off. Call nothing after that."""


class Wire(Protocol):
    """One provider protocol: a body for a request, a decoder for its reply."""

    name: str
    options: frozenset[str]
    """The options that the protocol supports. It encodes no others from `request.options`."""

    def check_options(self, options: Mapping[str, JsonValue], *, model: str, extra: Extra) -> None:
        """Raise BadRequest for an option that would not get into the body unchanged (R9).

        That is an unknown one, one of the wrong type, or one that the model refuses, alone or with another.
        """

    def encode(self, request: Request, attachments: Attachments = NO_ATTACHMENTS) -> dict[str, JsonValue]: ...

    def carries(self, file: File) -> bool:
        """Return whether the body contains the bytes of such a file, so that they must be read."""

    def decoder(self, reply: str) -> Decoder:
        """Return a decoder for the reply with this ID. The IDs of its calls are derived from it."""


@runtime_checkable
class MediaWire(Protocol):
    """The additional methods of a wire for models that do not chat, but make images, transcribe or speak."""

    def select(self, request: Request) -> Request:
        """Return the part of a whole conversation that is sent: the current text and files."""

    def endpoint(self, request: Request, endpoint: Endpoint) -> Endpoint:
        """Return the endpoint of the request: each task of such models has its own URL."""


class Model(Protocol):
    """A model that answers. `name` is its name for users: `provider/model`.

    A model that does not chat has a `type` (`messages/media.py`). A model that knows which files it cannot
    take has a method `check_files(files)`, which raises BadRequest. A model that knows what a whole message
    needs has `check_message(parts, earlier)`.
    """

    name: str
    context: int | None  # maximum tokens, if known

    @property
    def variant(self) -> Mapping[str, JsonValue]:
        """Options of the variant chosen with its name: over an agent's, under a conversation's."""
        return {}

    def check_options(self, options: Mapping[str, JsonValue]) -> None:
        """Raise BadRequest if a request with these options would be refused before it is sent."""

    def stream(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        """Yield the reply's events, in batches as they arrive. The last is a `MessageEnd`. Raises
        ProviderError.

        A `StepRetry`, a `StepModel` or a `Notice` can come before them, and `ProviderData` anywhere: these
        are not parts of the reply.
        """


def begins_reply(events: Iterable[Event]) -> bool:
    """Return whether any event is part of a reply: after one, the request must not be repeated."""
    return not all(isinstance(event, StepRetry | StepModel | ProviderData | Notice) for event in events)


def call_id(reply: str, position: int) -> str:
    """Return our own ID for the call at this position of a reply. Providers' IDs repeat, or are missing."""
    return f"call_{reply.removeprefix('msg_')}_{position}"


class Prose:
    """Alternating text and reasoning: ensures that each starts once and ends before the other."""

    def __init__(self, wire: str) -> None:
        self._wire = wire
        self._open: Voice | None = None
        self._half = ""  # of a surrogate pair, at the end of the last chunk
        self.length = 0  # of the open text, in characters: the position of its sources
        self.field_name: str | None = None  # the field in which reasoning comes, if there are several
        self.phase: str | None = None  # of the text that is open or comes next

    def text(self, piece: str) -> Iterable[Event]:
        if self._open == "text" and piece and not self._half and (piece.isascii() or is_whole(piece)):
            self.length += len(piece)
            return (TextDelta(piece),)  # most chunks of most replies
        return self._take("text", piece)

    def reasoning(self, piece: str) -> Iterable[Event]:
        if self._open == "reasoning" and piece and not self._half and (piece.isascii() or is_whole(piece)):
            return (ReasoningDelta(piece),)
        return self._take("reasoning", piece)

    def close(self, *, signature: str | None = None, opaque: JsonValue = None) -> Iterator[Event]:
        """End what is open.

        A signature or an opaque block without open reasoning becomes separate reasoning.
        """
        if self._half:
            self._half = ""
            yield TextDelta(LONE) if self._open == "text" else ReasoningDelta(LONE)
        if self._open == "text":
            yield TextEnd(phase=self.phase)
        if self._open != "reasoning" and (signature is not None or opaque is not None):
            yield ReasoningStart()
            self._open = "reasoning"
        if self._open == "reasoning":
            yield ReasoningEnd(
                signature and join_halves(signature),
                self._wire,
                join_all(opaque),
                field_name=self.field_name,
            )
        self._open = None
        self.length = 0

    def item(self, kind: str, text: str, opaque: JsonValue) -> Iterator[Event]:
        """Add a provider's own item after closing what is open."""
        yield from self.close()
        yield ItemAdded(kind, join_halves(text), self._wire, join_all(opaque))

    def _take(self, voice: Voice, piece: str) -> Iterator[Event]:
        if not piece:
            return
        if self._open != voice:
            yield from self.close()
            self._open = voice
            yield TextStart() if voice == "text" else ReasoningStart()
        piece, self._half = split_half(self._half + piece)
        if piece:
            self.length += len(piece) if voice == "text" else 0
            yield TextDelta(piece) if voice == "text" else ReasoningDelta(piece)
