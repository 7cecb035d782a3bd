"""Stock clients of OpenAI's, pointed at a server of ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman import tool
from dragoman.wire.scripted import Script
from tests.later import Later
from tests.server.site import Site, served

if TYPE_CHECKING:
    import openai
    from openai import AsyncOpenAI
else:
    openai = Later("openai")

MODEL = "scripted/model"
WHERE: dict[str, Any] = {
    "type": "object",
    "properties": {"exact": {"type": "boolean"}, "near": {"type": "string"}},
    "additionalProperties": False,
}
CHAT_TOOL: Any = {
    "type": "function",
    "function": {"name": "where", "description": "Where the person is.", "parameters": WHERE, "strict": True},
}
RESPONSE_TOOL: Any = {"type": "function", "name": "where", "description": "", "parameters": WHERE}


def client_of(site: Site, key: str = "") -> AsyncOpenAI:
    """One of the newest SDK, which repeats nothing by itself, and reads no certificates: that is 50 ms."""
    http = openai.DefaultAsyncHttpxClient(verify=False)
    return openai.AsyncOpenAI(
        base_url=f"{site.url}/v1", api_key=key or site.key, max_retries=0, http_client=http
    )


@asynccontextmanager
async def called(folder: Path, script: Script, **options: Any) -> AsyncIterator[tuple[AsyncOpenAI, Site]]:
    """A client, and the server it talks to."""
    async with (
        served(folder, script, **options) as site,
        client_of(site) as client,
    ):
        yield client, site


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def result(call: str, text: str) -> Any:
    return {"role": "tool", "tool_call_id": call, "content": text}


async def conversations(site: Site) -> list[str]:
    return [one.id for one in await site.runtime.conversations()]


def waiting(gate: asyncio.Event) -> Any:
    """A tool that runs until the gate is open."""

    @tool(replay="safe")
    async def wait() -> str:
        "Wait."
        await gate.wait()
        return "waited"

    return wait
