"""acpx, a published client that runs in terminals and scripts, against the real program."""

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
from tests.npm import NODE, installed
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("decision", ["approve", "deny"])
async def test_acpx_sends_a_prompt_and_decides(tmp_path: Path, decision: str) -> None:
    """F2, P4: it lends its files, and a rejected call leaves them alone."""
    try:
        packages = await asyncio.to_thread(installed, "acp_client")
    except (AssertionError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"npm cannot install acpx here: {error}")
    async with loopback(calls("write_file", path="a.txt", text="one\n"), says("Done.")) as model:
        settings(tmp_path, model)
        program = str(packages / "node_modules" / "acpx" / "dist" / "cli.js")
        options = [
            "--cwd",
            str(tmp_path),
            "--agent",
            " ".join(ALONE),
            "--format",
            "json",
            f"--{decision}-all",
        ]
        process = await asyncio.create_subprocess_exec(
            *(NODE, program, *options, "exec", "Write a.txt"),
            env=clean_environment(tmp_path),
            cwd=tmp_path,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate()
    told = [json.loads(line) for line in out.decode().splitlines()]
    methods = [one["method"] for one in told if "method" in one]
    assert {"initialize", "session/new", "session/prompt", "session/request_permission"} <= {*methods}
    updates = [one["params"]["update"] for one in told if one.get("method") == "session/update"]
    texts = [one["content"]["text"] for one in updates if one["sessionUpdate"] == "agent_message_chunk"]
    assert "".join(texts) == "Done.", err.decode()
    assert ("fs/write_text_file" in methods) == (tmp_path / "a.txt").exists() == (decision == "approve")
    assert told[-1]["result"]["stopReason"] == "end_turn"
