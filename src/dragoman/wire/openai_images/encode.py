"""Build the body of an image request. Pure: the bytes of files are in `attachments`."""

from __future__ import annotations

import re
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.errors import BadRequest
from dragoman.messages.media import media_type
from dragoman.messages.message import File
from dragoman.messages.request import Request
from dragoman.sentences import sentence
from dragoman.wire.endpoint import NO_QUIRKS, Quirks
from dragoman.wire.files.file_parts import NO_ATTACHMENTS, Attachments, address_of, base64_of
from dragoman.wire.http_client.body import form_file
from dragoman.wire.media.selection import files_in, prompt_of
from dragoman.wire.options import with_extra

Body: TypeAlias = dict[str, JsonValue]

PARTIALS = 2  # previews of an image, unless an option sets their number
_STREAMS = re.compile(r"gpt-image|chatgpt-image")  # models that stream, and always answer in base64
_MASK = re.compile(r"(?:.*[-_ .])?mask\.\w+", re.IGNORECASE)

_SAME = ("n", "size", "aspect_ratio", "quality", "background", "moderation", "style", "seed")
_RENAMED = {"format": "output_format", "compression": "output_compression", "fidelity": "input_fidelity"}


def encode(
    request: Request, attachments: Attachments = NO_ATTACHMENTS, *, quirks: Quirks = NO_QUIRKS
) -> Body:
    options = request.options
    body: Body = {"model": request.model, "prompt": prompt_of(request, attachments)}
    body |= {name: options[name] for name in _SAME if options.get(name) is not None}
    body |= {theirs: options[ours] for ours, theirs in _RENAMED.items() if options.get(ours) is not None}
    streams, partials = _STREAMS.search(request.model) is not None, options.get("partial_images")
    if not streams and quirks.image_data:
        body["response_format"] = quirks.image_data
    if partials is not None or (streams and options.get("n", 1) == 1):  # several images cannot be streamed
        body |= {"stream": True, "partial_images": PARTIALS if partials is None else partials}
    if changes_a_picture(request):
        body |= _pictures(request, attachments, quirks)
    elif (mask := options.get("mask")) is not None:
        raise BadRequest(sentence("mask.unknown", wanted=mask))
    return with_extra(body, request.extra)


def changes_a_picture(request: Request) -> bool:
    return bool(files_in(request, "image"))


def is_mask(file: File, wanted: JsonValue = None) -> bool:
    """Return whether an image is a mask for an edit: by the name that an option gives, or its own."""
    if isinstance(wanted, str):
        return file.name == wanted
    return _MASK.fullmatch(file.name or "") is not None


def _pictures(request: Request, attachments: Attachments, quirks: Quirks) -> Body:
    wanted = request.options.get("mask")
    files = files_in(request, "image")
    masks = [file for file in files if is_mask(file, wanted)] if len(files) > 1 or wanted else []
    pictures = [file for file in files if file not in masks]
    if wanted and not masks:
        raise BadRequest(sentence("mask.unknown", wanted=wanted))
    if not pictures:
        raise BadRequest(sentence("mask.no_picture"))
    if len(masks) > 1:
        raise BadRequest(sentence("mask.several"))
    if masks and quirks.json_edits:
        raise BadRequest(sentence("mask.none_taken", model=request.model, mask=masks[0].name))
    if quirks.json_edits:
        images: list[JsonValue] = [
            {"type": "image_url", "url": address_of(file, attachments)} for file in pictures
        ]
        return {"image": images[0]} if len(images) == 1 else {"images": images}
    coded: list[JsonValue] = [_coded(file, attachments, f"image-{n}") for n, file in enumerate(pictures, 1)]
    body: Body = {"image": coded[0]} if len(coded) == 1 else {"image[]": coded}
    if masks:
        body["mask"] = _coded(masks[0], attachments, "mask")
    return body


def _coded(file: File, attachments: Attachments, name: str) -> Body:
    base64 = base64_of(file, attachments)
    if base64 is None:
        raise BadRequest(sentence("picture.only_address", file=file.name or "the picture"))
    type = media_type(file)
    return form_file(file.name or f"{name}.{type.partition('/')[2]}", type, base64)
