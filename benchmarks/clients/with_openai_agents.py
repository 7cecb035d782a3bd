"""openai-agents: a streamed run on chat completions, in memory."""

from __future__ import annotations

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from contest import measure, model, run, url
from openai import AsyncOpenAI


async def main() -> None:
    set_tracing_disabled(True)

    @function_tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    client = AsyncOpenAI(base_url=url(), api_key="secret")
    served = OpenAIChatCompletionsModel(model=model(), openai_client=client)
    agent = Agent(name="bench", model=served, tools=[add])

    async def turn() -> int:
        seen = 0
        result = Runner.run_streamed(agent, "go", max_turns=1000)
        async for event in result.stream_events():
            seen += event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
        return seen

    await measure(turn)


run(main)
