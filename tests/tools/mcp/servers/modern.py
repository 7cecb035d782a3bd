"""A server of the SDK, which speaks the newest protocol, over standard input and output or over HTTP.

modern.py stdio|http [FILE]      what it notices is appended to the file; the port is in PORT
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

NOTICED = Path(sys.argv[2] if len(sys.argv) > 2 else os.devnull)

server = MCPServer("modern", instructions="Be kind to it.")


@server.tool()
async def echo(text: str) -> str:
    """Say it again"""
    return text


@server.tool()
async def work(ctx: Context) -> str:
    """Reports what it does"""
    for step in (1.0, 2.0, 3.0):
        await ctx.report_progress(step, 3, f"step {step:g}")
        await anyio.sleep(0.1)
    return "worked"


@server.tool()
async def wait(ctx: Context) -> str:
    """Never comes to an end by itself"""
    try:
        await ctx.report_progress(1, 2)
        await anyio.sleep(3600)
    except anyio.get_cancelled_exc_class():
        NOTICED.write_text("cancelled")  # noqa: ASYNC240  # a few bytes, once
        raise
    return "unreachable"


@server.tool()
async def who(ctx: Context) -> str | InputRequiredResult:
    """Asks for a name"""
    if not ctx.input_responses:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        params = ElicitRequestFormParams(message="What is your name?", requested_schema=schema)
        return InputRequiredResult(
            input_requests={"name": ElicitRequest(params=params)}, request_state="asked"
        )
    answer = ctx.input_responses["name"]
    content = getattr(answer, "content", None) or {}
    return f"{answer.action} {content.get('name')}"  # type: ignore[union-attr]  # only elicitation is asked for


@server.tool()
async def grow(ctx: Context) -> str:
    """Has another tool from now on"""

    @server.tool()
    async def grown() -> str:
        """Was not there before"""
        return "grown"

    await ctx.notify_tools_changed()
    return "grew"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", port=int(os.environ["PORT"]))
