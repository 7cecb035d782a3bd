"""Tools of an MCP server."""

import sys
from pathlib import Path

from dragoman import OpenAICompatible, Runtime
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.source import sources_of

SERVER = str(Path(__file__).parent.parent / "sums_server.py")


async def main(url: str) -> str:
    servers = sources_of({"sums": McpServer(command=sys.executable, args=(SERVER,))}, patience=60.0)
    model = OpenAICompatible(url, "mcp")
    async with Runtime("chat.db", model=model, tools=servers, allow=["mcp.sums.*"]) as runtime:
        return (await (await runtime.send("What is 17 + 23?")).result()).text
