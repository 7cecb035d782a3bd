"""Stores the files that a model made, so that messages and events name them and hold no bytes."""

from __future__ import annotations

import asyncio
from binascii import Error, a2b_base64
from dataclasses import replace

from dragoman.messages.events import FileAdded, FilePartial
from dragoman.messages.media import parse_data_url
from dragoman.messages.message import File
from dragoman.store.store import Store

SMALL = 64 << 10  # characters that are decoded sooner than a thread is found
_PIECE = 1 << 20  # characters that are decoded at once: a thread gives way between two of them


async def store_made(event: FileAdded | FilePartial, store: Store, owner: str, now: float) -> None:
    """Put the bytes of its file where files are. The owner of the conversation may look at it at once: the
    message that will hold it is not stored yet, and what only shows the way to it never is."""
    event.file = file = await store_file(event.file, store)
    if file.blob is not None:
        await store.add_upload(file.blob, owner, now)


async def store_file(file: File, store: Store) -> File:
    """The file with its bytes among the blobs. One that is only an address stays as it is."""
    found = parse_data_url(file.url) if file.url is not None else None
    if file.url is None or found is None or not found.base64:
        return file
    coded = file.url[found.begins :]
    try:
        data = _decoded(coded) if len(coded) <= SMALL else await asyncio.to_thread(_decoded, coded)
    except Error:
        return replace(file, url=None)  # what came is no file: the part says that there was one
    return replace(file, url=None, blob=await store.put_blob(data), size=len(data))


def _decoded(text: str) -> bytes:
    pieces = [a2b_base64(text[at : at + _PIECE]) for at in range(0, len(text), _PIECE)]
    return b"".join(pieces)
