"""A model calls a function."""

from dragoman import OpenAICompatible, Runtime, tool


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def main(url: str) -> str:
    async with Runtime(
        "chat.db", model=OpenAICompatible(url, "tools"), tools=[add], allow=["add"]
    ) as runtime:
        return (await (await runtime.send("What is 17 + 23?")).result()).text
