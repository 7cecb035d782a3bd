"""Speak Amazon Bedrock's Converse: one protocol for the models of all vendors on Bedrock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from dragoman.messages.message import File
from dragoman.messages.request import Request
from dragoman.wire.bedrock_converse.decode import ConverseDecoder
from dragoman.wire.bedrock_converse.encode import OPTIONS, check, encode
from dragoman.wire.bedrock_converse.media import carries
from dragoman.wire.bedrock_converse.shapes import NAME
from dragoman.wire.endpoint import NO_QUIRKS, Quirks
from dragoman.wire.files.file_parts import NO_ATTACHMENTS, Attachments
from dragoman.wire.options import Extra, check_options, check_tool_options


@dataclass(slots=True)
class BedrockConverse:
    """The wire, for one provider and its quirks. Satisfies `wire.Wire`."""

    quirks: Quirks = NO_QUIRKS
    name: str = NAME
    options: frozenset[str] = OPTIONS

    def check_options(self, options: Mapping[str, JsonValue], *, model: str, extra: Extra) -> None:
        check_options(options, model=model, words=self.options, extra=extra)
        check_tool_options(options, model=model, quirks=self.quirks)
        check(options, model)

    def encode(self, request: Request, attachments: Attachments = NO_ATTACHMENTS) -> dict[str, JsonValue]:
        return encode(request, attachments, quirks=self.quirks)

    def carries(self, file: File) -> bool:
        return carries(file)

    def decoder(self, reply: str) -> ConverseDecoder:
        return ConverseDecoder(reply)


WIRE = BedrockConverse
