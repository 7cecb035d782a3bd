"""Fetches pictures that a provider names by an address: such an address is gone within the hour."""

from __future__ import annotations

import asyncio
import socket
from binascii import b2a_base64
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias
from urllib.parse import urlsplit

from dragoman.errors import ProviderError
from dragoman.messages.events import FileAdded
from dragoman.messages.message import File
from dragoman.wire.public_address import is_public

SECONDS = 60.0
_BEGINNINGS = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"RIFF": "webp", b"GIF8": "gif"}

Get: TypeAlias = Callable[[str], Awaitable[bytes]]


async def fetch_made(event: FileAdded, base_url: str, get: Get) -> str | None:
    """Put the bytes of such a file into the event. If that fails, the address stays, and the problem is
    returned.

    A provider must not make us read what only we can reach: the address is on the open internet, or at the
    host that is asked anyway.
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
