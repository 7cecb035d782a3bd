"""The bytes of attachments and long outputs, addressed by their content: equal bytes are stored once."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeVar

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


# ── a cache in memory ─────────────────────────────────────────────────────────────────────────────
# The blobs used last, in memory: a turn with attachments reads the same ones for every request.


_ROOM = 64 * 2**20  # bytes
LARGE_HERE = 1 << 20  # bytes of one that is not worth it, where blobs are files of this machine
LARGE_AFAR = 16 << 20  # where each is fetched over a network


class CachedBlobs:
    """Other blobs behind a bounded cache. What a key stands for never changes, so nothing in it grows old."""

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


# ── a second place ────────────────────────────────────────────────────────────────────────────────
# Blobs at a place that was named after some were stored: that one first, then the database's own.


T = TypeVar("T")


class FallbackBlobs:
    """Implements `Blobs`. What is put goes to the first; what was stored before is still in the second."""

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
                raise missing from None  # it says what to do about the place that is used now

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
