"""Blobs of a folder, read and written bit by bit. For threads: everything here blocks."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from dragoman.store.blobs.blobs import PIECE, altered


class _Closed(Protocol):
    def close(self) -> None: ...


_File = TypeVar("_File", bound=_Closed)


@asynccontextmanager
async def opened(opens: Callable[[], _File]) -> AsyncIterator[_File]:
    """What `opens` returns in a thread, closed after use: also where nobody waits for it any more by the time
    that the thread has it open."""
    opening = asyncio.ensure_future(asyncio.to_thread(opens))
    try:
        file = await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close_result)
        raise
    try:
        yield file
    finally:
        file.close()


def _close_result(opening: asyncio.Future[_File]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


class BlobFileReader:
    """Reads a blob from `start` to before `end`. Where that is all of it, the last piece is only given out if
    they are the bytes that were put there."""

    def __init__(self, file: Path, key: str, start: int = 0, end: int | None = None) -> None:
        self._file = file.open("rb")
        self._start = start
        self._left = None if end is None else end - start
        self._key = key
        self._digest = hashlib.sha256() if start == 0 and end is None else None
        self._next: bytes | None = None  # nothing was read yet

    def read(self) -> bytes:
        """The next piece; none at the end."""
        if self._next is None:
            if self._start:
                self._file.seek(self._start)
            self._next = self._read_on()
        piece = self._next
        self._next = self._read_on() if piece else b""
        if not self._next and self._digest is not None and self._digest.hexdigest() != self._key:
            raise altered(self._key)
        return piece

    def close(self) -> None:
        self._file.close()

    def _read_on(self) -> bytes:
        piece = self._file.read(PIECE if self._left is None else min(PIECE, self._left))
        if self._left is not None:
            self._left -= len(piece)
        if self._digest is not None:
            self._digest.update(piece)
        return piece


class BlobFileWriter:
    """Writes bytes to a file of no meaning yet, which gets its name when all have come."""

    def __init__(self, partial: Path) -> None:
        partial.parent.mkdir(parents=True, exist_ok=True)
        self.size = 0
        self._partial = partial
        self._file = partial.open("wb")
        self._digest = hashlib.sha256()

    def close(self) -> None:
        """What was not kept is gone."""
        self._file.close()
        self._partial.unlink(missing_ok=True)

    @property
    def key(self) -> str:
        return self._digest.hexdigest()

    def write(self, data: bytes) -> None:
        self.size += len(data)
        self._digest.update(data)
        self._file.write(data)

    def keep_as(self, target: Path) -> None:
        """The file is `target` from now on, unless that is there and holds the same."""
        if holds(target, self.key):
            os.utime(target)  # somebody wants it now: it is not to be swept away meanwhile
            return
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        target.parent.mkdir(parents=True, exist_ok=True)
        self._partial.replace(target)


def holds(file: Path, key: str) -> bool:
    """Whether it is there and was not altered."""
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest() == key
    except (FileNotFoundError, NotADirectoryError):
        return False
