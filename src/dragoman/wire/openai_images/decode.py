"""Decode images: streamed with previews, or complete in JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, TypedDict

from pydantic import JsonValue

from dragoman.messages.endings import reason_of
from dragoman.messages.events import Event, FileAdded, FilePartial, MessageEnd, ProviderData
from dragoman.messages.message import File
from dragoman.messages.usage import Usage, counted, counts
from dragoman.wire.http_client.framing import DONE
from dragoman.wire.prose import read_json
from dragoman.wire.provider_errors import provider_error
from dragoman.wire.transport_errors import unfinished

NAME = "openai_images"

_BEGINNINGS = {"iVBOR": "png", "/9j/": "jpeg", "UklGR": "webp", "R0lGOD": "gif"}  # of base64


class ImageData(TypedDict, total=False):
    """One image of an answer, in one of two forms."""

    b64_json: str | None
    url: str | None
    revised_prompt: str | None
    output_format: str | None
    respect_moderation: bool | None  # xAI: False if the image was blocked


class ImagesDecoder:
    """One reply. `finish_word` is set once an image has come."""

    def __init__(self) -> None:
        self.finish_word: str | None = None
        self._usage: dict[str, Any] = {}
        self._made = 0
        self._filtered = 0

    def feed(self, frame: bytes) -> Iterable[Event]:
        if frame.startswith(DONE):
            return ()
        return self._read(read_json(frame))

    def whole(self, body: JsonValue) -> Iterable[Event] | None:
        data = body.get("data") if isinstance(body, dict) else None
        if not isinstance(body, dict) or not isinstance(data, list):
            return None
        self._usage = usage if isinstance(usage := body.get("usage"), dict) else {}
        self.finish_word = "stop"
        format = body.get("output_format")
        return self._each(data, format)

    @property
    def usage(self) -> Usage:
        """The usage known so far."""
        details = counts(self._usage.get("input_tokens_details"))
        usage = Usage.claimed(
            self._usage.get("input_tokens"),
            self._usage.get("output_tokens"),
            cached=details.get("cached_tokens"),
            cost=self._usage.get("cost"),
        )
        return replace(usage, images=self._made)

    def end(self) -> Iterator[Event]:
        if self.finish_word is None:
            raise unfinished()
        finish = "filter" if self._filtered and not self._made else "stop"
        yield MessageEnd(finish, self.usage, reason=reason_of(finish, "moderation"))

    def _read(self, event: dict[str, Any]) -> Iterator[Event]:
        if error := event.get("error"):
            raise provider_error(error)
        kind = str(event.get("type") or "")
        if kind.endswith(".partial_image"):
            if file := _file(event, event.get("output_format"), "image"):
                yield FilePartial(file, self._made)
        elif kind.endswith(".completed"):
            self.finish_word = "stop"
            self._usage = counted(event.get("usage"), self._usage)
            yield from self._add(event, event.get("output_format"))
        elif kind.endswith(".failed"):
            raise provider_error(event)

    def _each(self, data: list[Any], format: JsonValue) -> Iterator[Event]:
        """Yield one image after another, and drop each here once it was passed on."""
        data.reverse()
        while data:
            if isinstance(one := data.pop(), dict):
                yield from self._add(one, format)

    def _add(self, picture: Any, format: JsonValue) -> Iterator[Event]:
        one: ImageData = picture
        self._filtered += one.get("respect_moderation") is False
        if file := _file(one, one.get("output_format") or format, f"image-{self._made + 1}"):
            self._made += 1
            yield FileAdded(file)
        if prompt := one.get("revised_prompt"):
            yield ProviderData(NAME, {"revised_prompt": prompt})


def _file(picture: Any, format: JsonValue, name: str) -> File | None:
    one: ImageData = picture
    if data := one.pop("b64_json", None):
        if data.startswith("data:"):
            data = data.partition(",")[2]
        kind = next((kind for begin, kind in _BEGINNINGS.items() if data.startswith(begin)), None)
        kind = kind or (format if isinstance(format, str) else "png")
        return File(f"image/{kind}", url=f"data:image/{kind};base64,{data}", name=f"{name}.{kind}")
    if url := one.get("url"):
        kind = format if isinstance(format, str) else "png"
        return File(f"image/{kind}", url=url, name=f"{name}.{kind}")
    return None
