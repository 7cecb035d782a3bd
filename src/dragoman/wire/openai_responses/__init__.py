"""OpenAI's Responses, without anything stored on their side: every request carries its whole history."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from dragoman.messages.request import Request
from dragoman.wire.files import Load, no_blobs
from dragoman.wire.openai_responses.decode import ResponsesDecoder
from dragoman.wire.openai_responses.encode import encode
from dragoman.wire.openai_responses.shapes import NAME
from dragoman.wire.quirks import NO_QUIRKS, Quirks


@dataclass(slots=True)
class OpenAIResponses:
    """The wire, for one provider and its quirks. Satisfies `wire.Wire`."""

    quirks: Quirks = NO_QUIRKS
    load: Load = no_blobs
    name: str = NAME

    def encode(self, request: Request) -> dict[str, JsonValue]:
        return encode(request, quirks=self.quirks, load=self.load)

    def decoder(self, reply: str) -> ResponsesDecoder:
        return ResponsesDecoder(reply)


WIRE = OpenAIResponses
