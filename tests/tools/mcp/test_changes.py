"""Check that a server's changed list of tools is followed while it runs, and that the change is noticed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.messages.message import CallState
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.source import McpSource
from tests.patience import PATIENCE
from tests.tools.mcp.npm import NODE, script
from tests.tools.mcp.rig import Way, call, modern, raw, source, tool

pytestmark = pytest.mark.slow


async def test_a_list_that_changes_is_fetched_again_and_a_new_definition_has_a_new_seal() -> None:
    async with source(raw("changes")) as server:
        before = tool(server, "echo")
        await call(server, "echo", text="x")
        await _until(lambda: len(server.group().tools) == 2)
        after = tool(server, "echo")
    assert before.fingerprint != after.fingerprint
    assert before.permission == after.permission
    assert after.description == "Say it again, and tell everybody"


async def test_a_list_that_cannot_be_read_again_costs_no_call() -> None:
    """The known list stays, the running call gets its result, and the list is requested again (C7)."""
    async with source(raw("stumbles")) as server:
        outcome = await call(server, "echo", text="x")
        assert (outcome.state, outcome.result.text) == (CallState.COMPLETED, "after all")
        await _until(lambda: len(server.group().tools) == 2)


async def test_the_same_definition_has_the_same_seal_in_every_process() -> None:
    async with source(raw()) as first, source(raw()) as second:
        assert tool(first, "echo").fingerprint == tool(second, "echo").fingerprint


@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_on_the_newest_protocol_changes_are_asked_for(way: Way) -> None:
    with modern(way) as settings:
        async with source(settings) as server:
            await call(server, "grow")
            await _until(lambda: "it_grown" in [one.name for one in server.group().tools])
            assert (await call(server, "grown")).result.text == "grown"


async def test_the_folder_of_the_workspace_is_told_where_that_is_allowed(tmp_path: Path) -> None:
    """The file server serves what the client calls its roots, if the client has any."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.txt").write_text("hello")
    (tmp_path / "its").mkdir()
    file = script("server-filesystem", "dist/index.js")
    for roots in (True, False):
        settings = McpServer(command=NODE, args=(file, str(tmp_path / "its")), roots=roots)
        async with source(settings, workspace=tmp_path / "mine") as server:
            await _until_told(server, str(tmp_path / ("mine" if roots else "its")))
            outcome = await call(server, "read_text_file", path=str(tmp_path / "mine" / "a.txt"))
            assert (outcome.result.text == "hello") is roots
            assert ("Access denied" in outcome.result.text) is not roots


async def _until_told(server: McpSource, folder: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while folder not in (await call(server, "list_allowed_directories")).result.text:
            pass


async def _until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():  # noqa: ASYNC110  # another process decides when
            await asyncio.sleep(0.02)
