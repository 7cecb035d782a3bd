"""The protocol's npm SDK as the editor, against the real program."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from dragoman.wire.scripted import calls, says
from tests.cli.acp.editor import ALONE, settings
from tests.cli.program import clean_environment
from tests.loopback import loopback
from tests.npm import NODE, TESTS, installed
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow


@pytest.mark.long
async def test_the_npm_sdk_talks_is_asked_and_loads(tmp_path: Path) -> None:
    """F2: its own schema checks every message."""
    try:
        sdk = await asyncio.to_thread(installed, "acp_client")
    except (AssertionError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"npm cannot install the protocol's SDK here: {error}")
    async with loopback(calls("write_file", path="a.txt", text="one\n"), says("Written.")) as model:
        settings(tmp_path, model)
        process = await asyncio.create_subprocess_exec(
            NODE,
            str(TESTS / "acp_client" / "editor.mjs"),
            str(sdk),
            str(tmp_path),
            *ALONE,
            env=clean_environment(tmp_path),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    seen = json.loads(out)
    assert seen["hello"]["protocolVersion"] == 1
    assert seen["ended"]["stopReason"] == "end_turn"
    assert "once" in seen["asked"][0]
    assert [one["sessionId"] for one in seen["listed"]["sessions"]] == [seen["made"]["sessionId"]]
    kinds = [update["sessionUpdate"] for update in seen["replayed"]]
    told = ["user_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"]
    assert kinds[: len(told)] == told
    assert (tmp_path / "a.txt").read_text() == "one\n"
