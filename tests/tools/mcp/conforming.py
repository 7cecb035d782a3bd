"""The client that the conformance suite tests: one McpSource for each scenario, driven as that wants it."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import httpx2

from dragoman.messages.message import Arguments
from dragoman.tools.mcp.login import TokenStore, new_login
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.source import McpSource
from tests.patience import PATIENCE
from tests.tools.bench import Bench

CALLS: dict[str, dict[str, Arguments]] = {
    "tools_call": {"add_numbers": {"a": 5, "b": 3}},
    "elicitation-sep1034-client-defaults": {"test_client_elicitation_defaults": {}},
    "sse-retry": {"test_reconnection": {}},
}
PUBLISHED = "https://conformance-test.local/client-metadata.json"  # the only one the suite knows


async def play(url: str, scenario: str, given: dict[str, Any]) -> str:
    """Return why the scenario failed, or an empty string."""
    server = McpServer(
        url=url,
        auth="oauth" if scenario.startswith("auth/") else None,
        client_id=given.get("client_id"),
        client_secret="${CLIENT_SECRET}" if "client_secret" in given else None,
        client_metadata_url=PUBLISHED if scenario == "auth/basic-cimd" else None,
        timeout=PATIENCE,
    )
    if server.auth is None:
        return await _drive(McpSource("suite", server, patience=PATIENCE), CALLS.get(scenario, {}))
    with tempfile.TemporaryDirectory() as folder:
        tokens = TokenStore(url, Path(folder) / "logins.json", use_keyring=False)
        browser = Visitor()
        async with new_login(server, browser.visit, tokens, lambda _: given.get("client_secret")) as provider:
            source = McpSource("suite", server, patience=PATIENCE, authorize=lambda _: provider)
            return await _drive(source, {"test-tool": {}})


async def _drive(source: McpSource, calls: dict[str, Arguments]) -> str:
    """Connect, list, make the calls, close."""
    try:
        await source.ready()
        if source.state != "running":
            return source.error
        tools = {tool.permission.rpartition(".")[2]: tool for tool in source.group().tools}
        for name, arguments in calls.items():
            # the form goes back unchanged, so that its defaults count
            await Bench(answers=[{}]).run(tools[name], arguments)
        return ""
    finally:
        await source.close()


class Visitor:
    """A user who accepts everything. The return address is fetched in the background, as browsers do."""

    def __init__(self) -> None:
        self._back: list[asyncio.Task[None]] = []

    async def visit(self, url: str) -> None:
        async with httpx2.AsyncClient() as client:
            there = await client.get(url)
        self._back.append(asyncio.create_task(self._return(there.headers["location"])))

    async def _return(self, url: str) -> None:
        async with httpx2.AsyncClient() as client:
            await client.get(url)
