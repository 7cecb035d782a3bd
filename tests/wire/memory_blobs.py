"""Provide an in-memory blob store that records reads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from dragoman.errors import NotFound
from dragoman.messages.message import File

PIECE = 100_000  # no multiple of three


class MemoryBlobs:
    """Satisfies `BlobReader`."""

    def __init__(self, blobs: Mapping[str, bytes]) -> None:
        self.blobs = blobs
        self.read: list[str] = []

    async def blob(self, key: str) -> bytes:
        self.read.append(key)
        return self._found(key)

    async def blob_size(self, key: str) -> int:
        return len(self._found(key))

    async def blob_pieces(self, key: str) -> AsyncIterator[bytes]:
        self.read.append(key)
        data = self._found(key)
        for at in range(0, len(data), PIECE):
            yield data[at : at + PIECE]

    def file(self, name: str, type: str = "image/jpeg") -> File:
        return File(type, blob=name, name=name, size=len(self.blobs[name]))

    def _found(self, key: str) -> bytes:
        if key not in self.blobs:
            raise NotFound("blob", key)
        return self.blobs[key]
