"""Look up context for the model before each request."""

from dragoman import OpenAICompatible, Plugin, Runtime, TurnView


class Retrieval(Plugin):
    async def system_prompt(self, text: str, turn: TurnView) -> str:
        return f"{text}\n\nThe shop closes at {turn.deps['closes']}."


async def main(url: str) -> str:
    async with Runtime("chat.db", model=OpenAICompatible(url, "context"), plugins=[Retrieval()]) as runtime:
        turn = await runtime.send("When do you close?", deps={"closes": "six"})
        return (await turn.result()).text
