"""Google's Gemini, by its own API: `streamGenerateContent`."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from dragoman.messages.parts import File
from dragoman.messages.request import Request
from dragoman.wire.files import NO_ATTACHMENTS, Attachments
from dragoman.wire.gemini.decode import GeminiDecoder
from dragoman.wire.gemini.encode import OPTIONS, encode
from dragoman.wire.gemini.history import carries
from dragoman.wire.gemini.shapes import NAME
from dragoman.wire.quirks import NO_QUIRKS, Quirks


@dataclass(slots=True)
class Gemini:
    """The wire, for one provider and its quirks. Satisfies `wire.Wire`."""

    quirks: Quirks = NO_QUIRKS
    name: str = NAME
    options: frozenset[str] = OPTIONS

    def encode(self, request: Request, attachments: Attachments = NO_ATTACHMENTS) -> dict[str, JsonValue]:
        return encode(request, attachments, quirks=self.quirks)

    def carries(self, file: File) -> bool:
        return carries(file)

    def decoder(self, reply: str) -> GeminiDecoder:
        return GeminiDecoder(reply)


WIRE = Gemini
