"""Amazon Bedrock's Converse: one protocol for the models of all the houses that Bedrock serves."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from dragoman.messages.parts import File
from dragoman.messages.request import Request
from dragoman.wire.bedrock_converse.decode import ConverseDecoder
from dragoman.wire.bedrock_converse.encode import OPTIONS, encode
from dragoman.wire.bedrock_converse.media import carries
from dragoman.wire.bedrock_converse.shapes import NAME
from dragoman.wire.files import NO_ATTACHMENTS, Attachments
from dragoman.wire.quirks import NO_QUIRKS, Quirks


@dataclass(slots=True)
class BedrockConverse:
    """The wire, for one provider and its quirks. Satisfies `wire.Wire`."""

    quirks: Quirks = NO_QUIRKS
    name: str = NAME
    options: frozenset[str] = OPTIONS

    def encode(self, request: Request, attachments: Attachments = NO_ATTACHMENTS) -> dict[str, JsonValue]:
        return encode(request, attachments, quirks=self.quirks)

    def carries(self, file: File) -> bool:
        return carries(file)

    def decoder(self, reply: str) -> ConverseDecoder:
        return ConverseDecoder(reply)


WIRE = BedrockConverse
