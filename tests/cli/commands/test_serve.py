"""`dragoman serve`: the real program prints its link, answers there, and ends when it is interrupted."""

from __future__ import annotations

import asyncio
import re
import signal
from pathlib import Path

import aiohttp
import pytest

from tests.cli.program import started
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow


async def test_the_link_lets_one_in_and_an_interrupt_ends_the_server(stage: Path) -> None:
    """U1: with a live stream open, which must not hold up the end."""
    process = await started("serve", "--port", "0", folder=stage)
    assert process.stdout is not None
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), PATIENCE)).decode()
        found = re.search(r"(http://127\.0\.0\.1:\d+)/\?token=(\S+)", line)
        assert found is not None, line
        url, token = found.groups()
        headers = {"authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession(url, headers=headers) as client:
            async with client.post("/api/conversations", json={}) as response:
                assert response.status == 201
                conversation = (await response.json())["id"]
            async with client.get(f"/api/conversations/{conversation}/events") as stream:
                assert stream.status == 200
                process.send_signal(signal.SIGINT)
                await asyncio.wait_for(stream.read(), PATIENCE)
        _, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    finally:
        if process.returncode is None:
            process.kill()
    assert (process.returncode, err) == (0, b"")
