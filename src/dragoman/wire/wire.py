"""The interfaces of this room: a `Model` answers requests with events; a `Wire` is one provider protocol.

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
    """Decodes one reply, frame by frame. `end` closes whatever is open and says how the reply finished.

    It raises ProviderError where the wire always says that a reply is over, and this one did not. Where an
    event says so it may be `over`: nothing of the reply comes after that, also if the connection stays open.
    """

    finish_word: str | None
    """The provider's own word for how the reply ended, once it has come."""

    def feed(self, frame: bytes) -> Iterable[Event]: ...

    def end(self) -> Iterator[Event]: ...


@runtime_checkable
class ReadsWhole(Protocol):
    """A decoder that can read a reply of one JSON body: some servers do not stream, whatever is asked."""

    def whole(self, body: JsonValue) -> Iterable[Event] | None:
        """The events of it, without those of `end`; None if it is no reply."""


@runtime_checkable
class BreaksOff(Protocol):
    """A decoder that holds back what can be used also without its end, such as a sound."""

    def break_off(self) -> Iterable[Event]:
        """What it holds of a reply that reached a limit or broke off. After that, nothing."""


class Wire(Protocol):
    """One provider protocol: a body for a request, a decoder for its reply."""

    name: str
    options: frozenset[str]
    """The options it has a word for; of those in `request.options` it encodes no others."""

    def check_options(self, options: Mapping[str, JsonValue], *, model: str, extra: Extra) -> None:
        """R9: BadRequest for an option that would not get into the body as it is: an unknown one, one of the
        wrong type, one that the model does not take, or not together with another."""

    def encode(self, request: Request, attachments: Attachments = NO_ATTACHMENTS) -> dict[str, JsonValue]: ...

    def carries(self, file: File) -> bool:
        """Whether the bytes of such a file go into the body, so that they have to be read."""

    def decoder(self, reply: str) -> Decoder:
        """A decoder for the reply with this id; the calls in it are named after it."""


@runtime_checkable
class MediaWire(Protocol):
    """What a wire has beside the rest if its models do not talk, but make pictures, listen or speak."""

    def select(self, request: Request) -> Request:
        """Of a whole conversation, what is sent: the words and files that are wanted now."""

    def endpoint(self, request: Request, endpoint: Endpoint) -> Endpoint:
        """Where that goes at this provider, and as what: of such models each task has its own address."""


class Model(Protocol):
    """Something that answers. `name` is how people write it: `provider/model`.

    One that does something else than talk has a `type` (`messages/media.py`). One that knows which files it
    cannot take has a method `check_files(files)`, which raises BadRequest; and one that knows what a whole
    message must have, `check_message(parts, earlier)`.
    """

    name: str
    context: int | None  # tokens it can take, where known

    @property
    def variant(self) -> Mapping[str, JsonValue]:
        """Options of the variant that was chosen with its name: over an agent's, under a conversation's."""
        return {}

    def check_options(self, options: Mapping[str, JsonValue]) -> None:
        """BadRequest where a request with these options would be refused before it is sent."""

    def stream(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        """The reply's events, in batches as they arrive; the last is a `MessageEnd`. Raises ProviderError.

        A `StepRetry`, a `StepModel` or a `Notice` may come before them, and `ProviderData` anywhere: these
        are no parts of the reply.
        """


def begins_reply(events: Iterable[Event]) -> bool:
    """Whether some of these are part of a reply: after one, nothing may be asked again."""
    return not all(isinstance(event, StepRetry | StepModel | ProviderData | Notice) for event in events)


def call_id(reply: str, position: int) -> str:
    """Our own id for the call at this position of a reply. Providers' ids repeat, or are missing."""
    return f"call_{reply.removeprefix('msg_')}_{position}"


class Prose:
    """Text and reasoning as they alternate: sees to it that each starts once and ends before the other."""

    def __init__(self, wire: str) -> None:
        self._wire = wire
        self._open: Voice | None = None
        self._half = ""  # of a character, at the end of the last piece
        self.length = 0  # of the text that is open, in characters: where its sources belong
        self.field_name: str | None = None  # under which reasoning comes, where there are several
        self.phase: str | None = None  # of the text that is open or comes next

    def text(self, piece: str) -> Iterable[Event]:
        if self._open == "text" and piece and not self._half and (piece.isascii() or is_whole(piece)):
            self.length += len(piece)
            return (TextDelta(piece),)  # most pieces of most replies
        return self._take("text", piece)

    def reasoning(self, piece: str) -> Iterable[Event]:
        if self._open == "reasoning" and piece and not self._half and (piece.isascii() or is_whole(piece)):
            return (ReasoningDelta(piece),)
        return self._take("reasoning", piece)

    def close(self, *, signature: str | None = None, opaque: JsonValue = None) -> Iterator[Event]:
        """End what is open. A signature or an opaque block without open reasoning makes one of its own."""
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
        """Something of the provider's own, behind what is open."""
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
