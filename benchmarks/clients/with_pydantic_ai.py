"""pydantic-ai: an agent run with streamed events, in memory."""

from __future__ import annotations

from contest import measure, model, run, url
from pydantic_ai import Agent, PartDeltaEvent, PartStartEvent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits


async def main() -> None:
    provider = OpenAIProvider(base_url=url(), api_key="secret")
    agent = Agent(OpenAIChatModel(model(), provider=provider))

    @agent.tool_plain
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    limits = UsageLimits(request_limit=None)

    async def turn() -> int:
        seen = 0
        async with agent.iter("go", usage_limits=limits) as steps:
            async for node in steps:
                if Agent.is_model_request_node(node):
                    async with node.stream(steps.ctx) as events:
                        async for event in events:
                            seen += isinstance(event, PartDeltaEvent | PartStartEvent)
        return seen

    await measure(turn)


run(main)
