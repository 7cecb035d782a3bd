"""langgraph: the prebuilt agent with langchain-openai, messages streamed, in memory."""

from __future__ import annotations

import warnings

from contest import measure, model, run, url
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

warnings.simplefilter("ignore")

try:
    from langchain.agents import create_agent
except ImportError:
    from langgraph.prebuilt import create_react_agent as create_agent


async def main() -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    served = ChatOpenAI(model=model(), base_url=url(), api_key="secret", streaming=True, stream_usage=True)
    agent = create_agent(served, [add])

    async def turn() -> int:
        seen = 0
        said = {"messages": [{"role": "user", "content": "go"}]}
        async for message, _ in agent.astream(said, {"recursion_limit": 1000}, stream_mode="messages"):
            seen += bool(message.content)
        return seen

    await measure(turn)


run(main)
