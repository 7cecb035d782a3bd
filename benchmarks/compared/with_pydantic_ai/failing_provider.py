"""A custom provider that fails: another one answers."""

from pydantic_ai import Agent
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def main(url: str) -> str:
    provider = OpenAIProvider(base_url=url, api_key="-")
    chain = FallbackModel(
        OpenAIChatModel("down", provider=provider), OpenAIChatModel("up", provider=provider)
    )
    return (await Agent(chain).run("Are you there?")).output
