"""Speak OpenAI's Images API, to make and to edit images, and that of imitators such as xAI."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pydantic import JsonValue

from dragoman.errors import BadRequest
from dragoman.messages.media import is_text, modality
from dragoman.messages.message import File
from dragoman.messages.request import Request
from dragoman.sentences import sentence
from dragoman.wire.endpoint import NO_QUIRKS, Endpoint, Quirks
from dragoman.wire.files.file_parts import NO_ATTACHMENTS, Attachments
from dragoman.wire.media.selection import select
from dragoman.wire.openai_images.decode import NAME, ImagesDecoder
from dragoman.wire.openai_images.encode import changes_a_picture, encode
from dragoman.wire.options import Extra, ImageOptions, check_media_options, refuse_together


@dataclass(slots=True)
class OpenAIImages:
    """The wire, for one provider and its quirks. Satisfies `wire.Wire` and `wire.MediaWire`."""

    quirks: Quirks = NO_QUIRKS
    name: str = NAME
    options: frozenset[str] = frozenset(ImageOptions.__annotations__)

    def select(self, request: Request) -> Request:
        return select(request, "image")

    def endpoint(self, request: Request, endpoint: Endpoint) -> Endpoint:
        changes = changes_a_picture(request)
        form = changes and not self.quirks.json_edits
        path = "images/edits" if changes else "images/generations"
        return replace(endpoint, path=path, query={}, form=form, framing="sse")

    def check_options(self, options: Mapping[str, JsonValue], *, model: str, extra: Extra) -> None:
        check_media_options(options, ImageOptions, model=model, extra=extra)
        if options.get("n") != 1:
            refuse_together(model, options, "n", "partial_images")
        if self.quirks.json_edits and options.get("mask") is not None:
            raise BadRequest(sentence("option.not_taken", name="mask", model=model))

    def encode(self, request: Request, attachments: Attachments = NO_ATTACHMENTS) -> dict[str, JsonValue]:
        return encode(request, attachments, quirks=self.quirks)

    def carries(self, file: File) -> bool:
        return modality(file) == "image" or is_text(file)

    def decoder(self, reply: str) -> ImagesDecoder:
        return ImagesDecoder()


WIRE = OpenAIImages
