"""Serve OpenAI's Files API: upload a file once, then name it by its ID in requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from dragoman.errors import NotFound
from dragoman.messages.ids import new_id
from dragoman.messages.media import is_media_type
from dragoman.server.context import Context, TheContext
from dragoman.server.protocols.openai.api_errors import ApiRefusal, OpenAIRoute
from dragoman.store.store import UploadedFile

router = APIRouter(prefix="/files", route_class=OpenAIRoute, include_in_schema=False)
_TOTAL = 50  # Limits the total bytes of a user's files, as a multiple of the maximum upload.
_PURPOSES = ("assistants", "vision", "user_data", "evals")
_PIECE = 256 * 1024
_LONGEST = 30 * 24 * 3600  # seconds
_PAGE = 10_000


@router.post("")
async def create_file(context: TheContext, request: Request) -> dict[str, Any]:
    async with _form(request) as form:
        file = form.get("file")
        if not isinstance(file, UploadFile) or not file.size:
            raise ApiRefusal("Send the file as the field 'file'. It must not be empty.", "file")
        if file.size > context.upload_limit:
            what = f"A file has at most {context.upload_limit} bytes here."
            raise ApiRefusal(what, "file", status=413, code="request_too_large")
        purpose = form.get("purpose")
        if purpose not in _PURPOSES:
            raise ApiRefusal(f"Set 'purpose' to one of {', '.join(_PURPOSES)}.", "purpose")
        now = context.runtime.services.clock()
        blob, size = await context.runtime.store.put_blob_pieces(_pieces(file))
        kind = (file.content_type or "").partition(";")[0].strip()
        stored = UploadedFile(
            id=new_id("file"),
            blob=blob,
            name=(file.filename or "file")[:255],
            media_type=kind if is_media_type(kind) else "application/octet-stream",
            size=size,
            purpose=str(purpose),
            created=now,
            expires=_expiry(form, now),
        )
    limit = _TOTAL * context.upload_limit
    if not await context.runtime.store.add_uploaded_file(stored, context.person, limit):
        what = f"Your files would take more than {limit} bytes. Delete some of them first."
        raise ApiRefusal(what, "file", status=413, code="storage_limit_exceeded")
    return _view(stored)


@router.get("")
async def list_files(
    context: TheContext,
    *,
    limit: Annotated[int, Query(ge=1, le=_PAGE)] = _PAGE,
    order: Literal["asc", "desc"] = "desc",
    after: str | None = None,
    purpose: str | None = None,
) -> dict[str, Any]:
    found = await context.runtime.store.uploaded_files(context.person, context.runtime.services.clock())
    files = [file for file in found if purpose in (None, file.purpose)]
    if order == "desc":
        files.reverse()
    if after is not None:
        ids = [file.id for file in files]
        if after not in ids:
            raise NotFound("file", after)
        files = files[ids.index(after) + 1 :]
    data = [_view(file) for file in files[:limit]]
    ends = {"first_id": data[0]["id"] if data else None, "last_id": data[-1]["id"] if data else None}
    return {"object": "list", "data": data, "has_more": len(files) > limit, **ends}


@router.get("/{id}")
async def read_file(context: TheContext, id: str) -> dict[str, Any]:
    return _view(await _own(context, id))


@router.get("/{id}/content")
async def read_bytes(context: TheContext, id: str) -> Response:
    """Return the content of a file. The headers prevent browsers from opening it as a page of this server."""
    file = await _own(context, id)
    headers = {
        "content-length": str(file.size),
        "content-disposition": "attachment",
        "content-security-policy": "sandbox; default-src 'none'",
        "x-content-type-options": "nosniff",
    }
    return StreamingResponse(
        context.runtime.store.blob_pieces(file.blob), headers=headers, media_type="application/octet-stream"
    )


@router.delete("/{id}")
async def delete_file(context: TheContext, id: str) -> dict[str, Any]:
    """Delete an uploaded file. Messages that contain it keep it."""
    await context.runtime.store.remove_uploaded_file(id, context.person)
    return {"id": id, "object": "file", "deleted": True}


@asynccontextmanager
async def _form(request: Request) -> AsyncIterator[FormData]:
    try:
        form = await request.form(max_files=1, max_fields=10)
    except HTTPException as error:
        why = str(error.detail).rstrip(".")
        raise ApiRefusal(f"The form cannot be read: {why}.", code="invalid_form") from error
    try:
        yield form
    finally:
        await form.close()


async def _own(context: Context, id: str) -> UploadedFile:
    return await context.runtime.store.uploaded_file(id, context.person, context.runtime.services.clock())


async def _pieces(file: UploadFile) -> AsyncIterator[bytes]:
    while piece := await file.read(_PIECE):
        yield piece


def _expiry(form: FormData, now: float) -> float | None:
    anchor, seconds = form.get("expires_after[anchor]"), form.get("expires_after[seconds]")
    if anchor is None and seconds is None:
        return None
    if anchor != "created_at" or not str(seconds).isdecimal() or not 3600 <= int(str(seconds)) <= _LONGEST:
        what = f"Set 'expires_after' to the anchor 'created_at' and 3600 to {_LONGEST} seconds."
        raise ApiRefusal(what, "expires_after")
    return now + int(str(seconds))


def _view(file: UploadedFile) -> dict[str, Any]:
    return {
        "id": file.id,
        "object": "file",
        "bytes": file.size,
        "created_at": int(file.created),
        "expires_at": int(file.expires) if file.expires is not None else None,
        "filename": file.name,
        "purpose": file.purpose,
        "status": "processed",
    }
