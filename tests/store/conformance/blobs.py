"""Tests for every blob store: it holds bytes under the hash of their content, whole or not at all."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

from dragoman.errors import NotFound, Unreadable
from dragoman.store.blobs.blobs import Blobs

from .scene import refused


async def keys_in(blobs: Blobs) -> list[str]:
    found = blobs.keys()
    return [key async for key in found]


async def all_of(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


async def arriving(data: bytes, size: int = 65_536) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


class BlobConformance:
    """Two stores made for the same folder hold the same blobs (S4)."""

    async def make(self, folder: Path) -> Blobs:
        """Yours to override."""
        raise NotImplementedError

    async def alter(self, folder: Path, key: str) -> None:
        """Change the stored bytes, as a failing disk would. Yours to override."""
        raise NotImplementedError

    async def test_bytes_are_read_as_they_were_put(self, tmp_path: Path) -> None:
        """Each blob exists once, and every store reads it (S4)."""
        one, other = await self.make(tmp_path), await self.make(tmp_path)
        kinds = (b"", b"hello", b"\0\xff" * 500_000)
        keys = [await one.put(data) for data in kinds]
        assert keys == [hashlib.sha256(data).hexdigest() for data in kinds]
        assert [await other.read(key) for key in keys] == list(kinds)
        assert await other.put(b"hello") == keys[1]
        assert sorted(await keys_in(other)) == sorted(keys)

    async def test_large_ones_come_and_go_in_pieces(self, tmp_path: Path) -> None:
        """Bytes written in chunks have the same key as bytes written together, and every part is readable
        (S4)."""
        one, other = await self.make(tmp_path), await self.make(tmp_path)
        data = bytes(range(251)) * 20_000
        for kind in (data, b"short", b""):
            key, size = await one.put_pieces(arriving(kind))
            assert (key, size) == (hashlib.sha256(kind).hexdigest(), len(kind))
            assert await one.put(kind) == key
            assert await other.size(key) == size
            assert await all_of(other.pieces(key)) == kind
        key = hashlib.sha256(data).hexdigest()
        for start, end in ((0, 1), (7, 7), (300_000, 4_900_001), (len(data) - 1, len(data)), (5, None)):
            assert await all_of(other.pieces(key, start, end)) == data[start:end]
        assert len(await keys_in(other)) == 3
        assert await one.delete(key)
        assert await one.put_pieces(arriving(data)) == (key, len(data))

    async def test_what_breaks_off_while_it_comes_is_not_there(self, tmp_path: Path) -> None:
        """S4: nor is anything left of it."""

        async def broken() -> AsyncIterator[bytes]:
            yield bytes(1_000_000)
            raise EOFError("the connection is gone")

        blobs = await self.make(tmp_path)
        with refused(EOFError, "the connection is gone"):
            await blobs.put_pieces(broken())
        assert await keys_in(blobs) == []

    async def test_many_may_put_the_same_bytes_at_once(self, tmp_path: Path) -> None:
        """S4"""
        blobs = [await self.make(tmp_path) for _ in range(3)]
        keys = await asyncio.gather(*(blobs[n % 3].put(b"the same") for n in range(12)))
        assert len(set(keys)) == 1
        assert await keys_in(blobs[0]) == keys[:1]

    async def test_what_is_not_there_is_missed(self, tmp_path: Path) -> None:
        """A missing blob raises NotFound, whatever its key (S4)."""
        blobs = await self.make(tmp_path)
        key = await blobs.put(b"something")
        for wrong in ("", "0" * 64, "../../secret", "/etc/passwd", key.upper(), key + "\n", key[:63] + "g"):
            with refused(NotFound, "blob"):
                await blobs.read(wrong)
            with refused(NotFound, "blob"):
                await blobs.size(wrong)
            with refused(NotFound, "blob"):
                await all_of(blobs.pieces(wrong))

    async def test_what_was_altered_is_not_given_out(self, tmp_path: Path) -> None:
        """S4: and putting the right bytes again repairs it."""
        key = await (await self.make(tmp_path)).put(b"as it was")
        await self.alter(tmp_path, key)
        with refused(Unreadable, "blob", key, "changed"):
            await (await self.make(tmp_path)).read(key)
        with refused(Unreadable, "blob", key, "changed"):
            await all_of((await self.make(tmp_path)).pieces(key))
        long = await (await self.make(tmp_path)).put(bytes(9_000_000))
        await self.alter(tmp_path, long)
        with refused(Unreadable, "blob", long, "changed"):
            await all_of((await self.make(tmp_path)).pieces(long))
        await (await self.make(tmp_path)).put(b"as it was")
        assert await (await self.make(tmp_path)).read(key) == b"as it was"

    async def test_what_is_deleted_is_gone_unless_it_came_just_now(self, tmp_path: Path) -> None:
        """S4: a message that mentions it may be on its way."""
        blobs = await self.make(tmp_path)
        key, other = await blobs.put(b"gone"), await blobs.put(b"stays")
        assert not await blobs.delete(key, unused_for=3600)
        assert await blobs.read(key) == b"gone"
        assert await blobs.delete(key)
        with refused(NotFound, key):
            await blobs.read(key)
        assert await blobs.delete(key)
        assert await keys_in(blobs) == [other]
