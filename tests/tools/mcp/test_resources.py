"""Check the resources of servers."""

from __future__ import annotations

import pytest

from dragoman.messages.message import CallState
from tests.tools.bench import Bench
from tests.tools.mcp.rig import call, everything, raw, source, tool

pytestmark = pytest.mark.slow


async def test_resources_are_listed_and_read() -> None:
    """Texts arrive as text and files as files. A missing resource is reported in the server's words, and
    rules match the address (C9, C3, P1)."""
    bench = Bench()
    with everything() as server:
        async with source(server) as it:
            listed = await call(it, "list_resources")
            assert listed.result.text.startswith("demo://resource/")
            address = listed.result.text.split()[0]
            read = await call(it, "read_resource", bench, uri=address)
            assert f"[resource {address}]" in read.result.text
            binary = await call(it, "read_resource", bench, uri="demo://resource/dynamic/blob/1")
            assert binary.result.attachments
            missing = await call(it, "read_resource", uri="demo://resource/nowhere")
            assert (missing.state, "it says: " in missing.result.text) == (CallState.FAILED, True)
            reading = tool(it, "read_resource")
            assert (reading.permission, reading.patterns({"uri": "demo://a"})) == (
                "mcp.it.resources",
                ("demo://a",),
            )


async def test_a_server_without_resources_has_no_such_tools() -> None:
    async with source(raw()) as it:
        assert [one.name for one in it.group().tools if "resource" in one.name] == []
