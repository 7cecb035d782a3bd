"""A server of the SDK that speaks the newest protocol, over standard input and output or over HTTP.

modern.py stdio|http [FILE]      what it notices is appended to the file; the port is in PORT
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    RequestParams,
)

TASKS = "io.modelcontextprotocol/tasks"
NOTICED = Path(sys.argv[2] if len(sys.argv) > 2 else os.devnull)


class TaskParams(RequestParams):
    task_id: str
    input_responses: dict[str, Any] | None = None


class Tasks(Extension):
    """Continues each call of `later` as a task. Its `how` is what comes of it."""

    identifier = TASKS

    def __init__(self) -> None:
        self.looks: dict[str, int] = {}
        self.name = ""

    def methods(self) -> Sequence[MethodBinding]:
        handlers = {"get": self.get, "update": self.update, "cancel": self.cancel}
        return [MethodBinding(f"tasks/{name}", TaskParams, handler) for name, handler in handlers.items()]

    async def intercept_tool_call(self, params: CallToolRequestParams, ctx: Any, call_next: Any) -> Any:
        if params.name != "later":
            return await call_next(ctx)
        return {"resultType": "task", "taskId": (params.arguments or {})["how"], "status": "working"}

    async def get(self, ctx: Any, params: TaskParams) -> dict[str, Any]:
        how = params.task_id
        looks = self.looks[how] = self.looks.get(how, 0) + 1
        shown = {"taskId": how, "pollIntervalMs": 1}
        if how == "fails":
            return {**shown, "status": "failed", "error": {"code": -32603, "message": "the disk is full"}}
        if how == "forgets":
            raise MCPError(-32600, "Session not found")
        if how == "stops":
            return {**shown, "status": "cancelled"}
        if how == "never" or looks < 3:
            return {**shown, "status": "working", "statusMessage": f"step {min(looks, 2)}"}
        if how == "asks" and not self.name:
            schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
            form = ElicitRequest(params=ElicitRequestFormParams(message="Who?", requested_schema=schema))
            asked = {"name": form.model_dump(mode="json", by_alias=True, exclude_none=True)}
            return {**shown, "status": "input_required", "inputRequests": asked}
        said = {"content": [{"type": "text", "text": f"done {self.name}".strip()}]}
        return {**shown, "status": "completed", "result": said}

    async def update(self, ctx: Any, params: TaskParams) -> dict[str, Any]:
        self.name = (params.input_responses or {})["name"]["content"]["name"]
        return {}

    async def cancel(self, ctx: Any, params: TaskParams) -> dict[str, Any]:
        NOTICED.write_text(f"cancelled {params.task_id}")  # noqa: ASYNC240  # a few bytes, once
        return {}


server = MCPServer("modern", instructions="Be kind to it.", extensions=[Tasks()])


@server.tool(structured_output=False)
async def later(how: str) -> str:
    """Is continued as a task, for a client that knows them"""
    return f"{how}, at once"


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
