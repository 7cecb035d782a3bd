"""The first start, with no key, no server and without llama.cpp: the web UI opens, and the chat asks."""

from __future__ import annotations

import asyncio
import re
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import aiohttp
import pexpect
import pytest

from tests.cli.person import TERMINAL
from tests.cli.program import clean_environment
from tests.patience import PATIENCE
from tests.providers.local.hub_site import REPO, hub_site

pytestmark = pytest.mark.slow
# Start the program as if the extra `local` were not installed.
BARE = """import sys
sys.modules["xllamacpp"] = None
from dragoman.cli.start import run
run()
"""


async def test_the_web_ui_opens_without_a_model_and_a_key_that_is_stored_there_answers(
    tmp_path: Path,
) -> None:
    environment = {**clean_environment(tmp_path), "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", BARE, "serve", "--port", "0"),
        cwd=tmp_path,
        env=environment,
        stdout=PIPE,
        stderr=PIPE,
    )
    assert process.stdout is not None
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), PATIENCE)).decode()
        url, token = re.findall(r"(http://127\.0\.0\.1:\d+)/\?token=(\S+)", line)[0]
        assert b"none yet" in await asyncio.wait_for(process.stdout.readline(), PATIENCE)
        headers = {"authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession(url, headers=headers) as client:
            async with client.get("/api/me") as response:
                assert (await response.json())["model"] is None
            async with client.get("/api/models") as response:
                assert (await response.json())["default"] is None
            async with client.put("/api/setup/providers/openai/key", json={"key": "sk-x"}) as response:
                assert response.status == 200
            async with client.get("/api/me") as response:
                assert (await response.json())["model"]["name"].startswith("openai/")
    finally:
        process.terminate()
        await process.communicate()


async def test_the_chat_asks_for_a_model_and_says_what_each_choice_needs(tmp_path: Path) -> None:
    async with hub_site() as site:
        more = {**TERMINAL, "HF_ENDPOINT": site.url, "DRAGOMAN_CACHE": str(tmp_path / "cache")}
        person = pexpect.spawn(
            sys.executable,
            ["-c", BARE, "chat"],
            cwd=str(tmp_path),
            env={**clean_environment(tmp_path), **more},
            encoding="utf-8",
            timeout=PATIENCE,
            dimensions=(40, 110),
        )

        def see(text: str, then: str) -> None:
            person.expect_exact(text)
            person.sendline(then)

        def converse() -> None:
            person.expect_exact("No model can answer yet")
            see("Ctrl-D leaves: ", "4")
            person.expect_exact("pip install 'dragoman[local]'")
            see("press Enter: ", "")
            see("Ctrl-D leaves: ", "3")
            see("a number, or ORG/REPO", REPO)
            person.expect_exact("start Ollama or LM Studio")  # before any download
            person.expect_exact("Ctrl-D leaves: ")
            person.sendeof()
            person.expect(pexpect.EOF)
            person.close()

        await asyncio.to_thread(converse)
        assert person.exitstatus == 130
        assert site.asked == []
