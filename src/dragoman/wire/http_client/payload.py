"""Represent what is sent to a provider: bytes, and files that are read while sent, never held in memory."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from binascii import b2a_base64
from collections.abc import AsyncIterable, AsyncIterator, Callable
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import JsonValue
from pydantic_core import from_json

from dragoman.wire.prose import read_json

PIECE = 3 << 17  # bytes encoded or written in one step; a multiple of three for base64


@dataclass(slots=True, frozen=True)
class FileContent:
    """The bytes of a file, which can be read any number of times."""

    size: int
    read: Callable[[], AsyncIterator[bytes]]

    @classmethod
    def of(cls, data: bytes) -> FileContent:
        """Return the content of bytes in memory."""
        return cls(len(data), lambda: _cut(data))


@dataclass(slots=True, frozen=True)
class InBase64:
    """A file as JSON contains it."""

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
    """A body in parts. It can be sent again: its files are read again each time."""

    def __init__(self, parts: list[PayloadPart]) -> None:
        self._parts = parts
        self.size = sum(len(part) if isinstance(part, bytes) else part.size for part in parts)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the whole body in chunks."""
        for part in self._parts:
            async for piece in _cut(part) if isinstance(part, bytes) else part.read():
                yield piece

    async def sha256(self) -> str:
        """Return the hash of the whole body, for signing."""
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
        await asyncio.sleep(0)  # A quick reader would otherwise block other tasks.


# Read a JSON body as it arrives. Long strings, such as images in base64, are stored separately, and only
# once.


LONG = 1 << 16  # bytes of a string that is stored separately


class WholeBody:
    """A JSON body that is fed with chunks. `head` is its text, with a mark for each long string."""

    def __init__(self) -> None:
        self.head = bytearray()
        self._mark = secrets.token_hex(16)
        self._long: list[str] = []
        self._string: bytearray | None = None  # the string that is open
        self._escapes = False  # the previous chunk ended in a backslash that escapes what follows

    def feed(self, chunk: bytes) -> None:
        at = 0
        while at < len(chunk):
            quote = chunk.find(b'"', at)
            part = chunk[at : quote if quote >= 0 else len(chunk)]
            at += len(part) + 1
            if self._string is None:
                self.head += part
                if quote >= 0:
                    self._string = bytearray()
                continue
            escaped = self._is_escaped(part)
            self._string += part
            if quote < 0:
                self._escapes = escaped
            elif escaped:
                self._string += b'"'
                self._escapes = False
            else:
                self._close(self._string)
                self._string, self._escapes = None, False

    def value(self, *, cut: bool = False) -> JsonValue:
        """Return the value of the body. If it was cut, return the complete part. Raises ValueError if it is
        not JSON."""
        head = bytes(self.head)
        value: JsonValue = from_json(head, allow_partial=True) if cut else read_json(head)
        return self._filled(value) if self._long else value

    def _is_escaped(self, part: bytes) -> bool:
        """Return whether the character after this part of a string is escaped."""
        slashes = len(part) - len(part.rstrip(b"\\"))
        return (slashes + (self._escapes and slashes == len(part))) % 2 == 1

    def _close(self, text: bytearray) -> None:
        if len(text) > LONG and text.isascii() and b"\\" not in text:
            self._long.append(text.decode("ascii"))
            text = bytearray(f"{self._mark}{len(self._long) - 1}".encode())
        self.head += b'"' + text + b'"'

    def _filled(self, value: JsonValue) -> JsonValue:
        match value:
            case str() if value.startswith(self._mark):
                return self._long[int(value.removeprefix(self._mark))]
            case dict():
                return {name: self._filled(one) for name, one in value.items()}
            case list():
                return [self._filled(one) for one in value]
            case _:
                return value
