"""A server whose tools ask their person for a name: one only reads, the other may do anything.

asking.py FILE      each beginning of a call is a line in it
"""

from __future__ import annotations

import sys
from pathlib import Path

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult, ToolAnnotations

server = MCPServer("asking")
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def _asked(context: Context, tool: str) -> str | InputRequiredResult:
    if not context.input_responses:
        with Path(sys.argv[1]).open("a") as begun:
            begun.write(f"{tool}\n")
        form = ElicitRequestFormParams(message="What is your name?", requested_schema=SCHEMA)
        return InputRequiredResult(input_requests={"name": ElicitRequest(params=form)}, request_state="asked")
    content = getattr(context.input_responses["name"], "content", None) or {}
    return f"hello {content.get('name')}"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def look(ctx: Context) -> str | InputRequiredResult:
    """Looks up a name"""
    return _asked(ctx, "look")


@server.tool()
async def change(ctx: Context) -> str | InputRequiredResult:
    """Changes something"""
    return _asked(ctx, "change")


if __name__ == "__main__":
    server.run("stdio")
