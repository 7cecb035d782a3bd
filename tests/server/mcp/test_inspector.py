"""The official inspector's command line, as published, against `dragoman mcp serve`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import PROGRAM, clean_environment
from tests.npm import NODE, installed
from tests.patience import PATIENCE
from tests.server.mcp.client import SERVE, http_server, settings

pytestmark = pytest.mark.slow
CALL = ("tools/call", "--tool-name", "calculator", "--tool-arg", "expression=6 * 7")


async def inspect(folder: Path, *arguments: str) -> Any:
    """Return the output of the inspector."""
    packages = await asyncio.to_thread(installed, "mcp_inspector")
    script = packages / "node_modules/@modelcontextprotocol/inspector/cli/build/cli.js"
    process = await asyncio.create_subprocess_exec(
        *(NODE, str(script), "--cli", *arguments),
        cwd=folder,
        env=clean_environment(folder),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate()
    assert process.returncode == 0, (out + err).decode()
    return json.loads(out)


@pytest.mark.long
async def test_the_inspector_lists_and_calls_over_standard_input_and_output(tmp_path: Path) -> None:
    """F2"""
    settings(tmp_path)
    server = (*PROGRAM, *SERVE, "--allow", "basics.*", "--method")
    offered = await inspect(tmp_path, *server, "tools/list")
    assert "calculator" in {tool["name"] for tool in offered["tools"]}
    called = await inspect(tmp_path, *server, *CALL)
    assert (called["content"][0]["text"].strip(), called["isError"]) == ("42", False)


@pytest.mark.long
async def test_the_inspector_calls_and_reads_over_http_with_a_key(tmp_path: Path) -> None:
    """F2, U1"""
    settings(tmp_path)
    async with http_server(tmp_path, "--allow", "basics.*") as (url, key):
        over_http = ("--transport", "http", "--header", f"Authorization: Bearer {key}", "--method")
        called = await inspect(tmp_path, url, *over_http, *CALL)
        assert called["content"][0]["text"].strip() == "42"
        assert (await inspect(tmp_path, url, *over_http, "prompts/list"))["prompts"] == []
        (resource,) = (await inspect(tmp_path, url, *over_http, "resources/list"))["resources"]
        read = await inspect(tmp_path, url, *over_http, "resources/read", "--uri", resource["uri"])
    assert "calculator" in read["contents"][0]["text"]
