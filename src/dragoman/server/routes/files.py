"""Routes to upload attachments and to download what is stored."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator
from typing import Annotated
from urllib.parse import quote

from fastapi import Header, Query, Request
from starlette.responses import Response, StreamingResponse

from dragoman.errors import BadRequest, NotFound
from dragoman.messages.message import File
from dragoman.sentences import sentence
from dragoman.server.api_router import api_router
from dragoman.server.context import Person, TheContext

router = api_router("files")

_SHOWN = re.compile(r"(?:image/(?:png|jpeg|gif|webp|avif|bmp)|(?:audio|video)/[a-z0-9.+-]+)")
_HEADERS = {
    "content-security-policy": "sandbox; default-src 'none'",
    "cache-control": "private, max-age=31536000, immutable",
    "accept-ranges": "bytes",
}
_WORD = "[A-Za-z0-9.+_-]{1,100}"
MediaType = Annotated[str, Query(pattern=f"^{_WORD}/{_WORD}$", examples=["image/png"])]
Name = Annotated[str | None, Query(max_length=255, examples=["picture.png"])]


@router.post(
    "/files",
    status_code=201,
    openapi_extra={"requestBody": {"required": True, "content": {"application/octet-stream": {}}}},
)
async def upload(
    context: TheContext,
    person: Person,
    request: Request,
    type: MediaType = "application/octet-stream",
    name: Name = None,
) -> File:
    """The bytes are the body. What comes back is a part to send with a message."""
    blob, size = await context.runtime.store.put_blob_pieces(request.stream())
    if not size:
        # of several files, somebody wants to know which
        raise BadRequest(sentence("file.named_empty", name=name) if name else sentence("file.empty"))
    await context.runtime.store.add_upload(blob, person, time.time())
    return File(type, blob=blob, name=name, size=size)


@router.get(
    "/files/{blob}", responses={206: {"description": "a piece of it"}, 416: {"description": "no such piece"}}
)
async def download(  # noqa: PLR0917 - FastAPI calls it by name
    context: TheContext,
    person: Person,
    blob: str,
    type: MediaType = "application/octet-stream",
    name: Name = None,
    download: Annotated[bool, Query()] = False,
    range: Annotated[str | None, Header()] = None,
) -> Response:
    """Pictures, sound and film are shown; everything else is saved, never opened as a page of ours."""
    if not re.fullmatch(r"[0-9a-f]{64}", blob):
        raise NotFound("file", blob)
    await context.check_blob(blob, person)
    store = context.runtime.store
    size = await store.blob_size(blob)
    shown = not download and _SHOWN.fullmatch(type) is not None
    headers = {**_HEADERS, "content-disposition": _disposition("inline" if shown else "attachment", name)}
    kind = type if shown else "application/octet-stream"
    wanted = re.fullmatch(r"bytes=(\d{0,18})-(\d{0,18})", (range or "").strip())
    if wanted is None or not any(wanted.groups()):  # no range, or one that we may ignore
        headers["content-length"] = str(size)
        return await _streamed(store.blob_pieces(blob), kind, headers)
    piece = _piece(*wanted.groups(), size=size)
    if piece is None:
        return Response(status_code=416, headers={"content-range": f"bytes */{size}"})
    first, last = piece
    headers |= {"content-range": f"bytes {first}-{last}/{size}", "content-length": str(last + 1 - first)}
    return await _streamed(store.blob_pieces(blob, first, last + 1), kind, headers, status=206)


async def _streamed(
    pieces: AsyncIterator[bytes], kind: str, headers: dict[str, str], status: int = 200
) -> Response:
    """A file as it is read. What is wrong with it at once is an error like any other; what is found to be
    wrong later breaks it off."""
    first = await anext(pieces, b"")

    async def body() -> AsyncIterator[bytes]:
        yield first
        async for piece in pieces:
            yield piece

    return StreamingResponse(body(), status, headers, kind)


def _disposition(how: str, name: str | None) -> str:
    return f"{how}; filename*=UTF-8''{quote(name, safe='')}" if name else how


def _piece(start: str, end: str, *, size: int) -> tuple[int, int] | None:
    """The first and the last byte; None where there are none."""
    if not start:
        first, last = max(0, size - int(end)), size - 1
    else:
        first, last = int(start), min(int(end) if end else size - 1, size - 1)
    return (first, last) if first <= last and first < size else None
