"""Google's Gemini, by its own API: `streamGenerateContent`."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from dragoman.messages.request import Request
from dragoman.wire.files import Load, no_blobs
from dragoman.wire.gemini.decode import GeminiDecoder
from dragoman.wire.gemini.encode import encode
from dragoman.wire.gemini.shapes import NAME
from dragoman.wire.quirks import NO_QUIRKS, Quirks


@dataclass(slots=True)
class Gemini:
    """The wire, for one provider and its quirks. Satisfies `wire.Wire`."""

    quirks: Quirks = NO_QUIRKS
    load: Load = no_blobs
    name: str = NAME

    def encode(self, request: Request) -> dict[str, JsonValue]:
        return encode(request, quirks=self.quirks, load=self.load)

    def decoder(self, reply: str) -> GeminiDecoder:
        return GeminiDecoder(reply)


WIRE = Gemini
