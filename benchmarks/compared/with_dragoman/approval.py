"""Ask a user before a tool runs."""

from dragoman import OpenAICompatible, Runtime, allow_once, tool


@tool
def delete(path: str) -> str:
    """Delete a file."""
    return f"{path} is gone"


async def main(url: str) -> str:
    async with Runtime("chat.db", model=OpenAICompatible(url, "approval"), tools=[delete]) as runtime:
        turn = await runtime.send("Delete a.txt")
        await turn.reached("waiting")
        await turn.answer(turn.question, allow_once())
        return (await turn.result()).text
