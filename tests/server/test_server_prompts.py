"""Prompts of MCP servers over the API: listed, filled in, and refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.tools.mcp.source import McpSource
from tests.patience import PATIENCE
from tests.server.site import served
from tests.tools.mcp.rig import everything, raw

pytestmark = pytest.mark.slow


async def test_a_servers_prompts_are_listed_and_filled_in(tmp_path: Path) -> None:
    """Prompts are for users. A server without prompts, or one that is down, does not affect the
    others (F1)."""
    with everything() as server:
        there = McpSource("it", server, patience=PATIENCE)
        tools = [there, McpSource("none", raw()), McpSource("gone", raw("die"))]
        async with served(tmp_path, [], tools=tools) as site:
            found = {one["name"]: one for one in (await site.get("/api/server-prompts"))["items"]}
            asks = next(one for one in found.values() if one["required"])
            (name, *others) = asks["required"]
            path = f"/api/server-prompts/it/{asks['name']}"
            filled = await site.post(path, {"arguments": {name: "Rome", **dict.fromkeys(others, "x")}})
            missing = await site.ask("POST", path, {"arguments": {}})
            unknown = await site.ask("POST", "/api/server-prompts/nowhere/at-all", {"arguments": {}})
    assert {one["server"] for one in found.values()} == {"it"}
    assert "Rome" in filled["text"]
    assert (missing.status, unknown.status) == (422, 404)
    assert "it says" in missing.body["detail"]
