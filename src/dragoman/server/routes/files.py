"""Define routes to upload and download files, to hear audio while it is made, and to undo file changes."""

from __future__ import annotations

import re
import struct
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated
from urllib.parse import quote

from fastapi import Header, Query, Request
from starlette.responses import Response, StreamingResponse

from dragoman.conversation.sharing import Right
from dragoman.errors import BadRequest, NotFound
from dragoman.messages.events import Event, FileAdded, FilePartial, MessageAdded
from dragoman.messages.message import File
from dragoman.runtime import Runtime
from dragoman.sentences import sentence
from dragoman.server import bodies, shapes
from dragoman.server.context import Context, TheContext, api_router
from dragoman.turn.api.undo import Reverted, WorkspaceDiff

router = api_router("files")

_SHOWN = re.compile(r"(?:application/pdf|image/(?:png|jpeg|gif|webp|avif|bmp)|(?:audio|video)/[a-z0-9.+-]+)")
_HEADERS = {
    "content-security-policy": "sandbox; default-src 'none'",
    "cache-control": "private, max-age=31536000, immutable",
    "accept-ranges": "bytes",
}
# Browsers' PDF viewers do not run in a sandbox.
_PDF = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}
_WORD = "[A-Za-z0-9.+_-]{1,100}"
MediaType = Annotated[str, Query(pattern=f"^{_WORD}/{_WORD}$", examples=["image/png"])]
Name = Annotated[str | None, Query(max_length=255, examples=["picture.png"])]


@router.post(
    "/files",
    status_code=201,
    openapi_extra={"requestBody": {"required": True, "content": {"application/octet-stream": {}}}},
)
async def upload(
    context: TheContext, request: Request, type: MediaType = "application/octet-stream", name: Name = None
) -> File:
    """Upload a file, with its bytes as the body. Returns a part to send with a message."""
    blob, size = await context.runtime.store.put_blob_pieces(request.stream())
    if not size:
        # If a message has several files, the error names the empty one.
        raise BadRequest(sentence("file.named_empty", name=name) if name else sentence("file.empty"))
    await context.runtime.store.add_upload(blob, context.person, time.time())
    return File(type, blob=blob, name=name, size=size)


_FILE: dict[str, dict[str, object]] = {
    type: {} for type in ("application/octet-stream", "image/*", "audio/*", "video/*")
}


@router.get(
    "/files/{blob}",
    response_class=Response,
    responses={
        200: {"description": "the file", "content": _FILE},
        206: {"description": "a piece of it", "content": _FILE},
        416: {"description": "no such piece"},
    },
)
async def download(  # noqa: PLR0917 - FastAPI calls it by name
    context: TheContext,
    blob: str,
    type: MediaType = "application/octet-stream",
    name: Name = None,
    download: Annotated[bool, Query()] = False,
    range: Annotated[str | None, Header()] = None,
) -> Response:
    """Download a file. Browsers show images, audio, video and PDF. They save other types, and never open them
    as a page of this server."""
    if not re.fullmatch(r"[0-9a-f]{64}", blob):
        raise NotFound("file", blob)
    await context.check_blob(blob)
    store = context.runtime.store
    size = await store.blob_size(blob)
    shown = not download and _SHOWN.fullmatch(type) is not None
    headers = {**_HEADERS, "content-disposition": _disposition("inline" if shown else "attachment", name)}
    if shown and type == "application/pdf":
        headers |= _PDF
    kind = type if shown else "application/octet-stream"
    wanted = re.fullmatch(r"bytes=(\d{0,18})-(\d{0,18})", (range or "").strip())
    # The request has no range, or an unknown unit, which RFC 9110 allows to ignore.
    if wanted is None or not any(wanted.groups()):
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
    """Stream a file as it is read. An error at its start becomes an error response, and a later one breaks
    the download off."""
    first = await anext(pieces, b"")

    async def body() -> AsyncIterator[bytes]:
        yield first
        async for piece in pieces:
            yield piece

    return StreamingResponse(body(), status, headers, kind)


def _disposition(how: str, name: str | None) -> str:
    return f"{how}; filename*=UTF-8''{quote(name, safe='')}" if name else how


def _piece(start: str, end: str, *, size: int) -> tuple[int, int] | None:
    """Return the first and the last byte of a range, or None if it is empty."""
    if not start:
        first, last = max(0, size - int(end)), size - 1
    else:
        first, last = int(start), min(int(end or size), size - 1)
    return (first, last) if first <= last and first < size else None


# ── audio, while it is made ───────────────────────────────────────────────────────────────────────


_AUDIO_HEADERS = {"content-security-policy": "sandbox; default-src 'none'", "cache-control": "no-store"}
_PCM_RATE = 24_000  # Samples a second of raw audio from OpenAI: 16 bits, one channel.
_ENDLESS = 0xFFFFFFFF  # the length of an unfinished file


