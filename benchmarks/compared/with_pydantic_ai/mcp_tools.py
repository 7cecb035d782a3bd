"""Tools of an MCP server."""

import sys
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

SERVER = str(Path(__file__).parent.parent / "sums_server.py")


async def main(url: str) -> str:
    model = OpenAIChatModel("mcp", provider=OpenAIProvider(base_url=url, api_key="-"))
    servers = {"mcpServers": {"sums": {"command": sys.executable, "args": [SERVER]}}}
    agent = Agent(model, toolsets=[MCPToolset(servers)])
    async with agent:
        return (await agent.run("What is 17 + 23?")).output
