"""Read files to attach to a message, and write files that models created."""

from __future__ import annotations

import asyncio
import mimetypes
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from dragoman.background import in_thread
from dragoman.config.settings import data_folder
from dragoman.errors import BadRequest, NotFound
from dragoman.messages.message import File, Message, Part, Text
from dragoman.store.store import Store
from dragoman.wire.lowering import result_files

_MENTION = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|(\S+))')  # @notes.txt or @"my notes.txt"
_SIGNS = ".,;:!?)"  # at the end of a sentence
LIMIT = 25 * 1024 * 1024


async def attach_file(store: Store, path: str) -> File:
    file, data = await in_thread(lambda: _read(path))  # A pipe can block for a long time.
    return File(_media_type(file, data), blob=await store.put_blob(data), name=file.name, size=len(data))


async def attach_mentioned(
    store: Store, text: str, attachments: list[File], notify: Callable[[str, str], None]
) -> list[Part]:
    """Return the parts of a message: its text, earlier attachments, and mentioned files that exist.

    The user is notified of words that look like a file but do not exist.
    """
    paths = list[str]()
    for quoted, bare in _MENTION.findall(text):
        if (path := _existing(quoted, bare)) is not None:
            paths.append(path)
        elif quoted or "." in bare.rstrip(_SIGNS) or "/" in bare:
            notify(f"file not found: {quoted or bare.rstrip(_SIGNS)!r}: it is sent as text", "yellow")
    return [Text(text), *attachments, *[await attach_file(store, path) for path in paths]]


def _existing(quoted: str, bare: str) -> str | None:
    """Return an existing file. Punctuation at the end of a sentence is not part of its name."""
    spellings = (quoted, bare, bare.rstrip(_SIGNS))
    return next((one for one in spellings if one and Path(one).expanduser().is_file()), None)


def _read(path: str) -> tuple[Path, bytes]:
    file = Path(path).expanduser()
    try:
        with file.open("rb") as opened:
            data = opened.read(LIMIT + 1)  # The size of a device or a pipe is unknown.
    except OSError as error:
        raise BadRequest(f"{file} cannot be read: {error.strerror}") from error
    if len(data) > LIMIT:
        raise BadRequest(f"'{file}' is too large. The limit is {LIMIT // 1024 // 1024} MB.")
    return file, data


def _media_type(file: Path, data: bytes) -> str:
    guessed, _ = mimetypes.guess_type(file.name)
    if guessed is not None:
        return guessed if guessed != "application/json" else "text/plain"
    try:
        data.decode()
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "text/plain"


def made_in(messages: Iterable[Message]) -> list[File]:
    """Return the files of answers and of call results, in order."""
    found: list[File] = []
    for message in messages:
        if message.role == "assistant":
            found += message.files
            found += [file for call in message.all_calls for file in result_files(call)]
    return [file for file in found if file.blob is not None]


async def save_as(store: Store, files: Sequence[File], target: Path) -> list[Path]:
    """Write the files under this name, with numbers if there are several. Raises BadRequest if one cannot be
    written."""
    written = []
    for number, file in enumerate(files, 1):
        path = target if len(files) == 1 else target.with_stem(f"{target.stem}-{number}")
        written.append(await _write(path, await store.blob(file.blob or "")))
    return written


async def save_made(store: Store, file: File, conversation: str) -> Path | None:
    """Write a file of a conversation to the data folder. Returns None if its bytes are gone."""
    if file.blob is None:
        return None
    folder = data_folder() / "made" / conversation
    name = re.sub(r"[^\w.-]+", "_", Path(file.name or "file").name).lstrip(".") or "file"
    try:
        data = await store.blob(file.blob)
    except NotFound:
        return None
    return await _write(folder / f"{file.blob[:8]}-{name}", data)


async def _write(path: Path, data: bytes) -> Path:
    def write() -> Path:
        target = path.expanduser()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        return target

    try:
        return await asyncio.to_thread(write)
    except OSError as error:
        raise BadRequest(f"{path} cannot be written: {error.strerror}") from error
