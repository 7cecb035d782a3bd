"""Find the files of requests for their bodies. Small files are read and encoded. For a large file, the body
contains a placeholder, and the bytes are read while they are sent."""

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
"""Finds the ID under which a provider has a file. None if its bytes have to be sent."""


class BlobReader(Protocol):
    """The place where attachments are, such as a store. Raises NotFound for an unknown name."""

    async def blob(self, key: str) -> bytes: ...

    async def blob_size(self, key: str) -> int: ...

    def blob_pieces(self, key: str) -> AsyncIterator[bytes]: ...


@runtime_checkable
class UsesBlobs(Protocol):
    """Models that need to know where attachments are: a runtime gives them its store."""

    def use_blobs(self, blobs: BlobReader) -> None: ...


REMEMBERED = 32 << 20  # bytes of encoded files and resized images, kept for the next step
SMALL = 64 << 10  # bytes of a file that is encoded immediately and written into the body itself
_AT_ONCE = 1  # images decoded in parallel: each needs far more memory than its file has bytes
_ENTRY = 256  # bytes of overhead for each entry

# a blob, whether it is sent as text, and the limits for an image
Key: TypeAlias = tuple[str, bool, FileLimits]
Coded: TypeAlias = str | FileContent  # the text in the body, or the content sent in place of a placeholder


class AttachmentReader:
    """The files of requests. Results of encoding are cached, as far as there is room.

    `use` adds a place where blobs are: one for each runtime that shares a model. Blobs are named after their
    contents, so it does not matter in which place one is found.
    """

    def __init__(self, blobs: BlobReader | None = None, *, remembered: int = REMEMBERED) -> None:
        self._places: list[BlobReader] = [] if blobs is None else [blobs]
        self._room = remembered
        self._pictures = ThreadPoolExecutor(_AT_ONCE, "pictures")
        self._made: dict[Key, Coded | None] = {}  # least recently used first

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
        """Return the files of a request that the wire can carry. Raises NotFound if one is missing.

        `find_id` returns the IDs of files that the provider already has.
        """
        wanted: dict[Key, Coded] = {}
        # Cached together at the end, so that existing entries are used before any is removed.
        made: dict[Key, Coded | None] = {}
        ids: dict[str, str] = {}
        for file in files_of(request):
            as_text = is_text(file)
            key = (file.blob or "", as_text, limits if modality(file) == "image" else NO_LIMITS)
            if file.blob is None or key in wanted or not wire.carries(file):
                continue
            if file.blob in ids and not as_text:  # A text file is never named by an ID.
                continue
            if find_id is not None and (id := await find_id(file)) is not None:
                ids[file.blob] = id
                continue
            wanted[key] = await self._read(key, made)
        self._remember(made)
        return _attachments(wanted, ids) if wanted or ids else NO_ATTACHMENTS

    async def find(self, blob: str) -> tuple[FileContent, BlobReader]:
        """Return a blob as stored, and the place that has it. Raises NotFound if no place has it."""

        async def found(place: BlobReader) -> tuple[FileContent, BlobReader]:
            return FileContent(await place.blob_size(blob), lambda: place.blob_pieces(blob)), place

        return await self._first(blob, found)

    async def _content_of(self, blob: str) -> FileContent:
        return (await self.find(blob))[0]

    async def _read(self, key: Key, made: dict[Key, Coded | None]) -> Coded:
        """Return what the body gets for a blob. Newly encoded results are added to `made`."""
        blob, as_text, limits = key
        if key in self._made:
            made[key] = self._made[key]
        elif as_text or limits.picture_edge is not None or (await self._content_of(blob)).size <= SMALL:
            made[key] = await self._make(blob, as_text, limits)
        found = made.get(key)
        return await self._content_of(blob) if found is None else found

    async def _make(self, blob: str, as_text: bool, limits: FileLimits) -> Coded | None:
        """Return a small file encoded, a text file as text, or an image resized. None if it is sent
        unchanged."""
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
        """Keep what was just used. If there is no room, remove the least recently used entries."""
        self._made = {key: made for key, made in self._made.items() if key not in used} | used
        over = sum(map(_weight, self._made.values())) - self._room
        for old in [*self._made]:
            if over <= 0:
                break
            over -= _weight(self._made.pop(old))

    async def _first(self, blob: str, ask: Callable[[BlobReader], Awaitable[T]]) -> T:
        """Return the answer of the first place that has the blob."""
        missing = ConfigError(sentence("blob.no_place", blob=blob))
        failure: ConfigError | NotFound = missing
        for place in self._places:
            try:
                return await ask(place)
            except NotFound as error:
                failure = error
        raise failure


def _attachments(wanted: dict[Key, Coded], ids: dict[str, str]) -> Attachments:
    mark = secrets.token_hex(16)  # Nothing in a message can contain a random placeholder.
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
    """Return an image as it is sent. None if it is sent unchanged and is too large to cache."""
    data = b"".join(pieces)
    fitted = fit_picture(data, limits)
    return fitted if fitted is not data or len(data) <= SMALL else None


def _coded(data: bytes) -> Coded:
    if len(data) > SMALL:
        return FileContent.of(data)
    return b2a_base64(data, newline=False).decode("ascii")


def _weight(made: Coded | None) -> int:
    """Return its bytes in memory."""
    return _ENTRY + (0 if made is None else made.size if isinstance(made, FileContent) else len(made))
