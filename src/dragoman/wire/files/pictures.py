"""Define a provider's limits for files, and shrink images that exceed them.

This needs Pillow, which is part of `dragoman[media]`. Without it, an image is sent unchanged.
"""

from __future__ import annotations

import asyncio
import io
import re
import socket
from binascii import b2a_base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from dragoman.errors import ProviderError
from dragoman.messages.events import FileAdded
from dragoman.messages.message import File
from dragoman.wire.http_client.network import is_public

if TYPE_CHECKING:
    from PIL.Image import Image


MOST_PIXELS = 100_000_000  # An image with more pixels is not decoded: it may be a decompression bomb.
REPLY = 128_000_000  # bytes of a whole reply: more than any model sends, and little enough for memory
TOGETHER = 64 << 20  # bytes of all files of a request, if the provider's limit is unknown
_SMALLER = 0.75  # of its edge, if an image still has too many bytes
_ATTEMPTS = 8
_FORMATS = ("PNG", "JPEG", "WEBP")  # without GIF, whose animation would be lost

_TOO_LARGE = re.compile(
    r"image.{0,80}(exceed|too large|too big|maximum|dimension)|(exceed|too large).{0,80}image", re.IGNORECASE
)


@dataclass(slots=True, frozen=True)
class FileLimits:
    """A provider's limits for the files of a request. None if unknown."""

    picture_edge: int | None = None  # pixels of the longer side
    picture_bytes: int | None = None
    together: int = TOGETHER  # bytes of all files
    upload_above: int | None = None  # bytes from which a file is uploaded once, and named by its ID
    reply: int = REPLY  # bytes of a reply, and of a file that it links to


NO_LIMITS = FileLimits()


def has_pillow() -> bool:
    return find_spec("PIL") is not None


def is_too_large(message: str) -> bool:
    """Return whether a provider refuses an image for its size."""
    return _TOO_LARGE.search(message) is not None


def fit_picture(data: bytes, limits: FileLimits) -> bytes:
    """Return the image, shrunk if necessary, in the same format.

    An unreadable image stays unchanged: its provider reports what is wrong with it.
    """
    if limits.picture_edge is None or not has_pillow():
        return data
    from PIL import Image, UnidentifiedImageError

    # the latter if warnings are errors
    bombs = (Image.DecompressionBombError, Image.DecompressionBombWarning)
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as picture:
            fits = max(picture.size) <= limits.picture_edge and not _too_many(data, limits)
            pixels = picture.size[0] * picture.size[1]
            moves = picture.format != "MPO" and getattr(picture, "n_frames", 1) > 1
            if fits or pixels > MOST_PIXELS or moves:
                return data
            return _smaller(picture, data, limits.picture_edge, limits)
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, *bombs):
        return data


def _smaller(picture: Image, data: bytes, edge: int, limits: FileLimits) -> bytes:
    from PIL import ImageOps

    format, smaller = picture.format or "PNG", data
    if format == "MPO":  # a JPEG of a phone, with a preview or a gain map after it
        format = "JPEG"
    edge = min(edge, max(picture.size))
    if picture.mode.startswith("I;16"):  # A 16-bit grayscale image cannot be resized.
        picture = picture.convert("I").point(lambda grey: grey * (1 / 256)).convert("L")
    picture.thumbnail((edge, edge))  # A JPEG is decoded at a reduced size.
    upright = ImageOps.exif_transpose(picture)
    for _ in range(_ATTEMPTS):
        out = io.BytesIO()
        upright.save(out, format, **({} if format == "PNG" else {"quality": 90}))
        smaller = out.getvalue()
        if not _too_many(smaller, limits):
            break
        edge = max(1, int(edge * _SMALLER))
        upright.thumbnail((edge, edge))
    return smaller


def _too_many(data: bytes, limits: FileLimits) -> bool:
    return limits.picture_bytes is not None and len(data) > limits.picture_bytes


# Download images that a provider links to: such links expire within an hour.


SECONDS = 60.0
_BEGINNINGS = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"RIFF": "webp", b"GIF8": "gif"}

Get: TypeAlias = Callable[[str], Awaitable[bytes]]


async def fetch_made(event: FileAdded, base_url: str, get: Get) -> str | None:
    """Put the bytes of such a file into the event. If that fails, keep the URL and return the problem.

    A provider must not make us read what only we can reach. So the URL must be on the public internet, or at
    the host that receives the request anyway.
    """
    if (event.file.url or "").startswith(("http://", "https://")):
        try:
            async with asyncio.timeout(SECONDS):
                event.file = await _fetched(event.file, base_url, get)
        except ProviderError as error:
            return ". ".join(filter(None, (error.message, error.hint)))
        except (OSError, ValueError) as error:  # TimeoutError is an OSError
            return str(error) or f"it was not read within {SECONDS:g} s"
    return None


async def _fetched(file: File, base_url: str, get: Get) -> File:
    url = file.url or ""
    if _origin(url) != _origin(base_url) and not await _is_public(url):
        return file
    data = await get(url)
    kind = next((kind for begin, kind in _BEGINNINGS.items() if data.startswith(begin)), None)
    type = f"image/{kind}" if kind else file.media_type
    coded = await asyncio.to_thread(b2a_base64, data, newline=False)
    name = f"{(file.name or 'image').rpartition('.')[0]}.{type.partition('/')[2]}"
    return replace(file, media_type=type, name=name, url=f"data:{type};base64,{coded.decode('ascii')}")


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


async def _is_public(url: str) -> bool:
    parts = urlsplit(url)
    if parts.scheme != "https" or parts.hostname is None:
        return False
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_STREAM)
    return bool(found) and all(is_public(str(one[4][0])) for one in found)
