"""Upload large files to a provider once, so that later requests name them by an ID."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from urllib.parse import urlsplit

from pydantic_core import from_json

from dragoman.errors import BadRequest, DragomanError, ProviderError
from dragoman.messages.media import is_text, media_type, modality
from dragoman.messages.message import File, ProviderFile
from dragoman.messages.request import Request
from dragoman.redaction import redact_text
from dragoman.sentences import sentence
from dragoman.wire.anthropic_messages.shapes import FILES_BETA
from dragoman.wire.auth.auth import outgoing_to
from dragoman.wire.endpoint import Endpoint
from dragoman.wire.files.attachments import AttachmentReader
from dragoman.wire.files.file_parts import Attachments, beyond_room, without_files
from dragoman.wire.files.pictures import NO_LIMITS, FileLimits, has_pillow
from dragoman.wire.http_client.body import write_related, write_upload
from dragoman.wire.http_client.exchange import client_error, read_bounded
from dragoman.wire.http_client.payload import FileContent, Payload
from dragoman.wire.wire import Wire

if TYPE_CHECKING:
    from dragoman.wire.http_client.client import HttpClient


_log = logging.getLogger("dragoman.wire")

DAY = 24 * 3600.0
PAUSE = 600.0  # seconds without uploads after one has failed
_MARGIN = 600.0  # seconds before its expiry from which an ID is not used
_DELETE_SECONDS = 5.0
_LOOKS = 60  # checks of a file that Google is processing, one second apart


@dataclass(slots=True, frozen=True)
class FileService:
    """How one provider stores files."""

    fields: Callable[[File], Mapping[str, str]] = lambda file: {}
    headers: Mapping[str, str] = field(default_factory=dict)
    lifetime: float | None = None  # seconds; None if files stay until they are deleted
    related: bool = False  # Google's: another path, another form, and a file that is processed first


def _openai_fields(file: File) -> Mapping[str, str]:
    purpose = "vision" if modality(file) == "image" else "user_data"
    lasts = {"expires_after[anchor]": "created_at", "expires_after[seconds]": str(int(DAY))}
    return {"purpose": purpose, **lasts}


SERVICES: dict[str, FileService] = {  # by the name of the wire
    "openai_responses": FileService(_openai_fields, lifetime=DAY),
    "anthropic_messages": FileService(headers={"anthropic-beta": FILES_BETA}),
    "gemini": FileService(headers={"X-Goog-Upload-Protocol": "multipart"}, lifetime=2 * DAY, related=True),
}


def is_unknown_file(error: ProviderError) -> bool:
    """Return whether a provider refuses a request because a file that it names is missing.

    Google does not report whether the file is gone or belongs to someone else.
    """
    return error.status in (400, 403, 404) and re.search(r"\bfile", error.message, re.IGNORECASE) is not None


@runtime_checkable
class KeepsProviderFiles(Protocol):
    """The part of a store that tracks files at providers (`store/store.py`)."""

    async def add_provider_file(self, file: ProviderFile, now: float) -> ProviderFile: ...

    async def provider_file(self, account: str, blob: str, now: float) -> ProviderFile | None: ...

    async def forget_provider_file(self, file: ProviderFile) -> None: ...

    async def unwanted_provider_files(self, now: float) -> list[ProviderFile]: ...


@runtime_checkable
class DeletesProviderFiles(Protocol):
    """Models that can delete files that a store reports as unused: a runtime calls this from time to time."""

    async def delete_unwanted_files(self, store: KeepsProviderFiles) -> None: ...


class Uploads:
    """The files of one account at a provider.

    If a store keeps their IDs, they outlive this process. Without one, they are known only as long as it
    runs, and files without expiry are deleted when it ends.
    """

    def __init__(
        self, client: HttpClient, endpoint: Endpoint, wire: str, provider: str = "", *, lasting: bool = True
    ) -> None:
        self._client = client
        self._endpoint = endpoint
        self._service = SERVICES[wire]
        self.lasting = lasting  # stores can keep their IDs
        self.account = f"{provider}:{_fingerprint(endpoint)}"
        self._known: dict[str, tuple[ProviderFile, KeepsProviderFiles | None]] = {}  # by blob
        self._paused_until = 0.0
        self._uploading = asyncio.Lock()

    async def id_of(
        self, file: File, content: FileContent, store: KeepsProviderFiles | None = None
    ) -> str | None:
        """Return a file's ID at the provider, after uploading it if necessary.

        None if that fails: then the body contains the file, like a small one.
        """
        assert file.blob is not None
        if not self._client.may_upload:
            return None
        async with self._uploading:  # Two requests of one conversation upload it only once.
            now = self._client.clock()
            if (found := await self._find(file.blob, store, now)) is not None:
                return found.id
            if now < self._paused_until:
                return None
            try:
                id = await self._upload(file, content)
            except (OSError, client_error(), DragomanError, ValueError, LookupError, TypeError) as error:
                self._paused_until = now + PAUSE
                why = redact_text(str(error), self._endpoint.secrets) or type(error).__name__
                _log.warning("cannot upload a file, so it goes with each request: %s", why)
                return None
            lifetime = self._service.lifetime
            expires = None if lifetime is None else now + lifetime - _MARGIN
            kept = await self._keep(ProviderFile(self.account, file.blob, id, expires), store)
            self._known[file.blob] = kept, store
            return kept.id

    async def forget(self, blobs: Iterable[str]) -> None:
        """Forget files that the provider no longer has."""
        for blob in blobs:
            file, store = self._known.pop(blob, (None, None))
            if file is not None and store is not None:
                await store.forget_provider_file(file)

    async def delete(self, files: Iterable[ProviderFile], store: KeepsProviderFiles) -> None:
        """Delete unused files. Failed deletions are tried again later."""
        for file in files:
            try:
                await self._delete(file)
            except (OSError, client_error(), DragomanError, ValueError) as error:
                why = redact_text(str(error), self._endpoint.secrets) or type(error).__name__
                _log.warning("an unused file stays at its provider for now: %s", why)
                return
            self._known.pop(file.blob, None)
            await store.forget_provider_file(file)

    async def close(self) -> None:
        """Delete files that would otherwise stay forever and that no store tracks, as far as that is
        quick."""
        known, self._known = self._known, {}
        left = [file for file, store in known.values() if store is None]
        if self._service.lifetime is None and left:
            with suppress(OSError, client_error(), DragomanError, ValueError):  # a timeout is an OSError
                async with asyncio.timeout(_DELETE_SECONDS):
                    for file in left:
                        await self._delete(file)

    async def _find(self, blob: str, store: KeepsProviderFiles | None, now: float) -> ProviderFile | None:
        found, holder = self._known.get(blob, (None, None))
        if found is None and store is not None:
            found, holder = await store.provider_file(self.account, blob, now), store
        if found is None or (found.expires is not None and now >= found.expires):
            return None
        if holder is None and store is not None:  # The file was uploaded before a store was available.
            found, holder = await self._keep(found, store), store
        self._known[blob] = found, holder
        return found

    async def _keep(self, file: ProviderFile, store: KeepsProviderFiles | None) -> ProviderFile:
        """Return the file to use: the first one, if another process uploaded the same file meanwhile."""
        if store is None:
            return file
        first = await store.add_provider_file(file, self._client.clock())
        if first.id != file.id:
            await self.delete([file], store)
        return first

    async def _delete(self, file: ProviderFile) -> None:
        try:
            await self._ask(f"files/{file.id.rpartition('/')[2]}", method="DELETE")
        except _NotThere:
            pass

    async def _upload(self, file: File, content: FileContent) -> str:
        name = file.name or f"{(file.blob or '')[:16]}.{media_type(file).partition('/')[2]}"
        if self._service.related:
            return await self._upload_related(name, media_type(file), content)
        body, type = write_upload(self._service.fields(file), name, media_type(file), content)
        return str((await self._ask("files", body=body, type=type))["id"])

    async def _upload_related(self, name: str, kind: str, content: FileContent) -> str:
        """Upload a file to Google and return its URI once it can be used: videos are processed for a
        while."""
        body, type = write_related({"file": {"displayName": name}}, kind, content)
        found = (await self._ask("files", body=body, type=type, before="/upload"))["file"]
        for _ in range(_LOOKS):
            if found.get("state", "ACTIVE") != "PROCESSING":
                break
            await self._client.sleep(1)
            found = await self._ask(str(found["name"]), method="GET")
        if found.get("state", "ACTIVE") != "ACTIVE":
            raise ValueError(f"the file is {found['state']}")
        return str(found["uri"])

    async def _ask(
        self,
        path: str,
        *,
        body: bytes | Payload = b"",
        type: str = "application/json",
        method: str = "POST",
        before: str = "",
    ) -> dict[str, Any]:
        address = urlsplit(self._endpoint.sibling_url(path))
        url = address._replace(path=f"{before}{address.path}").geturl()
        outgoing = await outgoing_to(url, body, self._endpoint.auth, method=method)
        signed = await self._endpoint.auth.headers(outgoing, self._client)
        headers = {**signed, **self._endpoint.headers, **self._service.headers}
        headers |= {"Content-Type": type, "Accept": "application/json"}
        # Other uploads wait for the lock held here.
        async with asyncio.timeout(self._client.timeouts.first_byte):
            response = await self._client.send(method, url, headers=headers, body=body)
            async with response:
                answer = await read_bounded(response)
        if response.status == 404:
            raise _NotThere("404")
        if response.status // 100 != 2:
            raise ValueError(f"{response.status} {answer[:200].decode(errors='replace')}")
        found: dict[str, Any] = from_json(answer or b"{}")
        return found


class _NotThere(ValueError):
    """The provider has no such file."""


def _fingerprint(endpoint: Endpoint) -> str:
    """Return a fingerprint of the account that does not reveal its key."""
    return hashlib.sha256("\n".join((endpoint.base_url, *endpoint.auth.secrets)).encode()).hexdigest()[:16]


# Handle the files of requests to one model: their maximum size, which are uploaded, and which have no room.


NO_ROOM = "there is no room for it in one request"


@dataclass(slots=True, frozen=True)
class RequestFiles:
    """The reader, limits and uploads of the files for one model."""

    reader: AttachmentReader
    wire: Wire
    limits: FileLimits = NO_LIMITS
    uploads: Uploads | None = None

    def check(self, files: Sequence[File], model: str) -> None:
        """Raise BadRequest if a file cannot be sent, or all files together are too large."""
        for file in files:
            if file.blob is not None and not self.wire.carries(file):
                raise BadRequest(
                    sentence(
                        "file.not_sendable",
                        file=file.name or "the file",
                        media_type=file.media_type,
                        model=model,
                    )
                )
        if (size := sum(map(self._weight, files))) > self.limits.together:
            raise BadRequest(
                sentence("files.too_big", size=size >> 20, model=model, most=self.limits.together >> 20)
            )

    def fit(self, request: Request) -> tuple[Request, int]:
        """Return the request with a note in place of the oldest files, if all are too large, and the number
        of notes."""
        left = beyond_room(request, self.limits.together, self._weight)
        return without_files(request, lambda file: file.blob in left, NO_ROOM) if left else request, len(left)

    async def read(self, request: Request) -> Attachments:
        """Return their encoded bytes, or their IDs at the provider."""
        return await self.reader.read(request, self.wire, self.limits, self._id_of)

    async def _id_of(self, file: File) -> str | None:
        """Return the ID of a file that is kept at the provider. None if the body contains it."""
        if self.uploads is None or not self._is_uploaded(file):
            return None
        content, place = await self.reader.find(file.blob or "")
        store = place if isinstance(place, KeepsProviderFiles) and self.uploads.lasting else None
        return await self.uploads.id_of(file, content, store)

    def _is_uploaded(self, file: File) -> bool:
        above = self.limits.upload_above
        if self.uploads is None or above is None or file.blob is None or is_text(file):
            return False
        return self.wire.name in SERVICES and self.wire.carries(file) and self._size(file) > above

    def _weight(self, file: File) -> int:
        """Return the bytes that a file adds to a body, before encoding."""
        if file.blob is None or not self.wire.carries(file) or self._is_uploaded(file):
            return 0
        return self._size(file)

    def _size(self, file: File) -> int:
        """Return its maximum size when sent, as far as its message states it."""
        size, most = file.size or 0, self.limits.picture_bytes
        return min(size, most) if modality(file) == "image" and most is not None and has_pillow() else size
