"""The files of requests to one model: how large they may be, which are uploaded, and which have no room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.errors import BadRequest
from dragoman.messages.media import is_text, modality
from dragoman.messages.message import File
from dragoman.messages.request import Request
from dragoman.sentences import sentence
from dragoman.wire.attachments import AttachmentReader
from dragoman.wire.files import Attachments, beyond_room, without_files
from dragoman.wire.pictures import NO_LIMITS, FileLimits, has_pillow
from dragoman.wire.uploads import SERVICES, KeepsProviderFiles, Uploads
from dragoman.wire.wire import Wire

NO_ROOM = "there is no room for it in one request"


@dataclass(slots=True, frozen=True)
class RequestFiles:
    """What is known of the files that go to one model."""

    reader: AttachmentReader
    wire: Wire
    limits: FileLimits = NO_LIMITS
    uploads: Uploads | None = None

    def check(self, files: Sequence[File], model: str) -> None:
        """BadRequest where a file cannot be sent, or they are too much together."""
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
        """The request with a line in the place of the oldest files, if all are too many; and how many."""
        left = beyond_room(request, self.limits.together, self._weight)
        return without_files(request, lambda file: file.blob in left, NO_ROOM) if left else request, len(left)

    async def read(self, request: Request) -> Attachments:
        """Their bytes, coded, or their ids at the provider."""
        return await self.reader.read(request, self.wire, self.limits, self._id_of)

    async def _id_of(self, file: File) -> str | None:
        """The id of a file that is kept at the provider; None where it goes into the body."""
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
        """Bytes that a file adds to a body, before they are coded."""
        if file.blob is None or not self.wire.carries(file) or self._is_uploaded(file):
            return 0
        return self._size(file)

    def _size(self, file: File) -> int:
        """How many bytes it has at most when it is sent, as far as its message says it."""
        size, most = file.size or 0, self.limits.picture_bytes
        return min(size, most) if modality(file) == "image" and most is not None and has_pillow() else size
