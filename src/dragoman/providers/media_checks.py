"""Check what media models are sent, before it is stored, and compute what they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from dragoman.errors import BadRequest
from dragoman.messages.media import IN_WORDS, Modality, ModelType, is_text, modality, parse_data_url
from dragoman.messages.message import File, Part, Text
from dragoman.messages.request import Request
from dragoman.messages.usage import Usage
from dragoman.providers.catalog_tables import UnitPrices
from dragoman.sentences import sentence
from dragoman.wire.media.selection import last_said, latest_files
from dragoman.wire.openai_images.encode import is_mask

Others: TypeAlias = Callable[[ModelType], Sequence[str]]
"""The models of a type that can be asked here, by name."""

MOST_NAMED = 3

_DOES: dict[ModelType, str] = {
    "image-gen": sentence("media.makes"),
    "image-edit": sentence("media.changes"),
    "audio-stt": sentence("media.hears"),
    "audio-tts": sentence("media.speaks"),
}
_INSTEAD: dict[tuple[ModelType, Modality], ModelType] = {
    ("image-gen", "image"): "image-edit",
    ("image-gen", "audio"): "audio-stt",
    ("image-edit", "audio"): "audio-stt",
    ("audio-stt", "image"): "image-edit",
    ("audio-tts", "audio"): "audio-stt",
    ("audio-tts", "image"): "image-edit",
}


def check_media_message(
    name: str,
    type: ModelType,
    *,
    takes: Sequence[Modality],
    parts: Sequence[Part],
    earlier: Sequence[Sequence[Part]],
    others: Others,
) -> None:
    """Raise BadRequest if a model of this type cannot use such a message (M2).

    `earlier` are the messages before it, the newest first.
    """
    files = [part for part in parts if isinstance(part, File)]
    for file in files:
        if (kind := modality(file)) not in (*takes, "text"):
            instead = _INSTEAD.get((type, kind))
            hint = (
                could_instead(instead, others)
                if instead is not None
                else sentence("media.leave_out", takes=IN_WORDS[kind])
            )
            raise BadRequest(
                sentence(
                    "media.not_shown",
                    name=name,
                    does=_DOES[type],
                    file=file.name or "this file",
                    media_type=file.media_type,
                    hint=hint,
                )
            )
        if kind != "text" and file.blob is None and parse_data_url(file.url or "") is None:
            raise BadRequest(sentence("file.only_address", file=file.name or file.url))
    if type == "audio-stt":
        sounds = [file for file in files if modality(file) == "audio"] or latest_files(earlier, "audio")
        if not sounds:
            raise BadRequest(sentence("media.no_sound", name=name, does=_DOES[type]))
        if len(sounds) > 1:
            raise BadRequest(sentence("sound.several", name=name, count=len(sounds)))
        return
    if type == "image-edit" and not _pictures(files) and not _pictures(latest_files(earlier, "image")):
        raise BadRequest(
            sentence(
                "media.no_picture", name=name, does=_DOES[type], instead=could_instead("image-gen", others)
            )
        )
    if not any(part.text.strip() if isinstance(part, Text) else is_text_file(part) for part in parts):
        raise BadRequest(sentence("media.missing", name=name, does=_DOES[type], missing=_MISSING[type]))


_MISSING: dict[ModelType, str] = {
    "image-gen": sentence("media.say_what_shows"),
    "image-edit": sentence("media.say_what_changes"),
    "audio-tts": sentence("media.write_what_is_spoken"),
}


def could_instead(type: ModelType, others: Others) -> str:
    """Return which model here could do it, or how to add such a model."""
    names = list(others(type))[:MOST_NAMED]
    if names:
        return sentence("media.could", names=" or ".join(names), does=_DOES[type])
    return sentence("media.none", does=_DOES[type], type=type)


def is_text_file(part: Part) -> bool:
    return isinstance(part, File) and is_text(part)


def _pictures(files: Sequence[File]) -> list[File]:
    """Return the images that are not a mask of another."""
    images = [file for file in files if modality(file) == "image"]
    return images if len(images) < 2 else [file for file in images if not is_mask(file)]


# ── costs ─────────────────────────────────────────────────────────────────────────────────────────


def measured(usage: Usage, type: ModelType, request: Request) -> Usage:
    """Return the usage with what only the request shows: providers do not count the spoken characters."""
    if type != "audio-tts" or usage.characters:
        return usage
    texts = [part.text for part in last_said(request.messages) if isinstance(part, Text)]
    return replace(usage, characters=sum(map(len, [*texts, *request.texts])))


def unit_cost(usage: Usage, prices: UnitPrices) -> float | None:
    """Return what a reply costs by these measures. None if one of them has no price here.

    Tokens count if they have a price. Cached tokens cost the same as others, unless they have a separate
    price.
    """
    prices = {**prices}
    measures = {
        "image": float(usage.images),
        "minute": usage.seconds / 60,
        "million_characters": usage.characters / 1e6,
    }
    if {"million_input", "million_output"} & prices.keys():
        prices.setdefault("million_cached", prices.get("million_input", 0.0))
        measures["million_input"] = (usage.input - usage.cached) / 1e6
        measures["million_cached"] = usage.cached / 1e6
        measures["million_output"] = usage.output / 1e6
    paid = {name: amount for name, amount in measures.items() if amount}
    known = {name: price for name, price in prices.items() if isinstance(price, float | int)}
    if not paid or not known.keys() >= paid.keys():
        return None
    return sum(amount * known[name] for name, amount in paid.items())
