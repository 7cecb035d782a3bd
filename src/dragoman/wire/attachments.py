"""Reads the files of requests and codes them for bodies, in threads: large ones must not stop the loop."""

from __future__ import annotations

import asyncio
from binascii import b2a_base64
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias, runtime_checkable

from dragoman.errors import ConfigError, NotFound
from dragoman.messages.media import is_text, modality
from dragoman.messages.parts import File
from dragoman.messages.request import Request
from dragoman.wire.files import Attachments, files_of
from dragoman.wire.pictures import NO_LIMITS, FileLimits, fit_picture
from dragoman.wire.wire import Wire

ReadBlob: TypeAlias = Callable[[str], Awaitable[bytes]]
"""Reads a blob by its name, as a store does; NotFound where there is none."""

FindId: TypeAlias = Callable[[File], Awaitable[str | None]]
"""Finds the id under which a provider has a file; None where its bytes have to be sent."""


@runtime_checkable
class UsesBlobs(Protocol):
    """Models that want to know where attachments are: a runtime names its store to them."""

    def use_blobs(self, read: ReadBlob) -> None: ...


REMEMBERED = 64 << 20  # bytes of coded files that need not be read again for the next step
SMALL = 64 << 10  # bytes that are coded sooner than a thread is found
PIECE = 3 << 18  # bytes coded at once: a thread gives way to the event loop between two of them

Key: TypeAlias = tuple[str, bool, FileLimits]  # a blob, whether as text, and how large a picture may be


class AttachmentReader:
    """The coded files of requests, each read once as long as it is remembered.

    `use` names the places where blobs are: one for each runtime that shares a model. Blobs are named after
    their contents, so it does not matter in which of them one is found.
    """

    def __init__(self, read: ReadBlob | None = None, *, remembered: int = REMEMBERED) -> None:
        self._places: list[ReadBlob] = [] if read is None else [read]
        self._room = remembered
        self._coded: dict[Key, str] = {}  # the one that was used longest ago comes first

    def use(self, read: ReadBlob) -> None:
        if read not in self._places:
            self._places.insert(0, read)

    def forget(self, read: ReadBlob) -> None:
        if read in self._places:
            self._places.remove(read)

    async def read(
        self,
        request: Request,
        wire: Wire,
        limits: FileLimits = NO_LIMITS,
        find_id: FindId | None = None,
    ) -> Attachments:
        """The files of a request that the wire can carry. NotFound where one is gone. `find_id` tells which
        of them the provider has already."""
        wanted: dict[Key, str] = {}
        ids: dict[str, str] = {}
        for file in files_of(request):
            as_text = is_text(file)
            key = (file.blob or "", as_text, limits if modality(file) == "image" else NO_LIMITS)
            if file.blob is None or key in wanted or not wire.carries(file):
                continue
            if file.blob in ids and not as_text:  # no text is named by an id
                continue
            if find_id is not None and (id := await find_id(file)) is not None:
                ids[file.blob] = id
                continue
            coded = self._coded.get(key)
            wanted[key] = await self._read(*key) if coded is None else coded
        self._remember(wanted)
        return Attachments(
            {blob: coded for (blob, as_text, _), coded in wanted.items() if not as_text},
            {blob: coded for (blob, as_text, _), coded in wanted.items() if as_text},
            ids,
        )

    async def _read(self, blob: str, as_text: bool, limits: FileLimits) -> str:
        data = await self.bytes_of(blob)
        if limits != NO_LIMITS:
            data = await asyncio.to_thread(fit_picture, data, limits)
        if len(data) <= SMALL:
            return code(data, as_text)
        return await asyncio.to_thread(code, data, as_text)

    async def bytes_of(self, blob: str) -> bytes:
        """A blob as it is stored. NotFound where it is in none of the places."""
        missing = ConfigError(f"blob {blob} is to be sent, but the model was given no place to read it from")
        failure: ConfigError | NotFound = missing
        for read in self._places:
            try:
                return await read(blob)
            except NotFound as error:
                failure = error
        raise failure

    def _remember(self, used: dict[Key, str]) -> None:
        """What was used now stays; what was used longest ago goes first where there is no room."""
        self._coded = {key: coded for key, coded in self._coded.items() if key not in used} | used
        size = sum(map(len, self._coded.values()))
        for key in [*self._coded]:
            if size <= self._room:
                break
            size -= len(self._coded.pop(key))


def code(data: bytes, as_text: bool) -> str:
    """Bytes as a body carries them."""
    if as_text:
        return data.decode(errors="replace")
    whole = memoryview(data)
    pieces = (b2a_base64(whole[at : at + PIECE], newline=False) for at in range(0, len(data), PIECE))
    return "".join([piece.decode("ascii") for piece in pieces])
