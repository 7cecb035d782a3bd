"""L3: a server starts only when one of its tools is called, and its list is kept from the last run."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from dragoman.messages.message import CallState
from dragoman.tools.mcp.source import McpSource
from dragoman.tools.mcp.tool_list import KeptLists
from tests.patience import PATIENCE
from tests.tools.bench import Bench
from tests.tools.mcp.rig import call, raw, source, tool

pytestmark = pytest.mark.slow


async def test_a_list_that_was_kept_needs_no_server(tmp_path: Path) -> None:
    """Until a call: it starts it, and tells how long that took."""
    kept = KeptLists(tmp_path / "kept")
    async with source(raw(), kept=kept) as first:
        (file,) = (tmp_path / "kept").iterdir()
        modes = [stat.S_IMODE(one.stat().st_mode) for one in (file.parent, file)]
        assert modes == [0o700, 0o600]  # only for its owner
        definitions = [(one.name, one.fingerprint, one.spec()) for one in first.group().tools]
    async with source(raw(), ready=False, kept=kept) as second:
        await second.ready()
        assert (second.state, second.started_in) == ("idle", None)
        assert [(one.name, one.fingerprint, one.spec()) for one in second.group().tools] == definitions
        bench = Bench()
        outcome = await call(second, "echo", bench, text="x")
        assert (outcome.state, second.state) == (CallState.COMPLETED, "running")
        assert second.started_in is not None
        started = f"the server it started in {second.started_in:.1f} s"
        assert bench.progress == ["starting the server it", started]
        assert (await call(second, "echo", bench, text="x")).state is CallState.COMPLETED
        assert len(bench.progress) == 2  # it runs already


async def test_what_was_left_out_is_not_kept_and_still_told(tmp_path: Path) -> None:
    """Schemas in a kept list were found valid, so the next start does not check them again."""
    kept, server = KeptLists(tmp_path), raw("schema")
    async with source(server, kept=kept) as first:
        offered, left_out = [one.name for one in first.group().tools], first.left_out
    found = kept.read("it", server)
    assert found is not None
    assert [f"it_{one.name}" for one in found.definitions] == offered
    second = McpSource("it", server, patience=PATIENCE, kept=kept)
    assert second.left_out == left_out != []


async def test_a_tool_that_changed_meanwhile_does_not_run(tmp_path: Path) -> None:
    """The model was offered the tool, and a user perhaps allowed it, with another description (L3 × P8)."""
    kept, server = KeptLists(tmp_path), raw()
    async with source(server, kept=kept):
        pass
    (file,) = tmp_path.iterdir()  # noqa: ASYNC240 - nobody waits
    file.write_text(file.read_text().replace('"fingerprint":"', '"fingerprint":"old'))
    async with source(server, ready=False, kept=kept) as changed:
        before = tool(changed, "echo")
        outcome = await call(changed, "echo", text="x")
        assert outcome.state is CallState.FAILED
        assert "did not run" in outcome.result.text
        assert tool(changed, "echo").fingerprint != before.fingerprint
        assert (await call(changed, "echo", text="x")).state is CallState.COMPLETED


async def test_other_settings_have_no_list(tmp_path: Path) -> None:
    kept = KeptLists(tmp_path)
    async with source(raw(), kept=kept):
        pass
    other = McpSource("it", raw(timeout=3.0), patience=PATIENCE, kept=kept)
    assert other.group().tools == ()


@pytest.mark.parametrize("found", [b"", b"{", b'{"definitions": 3}', b"\xff"])
async def test_a_damaged_list_is_asked_for_again(tmp_path: Path, found: bytes) -> None:
    kept = KeptLists(tmp_path)
    async with source(raw(), kept=kept):
        pass
    (file,) = tmp_path.iterdir()  # noqa: ASYNC240 - nobody waits
    file.write_bytes(found)
    async with source(raw(), kept=kept) as server:
        assert tool(server, "echo").description
    assert kept.read("it", raw()) is not None


async def test_a_folder_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with source(raw(), kept=KeptLists(tmp_path / "file")) as server:
        assert (await call(server, "echo", text="x")).state is CallState.COMPLETED
