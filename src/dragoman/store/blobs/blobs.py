"""Stores the bytes of attachments and long outputs by content: equal bytes are stored once."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeVar

from dragoman.errors import NotFound, Unreadable

PIECE = 3 << 17  # Bytes per read: small enough for a short wait, and divisible by 3 for base64.
_BLOCK = 10 * PIECE  # Bytes per fetch where each fetch is slow.

_KEY = re.compile(r"[0-9a-f]{64}")


class Blobs(Protocol):
    """Bytes under the SHA-256 of their content. `tests/store/conformance` tests any implementation."""

    async def put(self, data: bytes) -> str:
        """Store the bytes, all or nothing, and return their key. Putting them again keeps them fresh."""

    async def put_pieces(self, pieces: AsyncIterable[bytes]) -> tuple[str, int]:
        """Store bytes that are still arriving. Return their key and their number."""

    async def read(self, key: str) -> bytes:
        """Return the bytes. Raise NotFound if they are missing, and Unreadable if they were altered."""

    async def size(self, key: str) -> int:
        """Return the number of bytes. Raise NotFound if they are missing."""

    def pieces(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Yield the bytes from `start` to before `end` in chunks, for callers that cannot hold them all.

        If all bytes are read, Unreadable is raised before the last chunk: altered bytes are never passed on
        completely.
        """

    async def delete(self, key: str, *, unused_for: float = 0.0) -> bool:
        """Remove the bytes, unless they were put within that many seconds. Return whether they are gone."""

    def keys(self, *, since: float = 0.0) -> AsyncIterator[str]:
        """Yield the keys of all bytes put since then, in no particular order."""


def key_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def joined(pieces: AsyncIterable[bytes]) -> bytes:
    """Return all chunks joined, for a place that takes only complete bytes."""
    held = [piece async for piece in pieces]
    return await asyncio.to_thread(b"".join, held)


async def in_pieces(data: bytes, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
    """Yield bytes from memory in chunks."""
    view = memoryview(data)[start:end]
    for at in range(0, len(view), PIECE):
        yield bytes(view[at : at + PIECE])
        await asyncio.sleep(0)  # A fast reader would otherwise block the event loop.


async def fetched_in_pieces(
    key: str, size: int, start: int, end: int | None, fetch: Callable[[int, int], Awaitable[bytes]]
) -> AsyncIterator[bytes]:
    """Yield bytes in chunks from a place with range requests, holding a limited amount in memory.

    If all bytes are read, Unreadable is raised before the last chunk.
    """
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
    """Return the key if it is valid, else raise NotFound. It may come from anywhere, and is used in paths."""
    if not is_key(key):
        raise NotFound("blob", key)
    return key


def checked_data(key: str, data: bytes) -> bytes:
    """Return the bytes if they still match their key. Raise Unreadable otherwise."""
    if key_of(data) != key:
        raise altered(key)
    return data


def altered(key: str) -> Unreadable:
    return Unreadable("blob", key, "its bytes have changed since it was stored; restore it from a copy")


# ── a cache in memory ─────────────────────────────────────────────────────────────────────────────
# Keeps recently used blobs in memory: a turn with attachments reads the same ones for every request.


_ROOM = 64 * 2**20  # bytes
LARGE_HERE = 1 << 20  # Larger blobs are not cached if blobs are local files.
LARGE_AFAR = 16 << 20  # Larger blobs are not cached if each is fetched over a network.


class CachedBlobs:
    """Adds a bounded cache to other blobs. The content of a key never changes, so no entry becomes stale."""

    def __init__(self, blobs: Blobs, *, room: int = _ROOM, large: int = LARGE_AFAR) -> None:
        self._blobs = blobs
        self._room = room
        self._large = large
        self._used: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0

    async def put(self, data: bytes) -> str:
        key = await self._blobs.put(data)
        self._remember(key, data)
        return key

    async def put_pieces(self, pieces: AsyncIterable[bytes]) -> tuple[str, int]:
        return await self._blobs.put_pieces(pieces)

    async def read(self, key: str) -> bytes:
        if (data := self._used.get(key)) is not None:
            self._used.move_to_end(key)
            return data
        data = await self._blobs.read(key)
        self._remember(key, data)
        return data

    async def size(self, key: str) -> int:
        data = self._used.get(key)
        return await self._blobs.size(key) if data is None else len(data)

    async def pieces(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        if await self.size(key) > self._large:
            found = self._blobs.pieces(key, start, end)
        else:
            found = in_pieces(await self.read(key), start, end)
        async for piece in found:
            yield piece

    async def delete(self, key: str, *, unused_for: float = 0.0) -> bool:
        self._forget(key)
        return await self._blobs.delete(key, unused_for=unused_for)

    def keys(self, *, since: float = 0.0) -> AsyncIterator[str]:
        return self._blobs.keys(since=since)

    def _remember(self, key: str, data: bytes) -> None:
        self._forget(key)
        if len(data) > self._large:
            return
        self._used[key] = data
        self._size += len(data)
        while self._size > self._room:
            self._forget(next(iter(self._used)))

    def _forget(self, key: str) -> None:
        if (data := self._used.pop(key, None)) is not None:
            self._size -= len(data)


# ── a second location ─────────────────────────────────────────────────────────────────────────────
# Combines a place configured later with the database's own place, which still has earlier blobs.


T = TypeVar("T")


class FallbackBlobs:
    """Implements `Blobs`. New bytes go to the first place. Earlier ones are still in the second."""

    def __init__(self, first: Blobs, second: Blobs) -> None:
        self._first = first
        self._second = second

    async def put(self, data: bytes) -> str:
        return await self._first.put(data)

    async def put_pieces(self, pieces: AsyncIterable[bytes]) -> tuple[str, int]:
        return await self._first.put_pieces(pieces)

    async def read(self, key: str) -> bytes:
        return await self._where_it_is(lambda blobs: blobs.read(key))

    async def size(self, key: str) -> int:
        return await self._where_it_is(lambda blobs: blobs.size(key))

    async def pieces(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        async def holds(blobs: Blobs) -> Blobs:
            await blobs.size(key)
            return blobs

        place = await self._where_it_is(holds)
        async for piece in place.pieces(key, start, end):
            yield piece

    async def _where_it_is(self, ask: Callable[[Blobs], Awaitable[T]]) -> T:
        try:
            return await ask(self._first)
        except NotFound as missing:
            try:
                return await ask(self._second)
            except NotFound:
                raise missing from None  # This error explains what to do about the current place.

    async def delete(self, key: str, *, unused_for: float = 0.0) -> bool:
        gone = await self._first.delete(key, unused_for=unused_for)
        return gone and await self._second.delete(key, unused_for=unused_for)

    async def keys(self, *, since: float = 0.0) -> AsyncIterator[str]:
        seen = set[str]()
        async for key in self._second.keys(since=since):
            seen.add(key)
            yield key
        async for key in self._first.keys(since=since):
            if key not in seen:
                yield key
