"""Dragoman's wire: the HTTP client and the chat-completions decoder, events consumed."""

from __future__ import annotations

from dataclasses import replace

from asked import request
from contest import measure, model, run, url

from dragoman.wire.auth.auth import KeyAuth
from dragoman.wire.endpoint import ENDPOINTS
from dragoman.wire.http_client.client import HttpClient
from dragoman.wire.http_client.http_model import HttpModel
from dragoman.wire.openai_chat import WIRE


async def main() -> None:
    endpoint = replace(ENDPOINTS["openai_chat"], base_url=url(), auth=KeyAuth("secret"))
    async with HttpClient(use_environment=False) as client:
        wired = HttpModel(client, WIRE(), endpoint, model=model())

        async def turn() -> int:
            seen = 0
            async for events in wired.stream(request(), "msg_1"):
                for event in events:
                    if event.type == "text.delta":
                        seen += 1
            return seen

        await measure(turn)


run(main)
