"""`local/espeak` and `local/pocketsphinx`: programs that speak and listen on this machine, without a network.

They are models of last resort. Each request is answered by a child process of its own: neither library may
be used by two at once, both hold up every other thread, and a process can be killed when nobody waits.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from binascii import a2b_base64
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, with_config
from pydantic_core import from_json
from typing_extensions import TypedDict  # pydantic wants this one on Python 3.11

from dragoman.errors import BadRequest, ProviderError
from dragoman.extras import describe_missing, require
from dragoman.messages.events import Event
from dragoman.messages.media import is_text, media_type
from dragoman.messages.parts import File
from dragoman.messages.request import Request
from dragoman.sentences import sentence
from dragoman.wire.attachments import AttachmentReader
from dragoman.wire.bodies import write_large
from dragoman.wire.media_options import check_media_options
from dragoman.wire.openai_audio.speech import OpenAISpeech
from dragoman.wire.openai_audio.transcription import OpenAITranscription
from dragoman.wire.payload import Payload

LONGEST_TEXT = 20_000  # characters: some twenty minutes
LONGEST_LINE = 1 << 20  # bytes of one frame


@with_config(strict=True)
class EspeakOptions(TypedDict, total=False):
    """Of eSpeak NG."""

    voice: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9+_-]{1,39}$")]  # a language, and maybe +f3
    speed: Annotated[float, Field(ge=0.5, le=2.5)]
    format: Literal["wav"]


@with_config(strict=True)
class PocketsphinxOptions(TypedDict, total=False):
    """Of PocketSphinx, whose model is of American English."""

    language: Annotated[str, Field(pattern=r"^en(-[A-Za-z]{2,4})?$")]
    timestamps: Literal["segment"]


@dataclass(slots=True, frozen=True)
class SpeechProgram:
    """Which package answers for a model, in whose shape, and what it can be asked."""

    package: str
    wire: OpenAISpeech | OpenAITranscription
    options: type[Any]


PROGRAMS = {
    "espeak": SpeechProgram("espeakng_loader", OpenAISpeech(), EspeakOptions),
    "pocketsphinx": SpeechProgram("pocketsphinx", OpenAITranscription(), PocketsphinxOptions),
}


def missing_extra(model: str) -> str | None:
    """What to install before `local/MODEL` can speak or listen; None where nothing is missing."""
    program = PROGRAMS.get(model)
    return describe_missing(program.package) if program and find_spec(program.package) is None else None


class SpeechModel:
    """A program that speaks or listens. Satisfies `wire.Model`. ConfigError where it is not installed."""

    def __init__(self, program: SpeechProgram, name: str, attachments: AttachmentReader) -> None:
        require(program.package)
        self.name = name
        self.context: int | None = None
        self.variant: Mapping[str, JsonValue] = {}
        self._program = program
        self._attachments = attachments

    def __repr__(self) -> str:
        return f"SpeechModel({self.name!r})"

    def check_options(self, options: Mapping[str, JsonValue]) -> None:
        check_media_options(options, self._program.options, model=self.name, extra=())

    def check_files(self, files: Sequence[File]) -> None:
        for file in files:
            if not is_text(file) and media_type(file) != "audio/wav":
                raise BadRequest(
                    sentence(
                        "sound.not_wav",
                        file=file.name or "the recording",
                        media_type=file.media_type,
                        name=self.name,
                    )
                )

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        self.check_options(request.options)
        wire = self._program.wire
        request = wire.select(request)
        attachments = await self._attachments.read(request, wire)
        body = write_large(_bounded(wire.encode(request, attachments)), attachments.contents)
        decoder = wire.decoder(reply)
        async with _child(body) as child, aclosing(_frames(child)) as frames:
            async for frame in frames:
                if events := [*decoder.feed(frame)]:
                    yield events
            yield [*decoder.end()]


def _bounded(body: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if len(str(body.get("input", ""))) > LONGEST_TEXT:
        raise BadRequest(sentence("speech.too_long", most=LONGEST_TEXT))
    return body


@asynccontextmanager
async def _child(body: Payload) -> AsyncIterator[Process]:
    """A process that answers this body. It is gone when the block is left, however that comes."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "dragoman.providers.local.speech_child"),  # nothing out of this folder
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        limit=LONGEST_LINE,
    )
    try:
        assert process.stdin is not None
        with suppress(ConnectionError):  # it has died: that is seen when it is read
            async for piece in body.pieces():
                process.stdin.write(piece)
                await process.stdin.drain()
            process.stdin.close()
        yield process
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
        await process.wait()


async def _frames(process: Process) -> AsyncGenerator[bytes, None]:
    """What a decoder is fed: the bytes of a sound, or the frames of a transcript as they are."""
    assert process.stdout is not None
    async for line in process.stdout:
        if line.startswith(b'{"sound"'):
            yield a2b_base64(from_json(line)["sound"])
        elif line.startswith(b'{"error"'):
            raise ProviderError(from_json(line)["error"]["message"], kind="invalid_request")
        else:
            yield line
    if await process.wait() != 0:
        raise ProviderError(sentence("local.ended"), kind="server")


speech_model = {name: partial(SpeechModel, program) for name, program in PROGRAMS.items()}
"""Builds the model of `local/NAME`, for the names that speak or listen."""
