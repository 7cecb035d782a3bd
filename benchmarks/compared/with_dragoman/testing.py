"""A test of an agent, without a model."""

from dragoman import Runtime, ScriptedModel, tool
from dragoman.testing import calls, expect, says


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def main(url: str) -> str:
    model = ScriptedModel([calls("add", a=17, b=23), says("It is 40.")])
    async with Runtime("chat.db", model=model, tools=[add], allow=["add"]) as runtime:
        result = await (await runtime.send("What is 17 + 23?")).result()
    expect(result).called("add", a=17, b=23).answered("40")
    return result.text
