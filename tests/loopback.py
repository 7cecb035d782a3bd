"""Provide a provider on loopback that plays scripted lines, or any bytes, over real HTTP as OpenAI would.

    async with loopback(calls("add", a=1, b=2), says("3")) as server:
        …  # each request to server.url gets the next reply

A reply is a `Line` of the scripted model, a `Stream` of raw network writes, an `Answer` that is not a stream,
or a function that makes one of these from the request's body. The last reply is repeated.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from aiohttp import web

from dragoman.wire.scripted import Line

Frame: TypeAlias = dict[str, Any] | bytes
Body: TypeAlias = dict[str, Any]

DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Stream:
    """Network writes, the pause between them, and how the connection ends. An event among them is awaited."""

    pieces: tuple[bytes | asyncio.Event, ...]
    then: Literal["ends", "dies", "stalls"] = "ends"
    pause: float = 0.002  # so that each write is a separate read


@dataclass(frozen=True)
class Answer:
    """A response that is not a stream."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


Reply: TypeAlias = Line | Stream | Answer
Script: TypeAlias = Reply | Callable[[Body], Reply]

# ── chunks ────────────────────────────────────────────────────────────────────────────────────────


def delta(finish: str | None = None, **said: Any) -> Frame:
    """A chunk with one choice: `delta(content="Hi")`."""
    choice = {"index": 0, "delta": said, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]}


def call_piece(name: str | None = None, arguments: Any = None, **said: Any) -> Frame:
    """A chunk with a piece of one call: `call_piece("add", '{"a"', index=0, id="call_1")`."""
    function = {"name": name, "arguments": arguments}
    given = {key: value for key, value in function.items() if value is not None}
    return delta(tool_calls=[{"type": "function", "function": given, **said}])


def usage(input: int = 10, output: int = 5) -> Frame:
    """The chunk without choices that comes last."""
    tokens = {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": tokens}


def sse(*frames: Frame) -> bytes:
    data = (frame if isinstance(frame, bytes) else json.dumps(frame).encode() for frame in frames)
    return b"".join(b"data: " + one + b"\n\n" for one in data)


def stream(
    *frames: Frame,
    finish: str | None = "stop",
    done: bool = True,
    then: Literal["ends", "dies", "stalls"] = "ends",
) -> Stream:
    """Return these frames, each as a network write, with the usual end unless it is left out.

    A stream that stalls or dies has no `[DONE]`, which would end it for the client.
    """
    ending = [] if finish is None else [delta(finish)]
    tail = [DONE] if done and then == "ends" else []
    return Stream((*(sse(frame) for frame in (*frames, *ending)), *tail), then)


def as_stream(line: Line, *, piece: int = 8) -> Stream:
    """A scripted line as OpenAI would send it."""
    finish = line.finish or ("tool_calls" if line.calls else "stop")
    last = usage(line.usage.input, line.usage.output)
    failed = line.error is not None
    frames = [*_frames(line, piece), *([] if failed else [delta(finish), last])]
    pieces = tuple(sse(frame) for frame in frames)
    return Stream(
        pieces if failed else (*pieces, DONE), "dies" if failed else "ends", pause=max(line.waits, 0.0)
    )


def _frames(line: Line, piece: int) -> Iterator[Frame]:
    yield delta(role="assistant", content="")
    for text in _pieces(line.thinks, piece):
        yield delta(reasoning_content=text)
    for text in _pieces(line.text, piece):
        yield delta(content=text)
    for index, call in enumerate(line.calls):
        raw = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
        yield call_piece(call.tool, "", index=index, id=f"call_{index}")
        for text in _pieces(raw, piece):
            yield call_piece(None, text, index=index)


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


# ── the server ────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Loopback:
    """A server that runs. `bodies` are the requests it got, `keys` the authorizations they came with."""

    script: list[Script]
    models: list[str] = field(default_factory=lambda: ["model"])
    url: str = ""
    bodies: list[Body] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)  # of each request
    listed_for: list[str | None] = field(default_factory=list)  # authorizations of who asked for models
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)  # a client disconnected before the end

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2].partition("/")[0])

    def messages(self, request: int = -1) -> list[dict[str, Any]]:
        """Return the messages of a request, by default the last one."""
        messages: list[dict[str, Any]] = self.bodies[request]["messages"]
        return messages

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body: Body = json.loads(await request.read())
        self.bodies.append(body)
        self.keys.append(request.headers.get("Authorization"))
        self.headers.append(dict(request.headers))
        script = self.script[min(len(self.bodies), len(self.script)) - 1]
        reply = script(body) if callable(script) else script
        if isinstance(reply, Answer):
            return web.json_response(reply.body, status=reply.status, headers=reply.headers)
        try:
            return await _play(request, as_stream(reply) if isinstance(reply, Line) else reply)
        except ConnectionResetError:
            self.hung_up.set()
            raise

    async def list_models(self, request: web.Request) -> web.StreamResponse:
        self.listed_for.append(request.headers.get("Authorization"))
        listed = [{"id": name, "object": "model"} for name in self.models]
        return web.json_response({"object": "list", "data": listed})


async def _play(request: web.Request, stream: Stream) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for piece in stream.pieces:
        if isinstance(piece, asyncio.Event):
            await piece.wait()
            continue
        await response.write(piece)
        if stream.pause:
            await asyncio.sleep(stream.pause)
    if stream.then == "stalls":
        await asyncio.Event().wait()
    if stream.then == "dies":
        assert request.transport is not None
        request.transport.abort()
    return response


@asynccontextmanager
async def loopback(*script: Script, models: list[str] | None = None) -> AsyncIterator[Loopback]:
    """A server on a free port of the loopback address, for as long as the block runs."""
    server = Loopback(list(script), models if models is not None else ["model"])
    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/v1/{wire:.+}", server.chat)  # each wire uses a different address
    app.router.add_get("/v1/models", server.list_models)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        server.url = f"http://{host}:{port}/v1"
        yield server
    finally:
        await runner.cleanup()
