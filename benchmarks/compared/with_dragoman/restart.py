"""The process ends while an approval request waits; the next process resumes."""

from dragoman import OpenAICompatible, Runtime, allow_once, tool


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def open_runtime(url: str) -> Runtime:
    return Runtime("chat.db", model=OpenAICompatible(url, "restart"), tools=[pay])


async def first(url: str) -> str:
    async with open_runtime(url) as runtime:
        turn = await runtime.send("Pay 12.")
        await turn.reached("waiting")
        return turn.id


async def second(url: str, id: str) -> str:
    async with open_runtime(url) as runtime:
        for question in await runtime.questions():
            await runtime.answer(question.id, allow_once())
        return (await runtime.turn(id).result()).text


async def main(url: str) -> str:
    return await second(url, await first(url))
