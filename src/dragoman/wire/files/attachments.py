"""Finds the files of requests for their bodies. Small ones are read and coded; of large ones the body gets a
placeholder, and their bytes are read while they are sent."""

from __future__ import annotations

import asyncio
import secrets
from binascii import b2a_base64
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

from dragoman.errors import ConfigError, NotFound
from dragoman.messages.media import is_text, modality, text_of
from dragoman.messages.message import File
from dragoman.messages.request import Request
from dragoman.sentences import sentence
from dragoman.wire.files.file_parts import NO_ATTACHMENTS, Attachments, files_of
from dragoman.wire.files.pictures import NO_LIMITS, FileLimits, fit_picture
from dragoman.wire.http_client.payload import FileContent
from dragoman.wire.wire import Wire

T = TypeVar("T")

FindId: TypeAlias = Callable[[File], Awaitable[str | None]]
"""Finds the id under which a provider has a file; None where its bytes have to be sent."""


class BlobReader(Protocol):
    """Where attachments are, as a store has them. NotFound where there is none of this name."""

    async def blob(self, key: str) -> bytes: ...

    async def blob_size(self, key: str) -> int: ...

    def blob_pieces(self, key: str) -> AsyncIterator[bytes]: ...


@runtime_checkable
class UsesBlobs(Protocol):
    """Models that want to know where attachments are: a runtime names its store to them."""

    def use_blobs(self, blobs: BlobReader) -> None: ...


REMEMBERED = (
    32 << 20
)  # bytes of coded files and smaller pictures that need not be made again for the next step
SMALL = 64 << 10  # bytes of a file that is coded at once, and stands in the body itself
_AT_ONCE = 1  # pictures that are unpacked: each needs far more memory than its file has bytes
_ENTRY = 256  # bytes that it takes to remember anything

Key: TypeAlias = tuple[str, bool, FileLimits]  # a blob, whether as text, and how large a picture may be
Coded: TypeAlias = str | FileContent  # what stands in the body, or is sent in its place


class AttachmentReader:
    """The files of requests. What had to be made of one is remembered, as far as there is room.

    `use` names the places where blobs are: one for each runtime that shares a model. Blobs are named after
    their contents, so it does not matter in which of them one is found.
    """

    def __init__(self, blobs: BlobReader | None = None, *, remembered: int = REMEMBERED) -> None:
        self._places: list[BlobReader] = [] if blobs is None else [blobs]
        self._room = remembered
        self._pictures = ThreadPoolExecutor(_AT_ONCE, "pictures")
        self._made: dict[Key, Coded | None] = {}  # the one that was used longest ago comes first

    def use(self, blobs: BlobReader) -> None:
        if blobs not in self._places:
            self._places.insert(0, blobs)

    def forget(self, blobs: BlobReader) -> None:
        if blobs in self._places:
            self._places.remove(blobs)

    async def read(
        self,
        request: Request,
        wire: Wire,
        limits: FileLimits = NO_LIMITS,
        find_id: FindId | None = None,
    ) -> Attachments:
        """The files of a request that the wire can carry. NotFound where one is gone. `find_id` tells which
        of them the provider has already."""
        wanted: dict[Key, Coded] = {}
        made: dict[Key, Coded | None] = {}  # remembered together: what is there is used before any goes
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
            wanted[key] = await self._read(key, made)
        self._remember(made)
        return _attachments(wanted, ids) if wanted or ids else NO_ATTACHMENTS

    async def find(self, blob: str) -> tuple[FileContent, BlobReader]:
        """A blob as it is stored, and where that is. NotFound where it is in none of the places."""

        async def found(place: BlobReader) -> tuple[FileContent, BlobReader]:
            return FileContent(await place.blob_size(blob), lambda: place.blob_pieces(blob)), place

        return await self._first(blob, found)

    async def _content_of(self, blob: str) -> FileContent:
        return (await self.find(blob))[0]

    async def _read(self, key: Key, made: dict[Key, Coded | None]) -> Coded:
        """What a body gets of a blob; what had to be made for it is added to `made`."""
        blob, as_text, limits = key
        if key in self._made:
            made[key] = self._made[key]
        elif as_text or limits.picture_edge is not None or (await self._content_of(blob)).size <= SMALL:
            made[key] = await self._make(blob, as_text, limits)
        found = made.get(key)
        return await self._content_of(blob) if found is None else found

    async def _make(self, blob: str, as_text: bool, limits: FileLimits) -> Coded | None:
        """A small file coded, a text as text, a picture made smaller; None where it is sent as it is."""
        if limits.picture_edge is not None and not as_text:
            content = await self._content_of(blob)
            pieces = [piece async for piece in content.read()]
            loop = asyncio.get_running_loop()
            data = await loop.run_in_executor(self._pictures, _fitted, pieces, limits)
            return None if data is None else _coded(data)
        data = await self._first(blob, lambda place: place.blob(blob))
        if not as_text:
            return _coded(data)
        if len(data) > SMALL:
            return await asyncio.to_thread(text_of, data)
        return text_of(data)

    def _remember(self, used: dict[Key, Coded | None]) -> None:
        """What was used now stays; what was used longest ago goes first where there is no room."""
        self._made = {key: made for key, made in self._made.items() if key not in used} | used
        over = sum(map(_weight, self._made.values())) - self._room
        for old in [*self._made]:
            if over <= 0:
                break
            over -= _weight(self._made.pop(old))

    async def _first(self, blob: str, ask: Callable[[BlobReader], Awaitable[T]]) -> T:
        """The answer of the first place that has it."""
        missing = ConfigError(sentence("blob.no_place", blob=blob))
        failure: ConfigError | NotFound = missing
        for place in self._places:
            try:
                return await ask(place)
            except NotFound as error:
                failure = error
        raise failure


def _attachments(wanted: dict[Key, Coded], ids: dict[str, str]) -> Attachments:
    mark = secrets.token_hex(16)  # nobody can write a placeholder into a message
    base64: dict[str, str] = {}
    texts: dict[str, str] = {}
    contents: dict[str, FileContent] = {}
    for number, ((blob, as_text, _), coded) in enumerate(wanted.items()):
        if isinstance(coded, FileContent):
            base64[blob] = f"{mark}{number:06}"
            contents[base64[blob]] = coded
        else:
            (texts if as_text else base64)[blob] = coded
    return Attachments(base64, texts, ids, contents)


def _fitted(pieces: list[bytes], limits: FileLimits) -> bytes | None:
    """A picture as it is sent; None where that is as it is stored, and too large to be remembered."""
    data = b"".join(pieces)
    fitted = fit_picture(data, limits)
    return fitted if fitted is not data or len(data) <= SMALL else None


def _coded(data: bytes) -> Coded:
    if len(data) > SMALL:
        return FileContent.of(data)
    return b2a_base64(data, newline=False).decode("ascii")


def _weight(made: Coded | None) -> int:
    """Bytes of it in memory."""
    return _ENTRY + (0 if made is None else made.size if isinstance(made, FileContent) else len(made))