@router.get(
    "/turns/{id}/sound",
    response_class=Response,
    responses={200: {"content": {"audio/*": {}}, "description": "the sound, until it is over"}},
)
async def sound(context: TheContext, id: str) -> Response:
    """Stream the audio of a turn while it is made, for an `<audio>` element. Returns 404 if the turn makes no
    audio."""
    row = await context.turn(id, Right.READ)
    pieces = spoken(context.runtime, id)
    first = await anext(pieces, None)
    if first is None:
        raise NotFound("sound", id)
    kind, data = first
    bare = kind == "audio/pcm"

    async def body() -> AsyncIterator[bytes]:
        async with aclosing(pieces):
            if bare:
                yield _wav_head(_PCM_RATE)
            yield data
            async for _, piece in pieces:
                if not await context.may_read(row.conversation):
                    return
                yield piece

    return StreamingResponse(body(), media_type="audio/wav" if bare else kind, headers=_AUDIO_HEADERS)


async def spoken(runtime: Runtime, turn: str) -> AsyncGenerator[tuple[str, bytes], None]:
    """Yield the first audio of a turn in chunks with their type: as they arrive, then the rest."""
    told = 0
    async for event in runtime.turn(turn).events():
        if isinstance(event, FilePartial) and _is_sound(event.file) and event.offset == told:
            data = await runtime.store.blob(event.file.blob or "")
            told += len(data)
            yield event.file.media_type, data
        if (file := _whole(event)) is not None:
            async for piece in runtime.store.blob_pieces(file.blob or "", told):
                yield file.media_type, piece
            return


def _whole(event: Event) -> File | None:
    """Return the audio that this event completes, or None. It is new, or belongs to a turn that ended long
    ago."""
    files: tuple[File, ...] = ()
    if isinstance(event, FileAdded):
        files = (event.file,)
    elif isinstance(event, MessageAdded) and event.message.role == "assistant":
        files = tuple(event.message.files)
    return next(filter(_is_sound, files), None)


def _is_sound(file: File) -> bool:
    return file.blob is not None and re.fullmatch(r"audio/[a-z0-9.+-]+", file.media_type) is not None


def _wav_head(rate: int) -> bytes:
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, rate * 2, 2, 16)
    return b"RIFF" + struct.pack("<I", _ENDLESS) + b"WAVE" + form + b"data" + struct.pack("<I", _ENDLESS)


# ── file changes of turns ─────────────────────────────────────────────────────────────────────────


_REVERT = bodies.Revert()
_REDO = bodies.Redo()


@router.get("/turns/{id}/diff")
async def diff_of_turn(context: TheContext, id: str) -> shapes.DiffView:
    """Return the file changes of a turn's calls so far, and notes on changes that could not be recorded."""
    await context.turn(id, Right.READ)
    return _view(await context.runtime.undo.diff_turn(id))


@router.get("/messages/{id}/diff")
async def diff_of_message(context: TheContext, id: str) -> shapes.DiffView:
    """Return the file changes of one reply's calls, which are one step of its turn."""
    await context.message(id, Right.READ)
    return _view(await context.runtime.undo.diff_message(id))


@router.get("/calls/{id}/diff")
async def diff_of_call(context: TheContext, id: str) -> shapes.DiffView:
    """Return the file changes of a call, and of calls that ran at the same time."""
    await context.call(id, Right.READ)
    return _view(await context.runtime.undo.diff_call(id))


@router.get("/conversations/{id}/diff")
async def diff_of_conversation(context: TheContext, id: str) -> shapes.DiffView:
    """Return the file changes of all turns of a conversation, without those that were undone."""
    await context.check(id, Right.READ)
    return _view(await context.runtime.undo.diff_conversation(id))


@router.post("/turns/{id}/revert")
async def revert_turn(context: TheContext, id: str, body: bodies.Revert = _REVERT) -> shapes.RevertView:
    """Undo the file changes of this turn and of later ones, all or none, and move the conversation to before
    its message.

    The message stays as a branch. Returns 409 if one of the turns still runs. Also returns 409, with
    `conflicts`, if a file has changed since.
    """
    await context.turn(id, Right.OWN)
    back = context.runtime.undo
    return _done(context, await back.revert_turn(id, **body.model_dump()))


@router.post("/messages/{id}/revert")
async def revert_message(context: TheContext, id: str, body: bodies.Revert = _REVERT) -> shapes.RevertView:
    """Revert to before a message, which is a user's or a reply."""
    await context.message(id, Right.OWN)
    back = context.runtime.undo
    return _done(context, await back.revert_message(id, **body.model_dump()))


@router.post("/calls/{id}/revert")
async def revert_call(context: TheContext, id: str, body: bodies.Revert = _REVERT) -> shapes.RevertView:
    """Revert to before a call. The conversation moves to before the reply that contains it."""
    await context.call(id, Right.OWN)
    back = context.runtime.undo
    return _done(context, await back.revert_call(id, **body.model_dump()))


@router.post("/conversations/{id}/redo")
async def redo(context: TheContext, id: str, body: bodies.Redo = _REDO) -> shapes.RevertView:
    """Redo what the last revert of a conversation undid."""
    await context.check(id, Right.OWN)
    return _done(context, await context.runtime.undo.redo(id, force=body.force))


def _view(diff: WorkspaceDiff) -> shapes.DiffView:
    return shapes.DiffView(diff.files, diff.notes, diff.undone)


def _done(context: Context, done: Reverted) -> shapes.RevertView:
    context.publisher.changed(done.conversation)
    return shapes.RevertView(done.paths, done.notes, done.leaf, done.moved)
