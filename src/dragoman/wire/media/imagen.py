"""Use Google's Imagen, at the Gemini API and at Vertex: `:predict`, whose answer has all images together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import gcd
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, with_config
from typing_extensions import TypedDict  # pydantic requires this one on Python 3.11

from dragoman.errors import BadRequest
from dragoman.messages.endings import reason_of
from dragoman.messages.events import Event, FileAdded, MessageEnd, ProviderData
from dragoman.messages.media import is_media_type, is_text
from dragoman.messages.message import File
from dragoman.messages.request import Request
from dragoman.messages.usage import Usage
from dragoman.sentences import sentence
from dragoman.wire.endpoint import NO_QUIRKS, Endpoint, Quirks
from dragoman.wire.files.file_parts import NO_ATTACHMENTS, Attachments
from dragoman.wire.media.selection import prompt_of, select
from dragoman.wire.options import Extra, check_media_options, refuse_together, with_extra
from dragoman.wire.prose import read_json
from dragoman.wire.provider_errors import provider_error
from dragoman.wire.transport_errors import unfinished
from dragoman.wire.wire import Prose

NAME = "imagen"
RATIOS = ("1:1", "3:4", "4:3", "9:16", "16:9")
_LARGE = 1536  # pixels of an edge, above which the larger of the two sizes is used


@with_config(strict=True)
class ImagenOptions(TypedDict, total=False):
    """The options that Imagen has."""

    n: Annotated[int, Field(ge=1, le=4)]
    size: Annotated[str, Field(pattern=r"^(auto|\d{2,5}x\d{2,5})$")]
    aspect_ratio: Literal["1:1", "3:4", "4:3", "9:16", "16:9"]
    format: Literal["png", "jpeg"]
    compression: Annotated[int, Field(ge=0, le=100)]
    seed: int


class Prediction(TypedDict, total=False):
    """One image of an answer, or why it is missing."""

    bytesBase64Encoded: str | None
    mimeType: str | None
    prompt: str | None
    raiFilteredReason: str | None


@dataclass(slots=True)
class Imagen:
    """The wire. Satisfies `wire.Wire` and `wire.MediaWire`."""

    quirks: Quirks = NO_QUIRKS
    name: str = NAME
    options: frozenset[str] = frozenset(ImagenOptions.__annotations__)

    def select(self, request: Request) -> Request:
        return select(request, None)

    def endpoint(self, request: Request, endpoint: Endpoint) -> Endpoint:
        """Return the endpoint of a Gemini chat model, with another method."""
        path = f"{endpoint.path.rpartition(':')[0]}:predict"
        return replace(endpoint, path=path, query={}, framing="sse")

    def check_options(self, options: Mapping[str, JsonValue], *, model: str, extra: Extra) -> None:
        check_media_options(options, ImagenOptions, model=model, extra=extra)
        if options.get("size") not in (None, "auto"):
            refuse_together(model, options, "size", "aspect_ratio")
        if options.get("compression") is not None and options.get("format") != "jpeg":
            raise BadRequest(sentence("option.compression"))
        _shape(options)

    def encode(self, request: Request, attachments: Attachments = NO_ATTACHMENTS) -> dict[str, JsonValue]:
        options = request.options
        parameters: dict[str, JsonValue] = {
            "sampleCount": options.get("n") or 1,
            "includeRaiReason": True,
            **_shape(options),
        }
        if (seed := options.get("seed")) is not None:
            parameters |= {"seed": seed, "addWatermark": False}  # one excludes the other
        if (format := options.get("format")) is not None:
            output: dict[str, JsonValue] = {"mimeType": f"image/{format}"}
            if (compression := options.get("compression")) is not None:
                output["compressionQuality"] = compression
            parameters["outputOptions"] = output
        instances: list[JsonValue] = [{"prompt": prompt_of(request, attachments)}]
        return with_extra({"instances": instances, "parameters": parameters}, request.extra)

    def carries(self, file: File) -> bool:
        return is_text(file)

    def decoder(self, reply: str) -> ImagenDecoder:
        return ImagenDecoder()


class ImagenDecoder:
    """One reply. Images that a filter blocked are reported with its reason."""

    def __init__(self) -> None:
        self.finish_word: str | None = None
        self._prose = Prose(NAME)
        self._made = 0
        self._filtered: list[str] = []

    def feed(self, frame: bytes) -> Iterable[Event]:
        return self.whole(read_json(frame)) or ()

    def whole(self, body: JsonValue) -> Iterable[Event] | None:
        if not isinstance(body, dict):
            return None
        if error := body.get("error"):
            raise provider_error(error)
        predictions = body.get("predictions", [] if not body else None)  # an empty answer: all were filtered
        if not isinstance(predictions, list):
            return None
        self.finish_word = "stop"
        return self._each(predictions)

    @property
    def usage(self) -> Usage:
        """The usage known so far."""
        return Usage(images=self._made)

    def end(self) -> Iterator[Event]:
        if self.finish_word is None:
            raise unfinished()
        if self._made and self._filtered:
            count = len(self._filtered)
            missing = "One picture is" if count == 1 else f"{count} pictures are"
            yield from self._prose.text(f"{missing} missing: {' '.join(dict.fromkeys(self._filtered))}")
        yield from self._prose.close()
        finish = "stop" if self._made else "safety"
        reason = reason_of(finish, " ".join(dict.fromkeys(self._filtered)) or "all pictures were filtered")
        yield MessageEnd(finish, self.usage, reason=reason)

    def _each(self, predictions: list[Any]) -> Iterator[Event]:
        """Yield one image after another, and drop each here once it was passed on."""
        predictions.reverse()
        while predictions:
            if isinstance(one := predictions.pop(), dict):
                yield from self._add(one)

    def _add(self, prediction: Any) -> Iterator[Event]:
        one: Prediction = prediction
        if reason := one.get("raiFilteredReason"):
            self._filtered.append(reason)
        if data := one.pop("bytesBase64Encoded", None):
            claimed = one.get("mimeType") or ""
            type = claimed if claimed.startswith("image/") and is_media_type(claimed) else "image/png"
            self._made += 1
            name = f"image-{self._made}.{type.partition('/')[2]}"
            yield FileAdded(File(type, url=f"data:{type};base64,{data}", name=name))
        if prompt := one.get("prompt"):
            yield ProviderData(NAME, {"revised_prompt": prompt})


def _shape(options: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the aspect ratio and size. Imagen has five ratios and two sizes. BadRequest for any other."""
    shape: dict[str, JsonValue] = {}
    size = options.get("size")
    if isinstance(size, str) and size != "auto":
        width, height = map(int, size.split("x"))
        divisor = gcd(width, height) or 1
        ratio = f"{width // divisor}:{height // divisor}"
        if ratio not in RATIOS:
            raise BadRequest(sentence("imagen.size", ratios=", ".join(RATIOS), size=size))
        shape = {"aspectRatio": ratio, "sampleImageSize": "2K" if max(width, height) > _LARGE else "1K"}
    if (wanted := options.get("aspect_ratio")) is not None:
        shape["aspectRatio"] = wanted
    return shape
