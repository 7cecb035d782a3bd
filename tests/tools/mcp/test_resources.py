"""Check the resources of servers."""

from __future__ import annotations

import mcp_types as types
import pytest

from dragoman.errors import ToolFailed
from dragoman.messages.message import CallState
from dragoman.tools.mcp.server_tools import MOST, contents_of, describe_resources
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


async def test_many_resources_are_counted_and_an_empty_one_is_told() -> None:
    many = [
        types.Resource(uri=f"a://{n}", name=f"r{n}", mime_type="x/y", description="D")
        for n in range(MOST + 2)
    ]
    lines = str(describe_resources(many, []).value).splitlines()
    assert (len(lines), lines[0], lines[-1]) == (MOST + 1, "a://0  r0 (x/y): D", "… and 2 more")
    assert len(str(describe_resources(many[:MOST], []).value).splitlines()) == MOST
    template = types.ResourceTemplate(uri_template="a://{n}", name="r", title="R")
    assert describe_resources([], [template]).value == "\nAddresses with places to fill in:\na://{n}  R"
    assert describe_resources([], []).value == "There are none."
    with pytest.raises(ToolFailed, match="empty or missing"):
        await contents_of(types.ReadResourceResult(contents=[]), Bench().context())


async def test_a_server_without_resources_has_no_such_tools() -> None:
    async with source(raw()) as it:
        assert [one.name for one in it.group().tools if "resource" in one.name] == []
