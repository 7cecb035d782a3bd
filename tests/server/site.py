"""A server to test: a runtime with a scripted model on a real socket, and a signed-in client."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import sqlite3
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp

from dragoman import Runtime
from dragoman.server.app import routes, server
from dragoman.server.auth import Auth, load_secret
from dragoman.server.connections import ConnectionLimits
from dragoman.server.listener import HttpServer
from dragoman.server.oidc import OidcProvider, OidcSettings
from dragoman.server.proxies import Proxies
from dragoman.wire.http_client.client import HttpClient
from dragoman.wire.scripted import Script
from tests.runtimes import runtime_with

SMALL = 100_000  # bytes of an upload


@dataclass
class Answer:
    """The answer of the server to one request."""

    status: int
    body: Any
    headers: dict[str, str]


@dataclass
class Site:
    """A server that runs, and a person who uses it."""

    url: str
    runtime: Runtime
    auth: Auth
    http: aiohttp.ClientSession
    key: str
    stop: Callable[[], None] = lambda: None  # the first effect of a signal: readers are released

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        headers = {"authorization": f"Bearer {self.key}", **more.pop("headers", {})}
        if body is not None:
            more["data"] = io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
            headers.setdefault("content-type", "application/json")
        async with self.http.request(
            method,
            self.url + path,
            headers={k: v for k, v in headers.items() if v},
            allow_redirects=False,
            **more,
        ) as response:
            raw = await response.read()
            is_json = "json" in response.headers.get("content-type", "")
            headers = {name.lower(): value for name, value in response.headers.items()}
            return Answer(response.status, json.loads(raw) if is_json and raw else raw, headers)

    async def get(self, path: str, **more: Any) -> Any:
        return _good(await self.ask("GET", path, **more))

    async def post(self, path: str, body: Any = None, **more: Any) -> Any:
        return _good(await self.ask("POST", path, {} if body is None else body, **more))

    async def conversation(self) -> str:
        id: str = (await self.post("/api/conversations"))["id"]
        return id

    async def say(self, text: str, conversation: str | None = None, **more: Any) -> str:
        id = conversation or await self.conversation()
        turn: str = (await self.post(f"/api/conversations/{id}/turns", {"text": text, **more}))["turn"]
        return turn

    async def state(self, turn: str) -> str:
        state: str = (await self.get(f"/api/turns/{turn}"))["state"]
        return state

    async def question(self) -> dict[str, Any]:
        """Return the first approval request as soon as it exists."""
        while not (items := (await self.get("/api/questions"))["items"]):  # noqa: ASYNC110 - over HTTP, by asking
            await asyncio.sleep(0.01)
        question: dict[str, Any] = items[0]
        return question

    @asynccontextmanager
    async def events(self, path: str, after: str | None = None) -> AsyncIterator[AsyncIterator[Received]]:
        headers = {"authorization": f"Bearer {self.key}"} | ({"last-event-id": after} if after else {})
        async with self.http.get(self.url + path, headers=headers) as response:
            assert response.status == 200, await response.text()
            yield _frames(response)

    async def until(self, path: str, type: str, after: str | None = None) -> list[Received]:
        """Everything up to the first event of this type."""
        received = []
        async with self.events(path, after) as events:
            async for event in events:
                received.append(event)
                if event.type == type:
                    break
        return received


@dataclass
class Received:
    """One event of a stream."""

    id: str
    type: str
    data: Any


async def _frames(response: aiohttp.ClientResponse) -> AsyncIterator[Received]:
    fields: dict[str, str] = {}
    async for line in response.content:
        text = line.decode().rstrip("\n")
        if text.startswith(":"):
            continue
        if text:
            name, _, value = text.partition(": ")
            fields[name] = value
        elif fields:
            yield Received(fields.get("id", ""), fields["event"], json.loads(fields["data"]))
            fields = {}


@contextmanager
def database(folder: Path) -> Iterator[sqlite3.Connection]:
    """The database behind the server's back, as another program sees it."""
    with closing(sqlite3.connect(folder / "chat.db", isolation_level=None)) as db:
        yield db


def _good(answer: Answer) -> Any:
    assert answer.status < 300, (answer.status, answer.body)
    return answer.body


@cache
def description() -> dict[str, Any]:
    """Return the description of the API, cached because it takes long to build."""
    return routes().openapi()


@asynccontextmanager
async def served(
    folder: Path,
    script: Script,
    *,
    password: str | None = None,
    proxies: Sequence[str] = (),
    origins: Sequence[str] = (),
    path: str = "",
    oidc: OidcSettings | None = None,
    **options: Any,
) -> AsyncIterator[Site]:
    async with (
        runtime_with(folder, script, **options) as runtime,
        serving(
            folder, runtime, password=password, proxies=proxies, origins=origins, path=path, oidc=oidc
        ) as site,
    ):
        yield site


@asynccontextmanager
async def serving(
    folder: Path,
    runtime: Runtime,
    *,
    password: str | None = None,
    limits: ConnectionLimits | None = None,
    proxies: Sequence[str] = (),
    origins: Sequence[str] = (),
    path: str = "",
    listener: socket.socket | None = None,
    oidc: OidcSettings | None = None,
) -> AsyncIterator[Site]:
    """A runtime that is open already."""
    secret = load_secret(folder / "secret")
    client = HttpClient()
    provider = OidcProvider(oidc, client) if oidc is not None else None
    auth = Auth(runtime.store, secret, token="launch", key="key of local", password=password, oidc=provider)
    named = Proxies(proxies)
    app = server(runtime, auth, upload_limit=SMALL, proxies=named, origins=origins, path=path)
    async with (
        client,
        listening(app, limits=limits, proxies=named, listener=listener) as url,
        aiohttp.ClientSession() as http,
    ):
        stop = app.state.context.publisher.close
        yield Site(url, runtime, auth, http, key="key of local", stop=stop)
        stop()


@asynccontextmanager
async def listening(app: Any, *, listener: socket.socket | None = None, **options: Any) -> AsyncIterator[str]:
    """The application on a free port of this machine."""
    listener = listener or socket.create_server(("127.0.0.1", 0))
    running = _Quick(app, **options, lifespan="off")
    task = asyncio.create_task(running.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        running.ended.set()
        await task
        listener.close()


class _Quick(HttpServer):
    """An HTTP server that leaves signals to pytest and stops quickly: uvicorn checks only ten times
    a second."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.ended = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self.ended.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        state = self.server_state
        for listener in self.servers:
            listener.close()
        for connection in list(state.connections):
            connection.shutdown()
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                while state.connections or state.tasks:  # noqa: ASYNC110 - they tell nobody
                    await asyncio.sleep(0.001)
        for task in (cancelled := list(state.tasks)):
            task.cancel()
        await asyncio.gather(*cancelled, return_exceptions=True)
        for connection in list(state.connections):
            connection.transport.abort()
        for listener in self.servers:
            await listener.wait_closed()
