"""OpenAI's Chat Completions, and the many servers that imitate them."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from dragoman.messages.request import Request
from dragoman.wire.files import Load, no_blobs
from dragoman.wire.openai_chat.decode import ChatDecoder
from dragoman.wire.openai_chat.encode import encode
from dragoman.wire.openai_chat.shapes import NAME
from dragoman.wire.quirks import NO_QUIRKS, Quirks


@dataclass(slots=True)
class OpenAIChat:
    """The wire, for one provider and its quirks. Satisfies `wire.Wire`."""

    quirks: Quirks = NO_QUIRKS
    load: Load = no_blobs
    name: str = NAME

    def encode(self, request: Request) -> dict[str, JsonValue]:
        return encode(request, quirks=self.quirks, load=self.load)

    def decoder(self, reply: str) -> ChatDecoder:
        return ChatDecoder(reply)


WIRE = OpenAIChat
