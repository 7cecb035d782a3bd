"""Dragoman: the whole engine, events followed, store on disk."""

from __future__ import annotations

import tempfile
from dataclasses import replace

from contest import measure, model, run, url

from dragoman import Runtime, tool
from dragoman.wire.auth.auth import KeyAuth
from dragoman.wire.endpoint import ENDPOINTS
from dragoman.wire.http_client.client import HttpClient
from dragoman.wire.http_client.http_model import HttpModel
from dragoman.wire.openai_chat import WIRE


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def main() -> None:
    endpoint = replace(ENDPOINTS["openai_chat"], base_url=url(), auth=KeyAuth("secret"))
    client = HttpClient(use_environment=False)
    served = HttpModel(client, WIRE(), endpoint, model=model())
    with tempfile.TemporaryDirectory() as folder:
        async with Runtime(
            f"{folder}/chat.db",
            model=served,
            tools=[add],
            allow=["*"],
            max_rounds=1000,
        ) as runtime:

            async def turn() -> int:
                seen = 0
                handle = await runtime.send("go")
                async for event in handle.events():
                    if event.type == "text.delta":
                        seen += 1
                await handle.result()
                return seen

            await measure(turn)
        await client.close()


run(main)
