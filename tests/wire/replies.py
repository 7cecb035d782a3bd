"""Decode a recorded stream, and collect the result of its reader."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

from dragoman.errors import ProviderError
from dragoman.messages.events import (
    CallInputDelta,
    CallInputEnd,
    CallInputStart,
    Event,
    MessageEnd,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
)
from dragoman.messages.fold import Draft
from dragoman.messages.message import Message, Part
from dragoman.wire.endpoint import ENDPOINTS
from dragoman.wire.http_client.framing import FRAMINGS
from dragoman.wire.wire import Decoder, Wire
from tests.wire.aws_frames import named

UNFINISHED = "the stream ended before the reply was complete"


@dataclass
class Reply:
    """Everything a stream sent, until it ended or broke off with `error`."""

    events: list[Event] = field(default_factory=list)
    error: ProviderError | None = None
    finish_word: str | None = None

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def reasoning(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ReasoningDelta))

    @property
    def calls(self) -> list[CallInputEnd]:
        return [event for event in self.events if isinstance(event, CallInputEnd)]

    @property
    def provider_ids(self) -> list[str | None]:
        return [event.provider_id for event in self.events if isinstance(event, CallInputStart)]

    @property
    def end(self) -> MessageEnd:
        (end,) = (event for event in self.events if isinstance(event, MessageEnd))
        return end

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the parts as they are stored."""
        draft = Draft(Message("msg_r", "conversation", None, "assistant", (), model="acme/model"))
        for event in self.events:
            draft.apply(event)
        return draft.message.parts


def sse(*frames: object) -> bytes:
    """A stream of these: JSON values, or bytes as they are."""
    data = (frame if isinstance(frame, bytes) else to_json(frame) for frame in frames)
    return b"".join(b"data: " + frame + b"\n\n" for frame in data)


def framed(wire: str, *frames: dict[str, Any]) -> list[bytes]:
    """Each frame as the provider of a wire sends it. JSON in ASCII, as most servers write it."""
    if ENDPOINTS[wire].framing == "aws_events":
        return [named(frame) for frame in frames]
    return [b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in frames]


def decode(wire: Wire, pieces: Iterable[bytes]) -> Reply:
    """Read a stream that comes in these pieces, as `wire/http_client/exchange.py` does."""
    splitter, decoder = FRAMINGS[ENDPOINTS[wire.name].framing](), wire.decoder("msg_r")
    reply = Reply()
    try:
        for piece in pieces:
            _feed(reply, decoder, splitter.feed(piece))
        _feed(reply, decoder, splitter.end())
        reply.events += decoder.end()
    except ProviderError as error:
        reply.error = error
    reply.finish_word = decoder.finish_word
    assert_in_order(reply.events)
    return reply


def _feed(reply: Reply, decoder: Decoder, frames: Iterable[bytes]) -> None:
    for frame in frames:
        for event in decoder.feed(frame):
            reply.events.append(event)


def assert_in_order(events: list[Event]) -> None:
    """Every start has its end, no piece comes outside of them, and text and reasoning never overlap."""
    prose: type | None = None
    open_calls: set[str] = set()
    ended_calls: set[str] = set()
    for event in events:
        match event:
            case TextStart() | ReasoningStart():
                assert prose is None
                prose = type(event)
            case TextDelta() | TextEnd():
                assert prose is TextStart
            case ReasoningDelta() | ReasoningEnd():
                assert prose is ReasoningStart
            case CallInputStart():
                assert event.call not in open_calls | ended_calls
                open_calls.add(event.call)
            case CallInputDelta():
                assert event.call in open_calls
            case CallInputEnd():
                open_calls.remove(event.call)
                ended_calls.add(event.call)
            case MessageEnd():
                assert prose is None
                assert not open_calls
        if isinstance(event, TextEnd | ReasoningEnd):
            prose = None
