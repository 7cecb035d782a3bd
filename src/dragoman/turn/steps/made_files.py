"""Stores the files that a model made, so that messages and events name them and hold no bytes."""

from __future__ import annotations

import asyncio
from binascii import Error, a2b_base64
from collections.abc import AsyncIterator
from dataclasses import replace

from dragoman.messages.data_urls import parse_data_url
from dragoman.messages.events import FileAdded, FilePartial
from dragoman.messages.parts import File
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
    try:
        if len(file.url) <= SMALL:
            data = a2b_base64(file.url[found.begins :])
            return replace(file, url=None, blob=await store.put_blob(data), size=len(data))
        blob, size = await store.put_blob_pieces(_decoded(file.url, found.begins))
    except Error:
        return replace(file, url=None)  # what came is no file: the part says that there was one
    return replace(file, url=None, blob=blob, size=size)


async def _decoded(text: str, begins: int) -> AsyncIterator[bytes]:
    """The bytes in base64 from here on. They can be hundreds of megabytes, and are never there whole."""
    for at in range(begins, len(text), _PIECE):
        yield await asyncio.to_thread(a2b_base64, text[at : at + _PIECE])
