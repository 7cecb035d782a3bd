"""The bytes of attachments and long outputs, addressed by their content: equal bytes are stored once."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Protocol

from dragoman.errors import NotFound, Unreadable

PIECE = 3 << 17  # bytes that are read at a time: nobody waits long for one, and it is whole in base64
_BLOCK = 10 * PIECE  # bytes that are fetched at a time, where each time takes a while

_KEY = re.compile(r"[0-9a-f]{64}")


class Blobs(Protocol):
    """Bytes under the SHA-256 of their content. `tests/store/conformance` tests any implementation."""

    async def put(self, data: bytes) -> str:
        """Store them, whole or not at all, and return their key. Putting them again keeps them fresh."""

    async def put_pieces(self, pieces: AsyncIterable[bytes]) -> tuple[str, int]:
        """The same for bytes that are still arriving: their key, and how many there were."""

    async def read(self, key: str) -> bytes:
        """NotFound where there are none; Unreadable where they are not those that were put there."""

    async def size(self, key: str) -> int:
        """How many there are. NotFound where there are none."""

    def pieces(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Those from `start` to before `end`, bit by bit, for whoever cannot hold them all. Where all are
        read, Unreadable comes before the last piece does: what was altered is never given out whole."""

    async def delete(self, key: str, *, unused_for: float = 0.0) -> bool:
        """Remove them, unless somebody put them within so many seconds. Whether they are gone."""

    def keys(self, *, since: float = 0.0) -> AsyncIterator[str]:
        """The key of everything that was put there since then, in no order."""


def key_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def joined(pieces: AsyncIterable[bytes]) -> bytes:
    """All of them, for a place that takes bytes only as a whole."""
    held = [piece async for piece in pieces]
    return await asyncio.to_thread(b"".join, held)


async def in_pieces(data: bytes, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
    """Bytes that are at hand, bit by bit."""
    view = memoryview(data)[start:end]
    for at in range(0, len(view), PIECE):
        yield bytes(view[at : at + PIECE])
        await asyncio.sleep(0)  # a reader who is quick would not let anybody else in between


async def fetched_in_pieces(
    key: str, size: int, start: int, end: int | None, fetch: Callable[[int, int], Awaitable[bytes]]
) -> AsyncIterator[bytes]:
    """Bytes of a place that gives out any part of them, from one place to before another, bit by bit: so many
    are held and no more. Where all are read, Unreadable comes before the last of them."""
    digest = hashlib.sha256() if start == 0 and end is None else None
    at, end = start, size if end is None else min(end, size)
    while at < end:
        upto = min(at + _BLOCK, end)
        data = await fetch(at, upto)
        if digest is not None:
            await asyncio.to_thread(digest.update, data)
        if len(data) != upto - at or (upto == end and digest is not None and digest.hexdigest() != key):
            raise altered(key)
        async for piece in in_pieces(data):
            yield piece
        at = upto
    if digest is not None and not size:
        checked_data(key, b"")


def is_key(value: object) -> bool:
    return isinstance(value, str) and _KEY.fullmatch(value) is not None


def checked_key(key: str) -> str:
    """The key itself. What is none names nothing: it may come from anywhere, and is used in paths."""
    if not is_key(key):
        raise NotFound("blob", key)
    return key


def checked_data(key: str, data: bytes) -> bytes:
    """The bytes themselves, if they are still those that were put there under this key."""
    if key_of(data) != key:
        raise altered(key)
    return data


def altered(key: str) -> Unreadable:
    return Unreadable("blob", key, "its bytes have changed since it was stored; restore it from a copy")
