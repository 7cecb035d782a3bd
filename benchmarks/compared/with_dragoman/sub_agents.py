"""One agent gives work to another."""

from dragoman import Agent, OpenAICompatible, Runtime, tool


@tool
def note(text: str) -> str:
    """Write a note."""
    return f"noted {text}"


async def main(url: str) -> str:
    models = [OpenAICompatible(url, "agents", name="here"), OpenAICompatible(url, "clerk", name="here")]
    clerk = Agent(name="clerk", prompt="You are a clerk.", model="here/clerk", tools=("tools.note",))
    async with Runtime("chat.db", model=models, tools=[note], agents=[clerk], allow=["*"]) as runtime:
        return (await (await runtime.send("We are out of milk.")).result()).text
