"""Provide MCP servers that run for the length of a block, and find their tools by the original names."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from subprocess import DEVNULL, Popen
from typing import Any, Literal

from pydantic import JsonValue

from dragoman.tools.execute import Outcome
from dragoman.tools.mcp.servers import McpServer, offered_name
from dragoman.tools.mcp.source import McpSource
from dragoman.tools.tool import Tool
from tests.fork_server import python
from tests.patience import PATIENCE
from tests.tools.bench import Bench
from tests.tools.mcp.npm import NODE, script
from tests.tools.mcp.servers import MODERN, RAW

NAME = "it"
Way = Literal["stdio", "http", "sse"]


@asynccontextmanager
async def source(server: McpServer, *, ready: bool = True, **options: Any) -> AsyncIterator[McpSource]:
    """Yield a source, by default after its server had all the time it needs."""
    made = McpSource(NAME, server, **{"patience": PATIENCE, **options})
    try:
        if ready:
            await made.ready()
            assert made.state == "running", made.error
        yield made
    finally:
        await made.close()


def raw(how: str = "well", heard: object = os.devnull, **settings: Any) -> McpServer:
    """The one that misbehaves."""
    return McpServer(command=sys.executable, args=(RAW, how, str(heard)), **settings)


def tool(source: McpSource, name: str) -> Tool:
    return next(one for one in source.group().tools if one.name == offered_name(source.name, name))


async def call(source: McpSource, name: str, bench: Bench | None = None, **arguments: JsonValue) -> Outcome:
    return await (bench or Bench()).run(tool(source, name), arguments)


@contextmanager
def everything(way: Way = "stdio", **settings: Any) -> Iterator[McpServer]:
    """The official server that has one of everything."""
    file = script("server-everything", "dist/index.js")
    if way == "stdio":
        yield McpServer(command=NODE, args=(file,), **settings)
        return
    with listening(NODE, file, "sse" if way == "sse" else "streamableHttp") as port:
        path = "sse" if way == "sse" else "mcp"
        yield McpServer(url=f"http://127.0.0.1:{port}/{path}", transport=way, **settings)


@contextmanager
def modern(way: Way = "stdio", heard: object = os.devnull, **settings: Any) -> Iterator[McpServer]:
    """A server that speaks the newest protocol."""
    if way == "stdio":
        command, *words = python(MODERN, "stdio", str(heard))
        yield McpServer(command=command, args=tuple(words), **settings)
        return
    with listening(*python(MODERN, way, str(heard))) as port:
        yield McpServer(url=f"http://127.0.0.1:{port}/mcp", **settings)


@contextmanager
def listening(*command: str, port: int | None = None) -> Iterator[int]:
    """A program that listens on the port it finds in PORT, from when it does until the block ends."""
    port = port or free_port()
    process = Popen(
        command, env={**os.environ, "PORT": str(port)}, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
    )
    try:
        until = time.monotonic() + PATIENCE
        while not _answers(port):  # nothing tells when a foreign program begins to listen
            assert process.poll() is None, f"{command} ended"
            assert time.monotonic() < until, f"{command} does not listen"
            time.sleep(0.05)
        yield port
    finally:
        process.kill()
        process.wait()
        until = time.monotonic() + PATIENCE
        while _answers(port) and time.monotonic() < until:  # its forked children are killed in a moment
            time.sleep(0.01)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
