"""Show the answer while it is written."""

from dragoman import OpenAICompatible, Runtime


async def main(url: str) -> str:
    shown = ""
    async with Runtime("chat.db", model=OpenAICompatible(url, "stream")) as runtime:
        turn = await runtime.send("Say something.")
        async for event in turn.events():
            if event.type == "text.delta":
                shown += event.text
    return shown
