"""No framework: an aiohttp loop that splits the frames and parses their JSON, and nothing else."""

from __future__ import annotations

import aiohttp
from contest import measure, model, run, url
from pydantic_core import from_json


async def main() -> None:
    body = {"model": model(), "stream": True, "messages": [{"role": "user", "content": "go"}]}
    async with aiohttp.ClientSession() as session:

        async def turn() -> int:
            seen, rest = 0, b""
            async with session.post(f"{url()}/chat/completions", json=body) as response:
                while read := await response.content.readany():
                    *frames, rest = (rest + read).split(b"\n\n")
                    for frame in frames:
                        if frame != b"data: [DONE]":
                            from_json(frame[6:])
                            seen += 1
            return seen

        await measure(turn)


run(main)
