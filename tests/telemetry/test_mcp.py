"""Check that requests to an MCP server over HTTP carry the trace context."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.source import McpSource
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.runtimes import runtime_with
from tests.telemetry.collector import collecting, telemetry

pytestmark = pytest.mark.slow

_RESULTS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "listener", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "heard"}]},
}


@dataclass
class Listener:
    """A server that answers in one piece, and remembers which trace each method came with."""

    url: str = ""
    heard: list[tuple[str, str | None]] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        if request.method != "POST":
            return web.Response(status=405)
        message = await request.json()
        self.heard.append((message["method"], request.headers.get("traceparent")))
        if "id" not in message:
            return web.Response(status=202)
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] not in _RESULTS:
            return web.json_response({**reply, "error": {"code": -32601, "message": "no such method"}})
        return web.json_response({**reply, "result": _RESULTS[message["method"]]})


@asynccontextmanager
async def listening() -> AsyncIterator[Listener]:
    listener = Listener()
    app = web.Application()
    app.router.add_route("*", "/mcp", listener.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        listener.url = "http://{}:{}/mcp".format(*runner.addresses[0][:2])
        yield listener
    finally:
        await runner.cleanup()


async def test_a_call_goes_out_with_the_span_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server can continue the trace (O1)."""
    async with collecting(monkeypatch) as collector, listening() as server:
        source = McpSource("it", McpServer(url=server.url, transport="http"), patience=PATIENCE)
        script = [calls("it_echo"), says("ok")]
        async with runtime_with(tmp_path, script, tools=[source], telemetry=telemetry()) as runtime:
            await (await runtime.send("go")).result()
    sent = [trace for method, trace in server.heard if method == "tools/call"]
    span = collector.one("execute_tool it_echo")
    assert sent == [f"00-{span.trace_id.hex()}-{span.span_id.hex()}-01"]


async def test_without_telemetry_nothing_goes_out(tmp_path: Path) -> None:
    """O1"""
    async with listening() as server:
        source = McpSource("it", McpServer(url=server.url, transport="http"), patience=PATIENCE)
        async with runtime_with(tmp_path, [calls("it_echo"), says("ok")], tools=[source]) as runtime:
            await (await runtime.send("go")).result()
    assert {trace for _, trace in server.heard} == {None}
