"""OpenAI's SDK for Node against a server of ours, unchanged and in its newest version."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from dragoman.wire.scripted import calls, says
from tests.npm import NODE, installed
from tests.patience import PATIENCE
from tests.protocols.openai.callers import MODEL
from tests.server.site import served

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parents[1] / "openai_node"


@pytest.mark.long
async def test_the_sdk_for_node_talks_calls_and_comes_back(tmp_path: Path) -> None:
    """The test covers tools that it runs itself in a stream, chains of responses, the background, and errors
    (F2)."""
    sdk = (
        (await asyncio.to_thread(installed, "protocols/openai_node"))
        / "node_modules"
        / "openai"
        / "index.mjs"
    )
    script = [
        calls("where"),
        says("In Rome."),
        calls("where"),
        says("Rome it is."),
        says("Once upon a time."),
    ]
    async with served(tmp_path, script) as site, asyncio.timeout(PATIENCE):
        talk = await asyncio.create_subprocess_exec(
            *(NODE, str(HERE / "talk.mjs"), sdk.as_uri(), f"{site.url}/v1", site.key, MODEL),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, errors = await talk.communicate()
    assert talk.returncode == 0, errors.decode()
    assert json.loads(out) == {
        "models": [MODEL],
        "chat": "In Rome.",
        "calls": ["where"],
        "deltas": "Rome it is.",
        "response": "Rome it is.",
        "background": "Once upon a time.",
        "error": ["NotFoundError", 404, "model_not_found"],
    }
