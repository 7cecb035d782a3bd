"""A provider on the loopback address that makes images, listens and speaks as OpenAI, Groq and xAI do.

It checks what it gets as strictly as they do.
"""

from __future__ import annotations

import asyncio
import base64
import struct
import wave
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from aiohttp import BodyPartReader, web
from pydantic_core import from_json, to_json

KEY = "sk-media-0123456789"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def png(width: int = 4, height: int = 4, colour: bytes = b"\x00\x80\xff") -> bytes:
    """A picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\x00" + colour * width) * height
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def size_of(picture: bytes) -> str:
    """Return the size that an image's header states."""
    if not picture.startswith(b"\x89PNG"):
        raise ValueError("no PNG")
    width, height = struct.unpack(">II", picture[16:24])
    return f"{width}x{height}"


def wav(seconds: float = 0.25, rate: int = 8000) -> bytes:
    """Silence."""
    out = BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes(b"\0\0" * int(seconds * rate))
    return out.getvalue()


def mp3(seconds: float) -> bytes:
    """Silence, in frames of 26 milliseconds."""
    frame = bytes((0xFF, 0xFB, 0x90, 0x64)) + bytes(413)
    return frame * int(seconds / 0.026122)


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def refusal(status: int, message: str, **more: Any) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None, **more}
    return web.json_response({"error": error}, status=status)


async def streamed(request: web.Request, *frames: dict[str, Any]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for frame in frames:
        await response.write(b"data: " + to_json(frame) + b"\n\n")
        await asyncio.sleep(0)
    return response


@dataclass
class Upload:
    """A file of a form."""

    name: str
    type: str
    data: bytes


@dataclass
class MediaServer:
    """A provider of media models that records requests. The handlers in `instead` answer first, one request
    each."""

    url: str = ""
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)  # path, and fields of the body
    instead: list[Handler] = field(default_factory=list)
    began: asyncio.Event = field(default_factory=asyncio.Event)
    sound: bytes = field(default_factory=lambda: wav(4.0))
    picture: bytes = field(default_factory=png)
    heard: str = "The quick brown fox."

    @property
    def fields(self) -> dict[str, Any]:
        """Return the fields of the last request."""
        return self.asked[-1][1]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path.removeprefix("/v1/")
        self.asked.append((path, await form_fields(request)))
        self.began.set()
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return refusal(401, "Incorrect API key provided", code="invalid_api_key")
        if self.instead:
            return await self.instead.pop(0)(request)
        match path:
            case "images/generations":
                return await self._pictures(request, "image_generation")
            case "images/edits":
                if (wrong := self._wrong_pictures()) is not None:
                    return refusal(400, wrong)
                return await self._pictures(request, "image_edit")
            case "audio/transcriptions":
                return await self.transcript(request)
            case "audio/speech":
                return await self.speech(request)
            case _:
                return refusal(404, f"Unknown request URL: POST /v1/{path}")

    async def made(self, request: web.Request) -> web.StreamResponse:
        """Serve an image at an address that needs no key."""
        assert "Authorization" not in request.headers
        return web.Response(body=self.picture, content_type="image/png")

    # ── pictures ──────────────────────────────────────────────────────────────────────────────────

    async def _pictures(self, request: web.Request, kind: str) -> web.StreamResponse:
        asked = self.fields
        if not asked.get("prompt"):
            return refusal(400, "Missing required parameter: 'prompt'.", param="prompt")
        named = str(asked["model"])
        if named.startswith("gpt-image") and "response_format" in asked:
            return refusal(400, "Unknown parameter: 'response_format'.", param="response_format")
        if not named.startswith("gpt-image") and asked.get("stream"):
            return refusal(400, "Unknown parameter: 'stream'.", param="stream")
        count, data = int(asked.get("n", 1)), coded(self.picture)
        usage = {"input_tokens": 20, "output_tokens": 100, "total_tokens": 120}
        if str(asked.get("stream")).lower() != "true":
            made = [{"b64_json": data, "revised_prompt": "a blue square"} for _ in range(count)]
            return web.json_response(
                {"created": 1, "data": made, **({"usage": usage} if named.startswith("gpt") else {})}
            )
        frames = [
            {"type": f"{kind}.partial_image", "partial_image_index": n, "b64_json": coded(png(2, n + 1))}
            for n in range(int(asked.get("partial_images", 0)))
        ]
        return await streamed(
            request, *frames, {"type": f"{kind}.completed", "b64_json": data, "usage": usage}
        )

    def _wrong_pictures(self) -> str | None:
        asked = self.fields
        images: Any = asked.get("image[]", asked.get("image"))
        listed: list[Any] = images if isinstance(images, list) else [images]
        if isinstance(listed[0], dict):  # xAI's
            return None if str(listed[0].get("url")).startswith("data:image/") else "no picture"
        if not all(isinstance(one, Upload) and one.type.startswith("image/") for one in listed):
            return "Invalid file 'image': expected a picture."
        if (mask := asked.get("mask")) is not None and size_of(mask.data) != size_of(listed[0].data):
            return "Invalid mask image format - mask size does not match image size"
        return None

    # ── sound ─────────────────────────────────────────────────────────────────────────────────────

    async def transcript(self, request: web.Request) -> web.StreamResponse:
        asked, file = self.fields, self.fields.get("file")
        if not isinstance(file, Upload) or not file.data:
            return refusal(400, "Missing required parameter: 'file'.", param="file")
        if file.name.rpartition(".")[2] not in ("wav", "mp3", "m4a", "ogg", "flac", "webm"):
            return refusal(400, f"Unrecognized file format: {file.name}")
        if asked.get("response_format") == "verbose_json":
            if "whisper" not in asked["model"]:
                return refusal(400, "response_format 'verbose_json' is not compatible with this model")
            segment = {"id": 0, "start": 0.0, "end": 1.5, "text": f" {self.heard}", "tokens": [1, 2]}
            found = {"task": "transcribe", "language": "english", "duration": 1.5, "segments": [segment]}
            return web.json_response({"text": f" {self.heard}", **found})
        words = [{"type": "transcript.text.delta", "delta": f"{word} "} for word in self.heard.split()]
        usage = {"type": "tokens", "input_tokens": 14, "output_tokens": 5, "total_tokens": 19}
        done = {"type": "transcript.text.done", "text": self.heard, "usage": usage}
        return await streamed(request, *words, done)

    async def speech(self, request: web.Request) -> web.StreamResponse:
        asked = self.fields
        if not asked.get("input") or not asked.get("voice"):
            return refusal(400, "Missing required parameter: 'voice'.", param="voice")
        response = web.StreamResponse(headers={"Content-Type": "audio/wav"})
        await response.prepare(request)
        for at in range(0, len(self.sound), 10_000):
            await response.write(self.sound[at : at + 10_000])
            await asyncio.sleep(0)
        return response


