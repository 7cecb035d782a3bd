"""A path in, an attachment out: its bytes in the store, and what kind of file it is."""

from __future__ import annotations

import mimetypes
import re
from pathlib import Path

from dragoman.errors import BadRequest
from dragoman.messages.parts import File, Part, Text
from dragoman.store.store import Store

_NAMED = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|(\S+))')  # @notes.txt or @"my notes.txt"
LIMIT = 25 * 1024 * 1024


async def attached(store: Store, path: str) -> File:
    file, data = _read(path)
    return File(_media_type(file, data), blob=await store.put_blob(data), name=file.name, size=len(data))


async def said_with_files(store: Store, said: str, attachments: list[File]) -> list[Part]:
    """What is said, with the files it names as @path, as far as there are such files."""
    named = [path for quoted, bare in _NAMED.findall(said) if (path := _meant(quoted, bare)) is not None]
    return [Text(said), *attachments, *[await attached(store, path) for path in named]]


def _meant(quoted: str, bare: str) -> str | None:
    """A file that is there; a sign at the end of a sentence is no part of its name."""
    spellings = (quoted, bare, bare.rstrip(".,;:!?)"))
    return next((one for one in spellings if one and Path(one).expanduser().is_file()), None)


def _read(path: str) -> tuple[Path, bytes]:
    file = Path(path).expanduser()
    try:
        if file.stat().st_size > LIMIT:
            raise BadRequest(f"{file} is too large: {LIMIT // 1024 // 1024} MB at most")
        return file, file.read_bytes()
    except OSError as error:
        raise BadRequest(f"{file} cannot be read: {error.strerror}") from error


def _media_type(file: Path, data: bytes) -> str:
    guessed, _ = mimetypes.guess_type(file.name)
    if guessed is not None:
        return guessed if guessed != "application/json" else "text/plain"
    try:
        data.decode()
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "text/plain"
