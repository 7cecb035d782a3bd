"""What is sent to a provider: bytes, and files that are read while they are sent and never held whole."""

from __future__ import annotations

import asyncio
import hashlib
from binascii import b2a_base64
from collections.abc import AsyncIterable, AsyncIterator, Callable
from dataclasses import dataclass
from typing import TypeAlias

PIECE = 3 << 17  # bytes that are coded or written at once: whole in base64


@dataclass(slots=True, frozen=True)
class FileContent:
    """The bytes of a file, which can be read any number of times."""

    size: int
    read: Callable[[], AsyncIterator[bytes]]

    @classmethod
    def of(cls, data: bytes) -> FileContent:
        """Of bytes that are at hand."""
        return cls(len(data), lambda: _cut(data))


@dataclass(slots=True, frozen=True)
class InBase64:
    """A file as JSON carries it."""

    file: FileContent

    @property
    def size(self) -> int:
        return (self.file.size + 2) // 3 * 4

    async def read(self) -> AsyncIterator[bytes]:
        rest = b""
        async for piece in self.file.read():
            data = rest + piece if rest else piece
            whole = len(data) - len(data) % 3
            yield b2a_base64(memoryview(data)[:whole], newline=False)
            rest = data[whole:]
        if rest:
            yield b2a_base64(rest, newline=False)


PayloadPart: TypeAlias = bytes | FileContent | InBase64


class Payload:
    """A body in parts. It can be sent again: each time its files are read anew."""

    def __init__(self, parts: list[PayloadPart]) -> None:
        self._parts = parts
        self.size = sum(len(part) if isinstance(part, bytes) else part.size for part in parts)

    async def pieces(self) -> AsyncIterator[bytes]:
        """All of it, bit by bit."""
        for part in self._parts:
            async for piece in _cut(part) if isinstance(part, bytes) else part.read():
                yield piece

    async def sha256(self) -> str:
        """The hash of all of it, for those who have to sign it."""
        digest = hashlib.sha256()
        async for piece in self.pieces():
            digest.update(piece)
        return digest.hexdigest()


async def read_all(pieces: AsyncIterable[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


async def _cut(data: bytes) -> AsyncIterator[bytes]:
    if len(data) <= PIECE:
        yield data
        return
    view = memoryview(data)
    for at in range(0, len(view), PIECE):
        yield bytes(view[at : at + PIECE])
        await asyncio.sleep(0)  # a reader who is quick would not let anybody else in between