def speaks_slowly(server: MediaServer, begun: int, go_on: asyncio.Event) -> Handler:
    """Return a handler that sends the first bytes of the audio, and the rest when released."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "audio/wav"})
        await response.prepare(request)
        await response.write(server.sound[:begun])
        await go_on.wait()
        await response.write(server.sound[begun:])
        return response

    return handler


def hangs(server: MediaServer) -> Handler:
    """Begins a stream, and never ends it."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        partial = {"type": "image_generation.partial_image", "b64_json": coded(server.picture)}
        await response.write(b"data: " + to_json(partial) + b"\n\n")
        await asyncio.Event().wait()
        return response

    return handler


def cut_sound(data: bytes) -> Handler:
    """Breaks off in the middle of a sound."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "audio/wav"})
        await response.prepare(request)
        await response.write(data)
        assert request.transport is not None
        request.transport.abort()
        return response

    return handler


def fails(*refused: Any, headers: dict[str, str] | None = None, **more: Any) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = refusal(*refused, **more)
        response.headers.update(headers or {})
        return response

    return handler


async def form_fields(request: web.Request) -> dict[str, Any]:
    if request.content_type == "application/json":
        fields: dict[str, Any] = from_json(await request.read())
        return fields
    found: dict[str, Any] = {}
    async for part in await request.multipart():
        assert isinstance(part, BodyPartReader)
        data, name = bytes(await part.read()), str(part.name)
        value: Any = (
            data.decode()
            if part.filename is None
            else Upload(part.filename, part.headers.get("Content-Type", ""), data)
        )
        if name.endswith("[]"):
            found.setdefault(name, []).append(value)
        else:
            found[name] = value
    return found


@asynccontextmanager
async def media_server(served: MediaServer | None = None) -> AsyncIterator[MediaServer]:
    """A server on a free port, for as long as the block runs."""
    served = served or MediaServer()
    app = web.Application(client_max_size=1 << 28)
    app.router.add_post("/{path:.*}", served.answer)
    app.router.add_get("/made/{name}", served.made)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        served.url = f"http://{host}:{port}/v1"
        yield served
    finally:
        await runner.cleanup()
