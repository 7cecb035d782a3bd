"""A custom provider that fails: another one answers."""

from dragoman import OpenAICompatible, Runtime


async def main(url: str) -> str:
    chain = [OpenAICompatible(url, "down"), OpenAICompatible(url, "up")]
    async with Runtime("chat.db", model=chain) as runtime:
        return (await (await runtime.send("Are you there?")).result()).text
