"""The options of models that make pictures, listen or speak: their words, and what each may be."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, TypeAdapter, with_config
from typing_extensions import TypedDict  # pydantic wants this one on Python 3.11

from dragoman.wire.options import Extra, check_options


@with_config(strict=True)
class ImageOptions(TypedDict, total=False):
    """Of pictures that are made or changed."""

    n: Annotated[int, Field(ge=1, le=10)]  # how many
    size: Annotated[str, Field(pattern=r"^(auto|\d{2,5}x\d{2,5})$")]  # 1024x1536, or auto
    aspect_ratio: Annotated[str, Field(pattern=r"^\d{1,2}:\d{1,2}$")]
    quality: Literal["auto", "low", "medium", "high", "standard", "hd"]
    background: Literal["auto", "transparent", "opaque"]
    format: Literal["png", "jpeg", "webp"]
    compression: Annotated[int, Field(ge=0, le=100)]
    moderation: Literal["auto", "low"]
    style: str
    seed: int
    partial_images: Annotated[int, Field(ge=0, le=3)]  # shown while one is made
    fidelity: Literal["low", "high"]  # how close a changed picture stays to the one it is made from
    mask: str  # the name of the attached file that says where a picture is to be changed


@with_config(strict=True)
class TranscriptionOptions(TypedDict, total=False):
    """Of what is written down. The text of the message, if any, is the prompt: names, spellings."""

    language: Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z]{2,4})?$")]
    temperature: Annotated[float, Field(ge=0, le=1)]
    timestamps: Literal["segment", "word"]


@with_config(strict=True)
class SpeechOptions(TypedDict, total=False):
    """Of what is spoken."""

    voice: str
    format: Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]
    speed: Annotated[float, Field(ge=0.25, le=4)]
    instructions: str  # how it is to sound


def check_media_options(options: Mapping[str, JsonValue], words: Any, *, model: str, extra: Extra) -> None:
    """BadRequest for an option that is neither one of the words nor `extra`, or has the wrong type."""
    check_options(options, model=model, words=words.__annotations__, extra=extra, types=_adapter(words))


def option_schemas() -> dict[str, JsonValue]:
    """The options of each type of model as a JSON schema, for whoever makes a form of them."""
    words = {
        "image-gen": ImageOptions,
        "image-edit": ImageOptions,
        "audio-stt": TranscriptionOptions,
        "audio-tts": SpeechOptions,
    }
    return {type: _adapter(one).json_schema() for type, one in words.items()}


@cache
def _adapter(words: Any) -> TypeAdapter[Any]:
    return TypeAdapter(words)
