"""One agent gives work to another."""

from pydantic_ai import Agent, RunContext
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


def note(text: str) -> str:
    """Write a note."""
    return f"noted {text}"


async def main(url: str) -> str:
    provider = OpenAIProvider(base_url=url, api_key="-")
    clerk = Agent(OpenAIChatModel("clerk", provider=provider), instructions="You are a clerk.", tools=[note])
    outer = Agent(OpenAIChatModel("agents", provider=provider))

    @outer.tool
    async def task(context: RunContext[None], agent: str, request: str) -> str:
        """Give a piece of work to an agent: the clerk."""
        return (await clerk.run(request, usage=context.usage)).output

    return (await outer.run("We are out of milk.")).output
