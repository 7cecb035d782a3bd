"""Anthropic's Messages, and the servers that imitate them."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from dragoman.messages.parts import File
from dragoman.messages.request import Request
from dragoman.wire.anthropic_messages.decode import MessagesDecoder
from dragoman.wire.anthropic_messages.encode import OPTIONS, encode
from dragoman.wire.anthropic_messages.history import carries
from dragoman.wire.anthropic_messages.shapes import NAME
from dragoman.wire.files import NO_ATTACHMENTS, Attachments
from dragoman.wire.quirks import NO_QUIRKS, Quirks


@dataclass(slots=True)
class AnthropicMessages:
    """The wire, for one provider and its quirks. Satisfies `wire.Wire`."""

    quirks: Quirks = NO_QUIRKS
    name: str = NAME
    options: frozenset[str] = OPTIONS

    def encode(self, request: Request, attachments: Attachments = NO_ATTACHMENTS) -> dict[str, JsonValue]:
        return encode(request, attachments, quirks=self.quirks)

    def carries(self, file: File) -> bool:
        return carries(file)

    def decoder(self, reply: str) -> MessagesDecoder:
        return MessagesDecoder(reply)


WIRE = AnthropicMessages
