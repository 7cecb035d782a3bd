"""A stock client of the Model Context Protocol, the official SDK's, that talks with `dragoman mcp serve`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.cli.program import clean_environment
from tests.fork_server import python

SERVE = ("mcp", "serve")


class PlayedPerson:
    """A user who picks the first answer of a form that starts with this text. None closes the form."""

    def __init__(self, begins: str | None) -> None:
        self.begins = begins
        self.asked: list[Any] = []

    async def __call__(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestFormParams)
        self.asked.append(params)
        if self.begins is None:
            return types.ElicitResult(action="cancel")
        offered = params.requested_schema["properties"]["answer"].get("enum", [self.begins])
        chosen = next(one for one in offered if one.startswith(self.begins))
        return types.ElicitResult(action="accept", content={"answer": chosen})


def settings(folder: Path, *lines: str, base_url: str = "http://127.0.0.1:9/v1") -> None:
    """Write settings for a folder with its own store and, by default, a model endpoint that does not
    answer."""
    (folder / "home").mkdir(exist_ok=True)
    head = ['model = "stage/model"', f'store = "{folder / "home" / "chat.db"}"']
    stage = ["[providers.stage]", f'base_url = "{base_url}"', 'wire = "openai_chat"']
    (folder / "dragoman.toml").write_text("\n".join([*head, *lines, *stage]), "utf-8")


@asynccontextmanager
async def over_stdio(folder: Path, *flags: str, mode: str = "auto", **options: Any) -> AsyncIterator[Client]:
    program, *arguments = python("-m", "dragoman")
    server = StdioServerParameters(
        command=program, args=[*arguments, *SERVE, *flags], env=clean_environment(folder), cwd=str(folder)
    )
    with (folder / "errors.txt").open("a") as errors:
        async with Client(stdio_client(server, errlog=errors), mode=mode, **options) as client:
            yield client


@asynccontextmanager
async def http_server(folder: Path, *flags: str, files: int | None = None) -> AsyncIterator[tuple[str, str]]:
    """Its address, and its key. `files`: how many it may have open."""
    limited = ("bash", "-c", f'ulimit -n {files}; exec "$@"', "-") if files is not None else ()
    process = await asyncio.create_subprocess_exec(
        *limited,
        *python("-m", "dragoman"),
        *SERVE,
        "--http",
        "--port",
        "0",
        *flags,
        cwd=folder,
        env=clean_environment(folder),
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        found: list[str] = []
        while len(found) < 2 and (line := (await process.stderr.readline()).decode()):
            found += re.findall(r"http://\S+|(?<=Bearer )\S+", line)
        yield found[0], found[1]
    finally:
        process.terminate()
        await process.communicate()


@asynccontextmanager
async def over_http(url: str, key: str, *, mode: str = "auto", **options: Any) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"authorization": f"Bearer {key}"}, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, **options) as client,
    ):
        yield client


def text_of(result: types.CallToolResult) -> str:
    return "".join(one.text for one in result.content if isinstance(one, types.TextContent))


def names(tools: Sequence[types.Tool]) -> list[str]:
    return [one.name for one in tools]
