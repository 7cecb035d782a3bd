"""A provider on the loopback address, and a wire with one word: only the HTTP is under test."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import JsonValue
from pydantic_core import from_json, to_json

from dragoman.messages.events import Event, MessageEnd, TextDelta
from dragoman.messages.message import File, Text
from dragoman.messages.request import Request, RequestMessage
from dragoman.wire.auth.auth import KeyAuth
from dragoman.wire.endpoint import Endpoint
from dragoman.wire.files.file_parts import NO_ATTACHMENTS, Attachments
from dragoman.wire.http_client.client import HttpClient
from dragoman.wire.http_client.http_model import HttpModel
from dragoman.wire.options import Extra, check_options
from dragoman.wire.provider_errors import provider_error

KEY = "sk-very-secret-0123456789"
NOW = 1_700_000_000.0

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

# ── a wire with one word, so that only the HTTP is under test ─────────────────────────────────────


class Plain:
    """Frames are `{"say": …}`, `{"end": …}` or `{"error": …}`."""

    name = "plain"
    options: frozenset[str] = frozenset()

    def check_options(self, options: Mapping[str, JsonValue], *, model: str, extra: Extra) -> None:
        check_options(options, model=model, words=self.options, extra=extra)

    def carries(self, file: File) -> bool:
        return True

    def encode(self, request: Request, attachments: Attachments = NO_ATTACHMENTS) -> dict[str, JsonValue]:
        sent = [part.text for message in request.messages for part in message.parts if isinstance(part, Text)]
        return {"model": request.model, "texts": [*sent]}

    def decoder(self, reply: str) -> PlainDecoder:
        return PlainDecoder()


class PlainDecoder:
    def __init__(self) -> None:
        self.finish_word: str | None = None

    def feed(self, frame: bytes) -> Iterator[Event]:
        if frame == b"[DONE]":
            return
        sent = from_json(frame)
        if "error" in sent:
            raise provider_error(sent)
        self.finish_word = sent.get("end", self.finish_word)
        if "say" in sent:
            yield TextDelta(sent["say"])

    def end(self) -> Iterator[Event]:
        yield MessageEnd(self.finish_word or "unknown")


def frame(**sent: JsonValue) -> bytes:
    return b"data: " + to_json(sent) + b"\n\n"


HELLO = frame(say="Hel") + frame(say="lo") + frame(end="stop")

# ── a provider that plays its part ────────────────────────────────────────────────────────────────


@dataclass
class Provider:
    """Answers each request with the next handler, the last one again and again."""

    handlers: list[Handler]
    url: str = ""
    requests: list[web.Request] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        body = await request.read()
        self.bodies.append(from_json(body) if body else None)
        self.asked.set()
        handler = self.handlers[min(len(self.requests), len(self.handlers)) - 1]
        try:
            return await handler(request)
        except asyncio.CancelledError:
            self.hung_up.set()
            raise


@asynccontextmanager
async def provider(*handlers: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[Provider]:
    """Run a server that notices a disconnected client."""
    served = Provider(list(handlers))
    app = web.Application(client_max_size=1 << 26)
    app.router.add_route("*", "/{path:.*}", served.answer)
    server = TestServer(app, scheme="https" if tls else "http")
    await server.start_server(ssl=tls)
    served.url = str(server.make_url("/v1"))
    try:
        yield served
    finally:
        await server.close()


def streams(*pieces: bytes, then: Handler | None = None) -> Handler:
    """Return an event stream in these network writes. `then` can break its end."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            await asyncio.sleep(0.005)  # makes each write a separate read
        if then is not None:
            await then(request)
        return response

    return handler


def answers(
    status: int, body: JsonValue | str, headers: dict[str, str] | None = None, media_type: str | None = None
) -> Handler:
    """A plain response."""

    async def handler(request: web.Request) -> web.StreamResponse:
        text = body if isinstance(body, str) else to_json(body).decode()
        media = media_type or ("text/plain" if isinstance(body, str) else "application/json")
        return web.Response(status=status, text=text, headers=headers, content_type=media)

    return handler


async def dies(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def waits(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    return web.Response()


# ── asking it ─────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Sleeps:
    """Replaces sleep: records the durations and takes no time."""

    seconds: list[float] = field(default_factory=list)

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(round(seconds, 3))


def client(sleeps: Callable[[float], Awaitable[object]] | None = None, **options: Any) -> HttpClient:
    options.setdefault("random", lambda: 1.0)
    return HttpClient(sleep=sleeps or Sleeps(), clock=lambda: NOW, **options)


def model(http: HttpClient, served: Provider, **changes: Any) -> HttpModel:
    endpoint = Endpoint(served.url, "chat", auth=KeyAuth(KEY, "PLAIN_API_KEY"))
    return HttpModel(http, Plain(), replace(endpoint, **changes), model="small", name="plain/small")


def question(text: str = "Hello?") -> Request:
    return Request("plain/small", (RequestMessage("user", (Text(text),)),))


async def ask(http_model: HttpModel, received: list[Event] | None = None) -> list[list[Event]]:
    batches = []
    async for events in http_model.stream(question(), "msg_1"):
        batches.append(events)
        if received is not None:
            received.extend(events)
    return batches


async def text_of(http_model: HttpModel) -> str:
    return "".join(
        event.text for events in await ask(http_model) for event in events if isinstance(event, TextDelta)
    )
