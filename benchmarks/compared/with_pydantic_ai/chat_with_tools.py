"""A model calls a function."""

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def main(url: str) -> str:
    model = OpenAIChatModel("tools", provider=OpenAIProvider(base_url=url, api_key="-"))
    agent = Agent(model, tools=[add])
    return (await agent.run("What is 17 + 23?")).output
