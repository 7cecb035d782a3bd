"""Stores blobs as files in a folder, each named after its content: by default, or on a disk shared by
servers."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar

from dragoman.errors import ConfigError, NotFound, StoreUnavailable
from dragoman.messages.ids import new_id
from dragoman.sentences import sentence
from dragoman.store.blobs.blobs import PIECE, altered, checked_data, checked_key, key_of

# ── files ─────────────────────────────────────────────────────────────────────────────────────────
# Reads and writes blobs of a folder in chunks. Everything here blocks, so it runs in threads.


class _Closed(Protocol):
    def close(self) -> None: ...


_File = TypeVar("_File", bound=_Closed)


@asynccontextmanager
async def opened(opens: Callable[[], _File]) -> AsyncIterator[_File]:
    """Open a file in a thread and close it after use.

    It is also closed if the caller was cancelled before the thread had opened it.
    """
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
    """Reads a blob from `start` to before `end`.

    If that is the whole blob, the last chunk is only returned if the bytes match the key.
    """

    def __init__(self, file: Path, key: str, start: int = 0, end: int | None = None) -> None:
        self._file = file.open("rb")
        self._start = start
        self._left = None if end is None else end - start
        self._key = key
        self._digest = hashlib.sha256() if start == 0 and end is None else None
        self._next: bytes | None = None  # None until the first read.

    def read(self) -> bytes:
        """Return the next chunk, empty at the end."""
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
    """Writes bytes to a temporary file, which gets its final name when all have arrived."""

    def __init__(self, partial: Path) -> None:
        partial.parent.mkdir(parents=True, exist_ok=True)
        self.size = 0
        self._partial = partial
        self._file = partial.open("wb")
        self._digest = hashlib.sha256()

    def close(self) -> None:
        """Delete the temporary file unless it was kept."""
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
        """Rename the file to `target`, unless that exists with the same content."""
        if holds(target, self.key):
            os.utime(target)  # Refresh the time, so that a sweep does not remove the file meanwhile.
            return
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        target.parent.mkdir(exist_ok=True)
        self._partial.replace(target)


def holds(file: Path, key: str) -> bool:
    """Return whether the file exists with unaltered content."""
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest() == key
    except (FileNotFoundError, NotADirectoryError):
        return False


_OWNER = "owner"  # the file that names the owner of the blobs, if any store could use the folder
_GONE = sentence("blob.from_folder")
_LEFT = 24 * 3600.0  # Seconds after which an incomplete file is abandoned.


class FolderBlobs:
    """Implements `Blobs` and `NamedBlobs`. A file is complete or absent, even after a crash."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # the store that claimed it. None for the folder next to a database, which needs no claim
        self._store_id: str | None = None

    def __str__(self) -> str:
        return str(self._folder)

    def path(self, key: str) -> Path:
        name = checked_key(key)
        return self._folder / name[:2] / name[2:]

    async def put(self, data: bytes) -> str:
        return await asyncio.to_thread(self._put, data)

    async def read(self, key: str) -> bytes:
        return await asyncio.to_thread(self.read_blocking, key)

    async def put_pieces(self, pieces: AsyncIterable[bytes]) -> tuple[str, int]:
        try:
            async with opened(self._begin) as writer:
                held = bytearray()
                async for piece in pieces:
                    held += piece
                    if len(held) >= PIECE:
                        await asyncio.to_thread(writer.write, bytes(held))
                        held.clear()
                await asyncio.to_thread(writer.write, bytes(held))
                await asyncio.to_thread(writer.keep_as, self.path(writer.key))
                return writer.key, writer.size
        except OSError as error:
            raise _unavailable("Cannot store an attachment", error) from error

    async def size(self, key: str) -> int:
        with _reading(key):
            return (await asyncio.to_thread(self.path(key).stat)).st_size

    async def pieces(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        with _reading(key):
            async with opened(lambda: BlobFileReader(self.path(key), key, start, end)) as reader:
                while piece := await asyncio.to_thread(reader.read):
                    yield piece

    async def delete(self, key: str, *, unused_for: float = 0.0) -> bool:
        return await asyncio.to_thread(self._delete, key, unused_for)

    async def keys(self, *, since: float = 0.0) -> AsyncIterator[str]:
        for key in await asyncio.to_thread(self._keys, since):
            yield key

    async def claim(self, store: str) -> None:
        self._store_id = store
        try:
            await asyncio.to_thread(self._is_ours)
        except StoreUnavailable as error:
            raise ConfigError(str(error)) from None

    async def check(self) -> None:
        await asyncio.to_thread(self._check)

    def read_blocking(self, key: str) -> bytes:
        """Read in a thread, or for the last caller that reads on the event loop."""
        with _reading(key):
            return checked_data(key, self.path(key).read_bytes())

    def old_files(self, before: float) -> list[Path]:
        """Return files last touched before then, including incomplete ones."""
        found = []
        for file in self._folder.glob("[0-9a-f][0-9a-f]/*"):
            with suppress(FileNotFoundError):
                if file.stat().st_mtime < before:
                    found.append(file)
        return found

    # ── in a thread ───────────────────────────────────────────────────────────────────────────────

    def _put(self, data: bytes) -> str:
        key = key_of(data)
        target = self.path(key)
        try:
            self._make_ours()
        except OSError as error:
            raise _unavailable("Cannot store an attachment", error) from error
        try:
            if target.read_bytes() == data:  # Otherwise it was altered, and is restored from this copy.
                os.utime(target)  # Refresh the time, so that a sweep does not remove the file meanwhile.
                return key
        except (FileNotFoundError, NotADirectoryError):
            pass
        try:
            self._write(target, data)
        except OSError as error:
            raise _unavailable("Cannot store an attachment", error) from error
        return key

    def _begin(self) -> BlobFileWriter:
        self._make_ours()
        return BlobFileWriter(_partial(self.path("0" * 64)))

    def _write(self, target: Path, data: bytes) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = _partial(target)
        try:
            with partial.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)

    def _delete(self, key: str, unused_for: float) -> bool:
        target = self.path(key)
        aside = target.with_suffix(f".{new_id('old')}")

        def is_wanted(file: Path) -> bool:
            return bool(unused_for) and file.stat().st_mtime > time.time() - unused_for

        try:
            if is_wanted(target) or not self._is_ours():
                return False
            target.rename(aside)  # A later put writes the file again.
            if is_wanted(aside):  # Another process put it between the check and the rename.
                aside.replace(target)
                return False
            aside.unlink()
        except FileNotFoundError:
            return True
        except OSError:
            return False  # No permission to remove it. It only takes space.
        return True

    def _is_ours(self) -> bool:
        """Return whether this store owns the folder, False if unclaimed. Raise StoreUnavailable for another
        owner."""
        file = self._folder / _OWNER
        try:
            owner = file.read_text("utf-8") if self._store_id is not None else None
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unavailable(f"Cannot use {self} for attachments", error) from None
        if owner != self._store_id:
            raise StoreUnavailable(
                f"{self} has the attachments of another store",
                f"name a separate folder, or, if that store is gone, delete the file {file}",
            )
        return True

    def _make_ours(self) -> None:
        if not self._is_ours():
            self._folder.mkdir(parents=True, exist_ok=True)
            partial = self._folder / new_id("part")
            partial.write_text(self._store_id or "", "utf-8")
            with suppress(FileExistsError):
                # The link creates the file completely, or fails if another process was faster.
                os.link(partial, self._folder / _OWNER)
            partial.unlink()
            self._is_ours()

    def _check(self) -> None:
        file = self._folder / new_id("check")
        try:
            self._write(file, b"check")
            file.unlink()
        except OSError as error:
            raise _unavailable(f"Cannot store attachments in {self}", error) from None

    def _keys(self, since: float) -> list[str]:
        found = []
        for file in self._folder.glob("[0-9a-f][0-9a-f]/*"):
            name = file.parent.name + file.name
            with suppress(OSError):  # The file was deleted meanwhile.
                written = file.stat().st_mtime
                if "." in name:  # Its process may have died while writing or deleting it.
                    if written < time.time() - _LEFT:
                        file.unlink()
                elif len(name) == 64 and written >= since:
                    found.append(name)
        return found


def _partial(target: Path) -> Path:
    """Return a temporary file name, unique even for the same bytes."""
    return target.with_suffix(f".{new_id('part')}")


@contextmanager
def _reading(key: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise NotFound("blob", key, _GONE) from None
    except OSError as error:
        raise _unavailable(f"Cannot read blob {key}", error) from error


def _unavailable(what: str, error: OSError) -> StoreUnavailable:
    hint = f"{error.strerror or error}; see that the folder of the store can be written to and has room"
    return StoreUnavailable(what, hint, retryable=True)
