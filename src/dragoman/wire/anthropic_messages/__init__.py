"""Anthropic's Messages, and the servers that imitate them."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from dragoman.messages.request import Request
from dragoman.wire.anthropic_messages.decode import MessagesDecoder
from dragoman.wire.anthropic_messages.encode import encode
from dragoman.wire.anthropic_messages.shapes import NAME
from dragoman.wire.files import Load, no_blobs
from dragoman.wire.quirks import NO_QUIRKS, Quirks


@dataclass(slots=True)
class AnthropicMessages:
    """The wire, for one provider and its quirks. Satisfies `wire.Wire`."""

    quirks: Quirks = NO_QUIRKS
    load: Load = no_blobs
    name: str = NAME

    def encode(self, request: Request) -> dict[str, JsonValue]:
        return encode(request, quirks=self.quirks, load=self.load)

    def decoder(self, reply: str) -> MessagesDecoder:
        return MessagesDecoder(reply)


WIRE = AnthropicMessages
