"""The route to hear a sound while it is made."""

from __future__ import annotations

import re
import struct
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from starlette.responses import Response, StreamingResponse

from dragoman.errors import NotFound
from dragoman.messages.events import Event, FileAdded, FilePartial, MessageAdded
from dragoman.messages.message import File
from dragoman.runtime import Runtime
from dragoman.server.api_router import api_router
from dragoman.server.context import Person, TheContext

router = api_router("files")

_HEADERS = {"content-security-policy": "sandbox; default-src 'none'", "cache-control": "no-store"}
_PCM_RATE = 24_000  # samples a second of bare ones, as OpenAI sends them: 16 bits, one channel
_ENDLESS = 0xFFFFFFFF  # the length of what is not over


@router.get(
    "/turns/{id}/sound",
    response_class=Response,
    responses={200: {"content": {"audio/*": {}}, "description": "the sound, until it is over"}},
)
async def sound(context: TheContext, person: Person, id: str) -> Response:
    """What a turn speaks, from its first piece on: for an `<audio>` element. 404 where it makes no sound."""
    await context.turn(id, person)
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
                yield piece

    return StreamingResponse(body(), media_type="audio/wav" if bare else kind, headers=_HEADERS)


async def spoken(runtime: Runtime, turn: str) -> AsyncGenerator[tuple[str, bytes], None]:
    """The first sound of a turn in pieces, each with its type: as they come, then the rest of the whole."""
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
    """The sound that is complete with this event: made now, or in a turn that has long been over."""
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
