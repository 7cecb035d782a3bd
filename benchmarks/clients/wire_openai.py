"""The vendor's SDK: openai's client, chunks consumed."""

from __future__ import annotations

from contest import measure, model, run, url
from openai import AsyncOpenAI


async def main() -> None:
    async with AsyncOpenAI(base_url=url(), api_key="secret") as client:

        async def turn() -> int:
            seen = 0
            said = [{"role": "user", "content": "go"}]
            stream = await client.chat.completions.create(model=model(), messages=said, stream=True)
            async for chunk in stream:
                if chunk.choices and chunk.choices[0].delta.content:
                    seen += 1
            return seen

        await measure(turn)


run(main)
