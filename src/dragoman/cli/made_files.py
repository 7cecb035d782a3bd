"""Files that models made, written where a person can open them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from dragoman.config.settings import data_folder
from dragoman.errors import BadRequest, NotFound
from dragoman.messages.message import File, Message
from dragoman.store.store import Store
from dragoman.wire.lowering import result_files


def made_in(messages: Iterable[Message]) -> list[File]:
    """The files of answers, and those that calls brought back, in their order."""
    found: list[File] = []
    for message in messages:
        if message.role == "assistant":
            found += message.files
            found += [file for call in message.calls for file in result_files(call)]
    return [file for file in found if file.blob is not None]


async def save_as(store: Store, files: Sequence[File], target: Path) -> list[Path]:
    """Write them under this name; several get a number each. BadRequest says why one cannot be written."""
    written = []
    for number, file in enumerate(files, 1):
        path = target if len(files) == 1 else target.with_stem(f"{target.stem}-{number}")
        written.append(await _write(path, await store.blob(file.blob or "")))
    return written


async def save_made(store: Store, file: File, conversation: str) -> Path | None:
    """Write a file of a conversation where the program keeps its data; None where its bytes are gone."""
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
