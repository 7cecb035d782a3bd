"""Clients of other people's protocols, as they are published on npm, each in a process of its own."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE

CLIENTS = Path(__file__).parent / "clients"
needs_clients = pytest.mark.skipif(
    not (CLIENTS / "node_modules").is_dir() or shutil.which("node") is None,
    reason="published clients are not installed: make clients",
)


async def run_client(script: str, *arguments: str) -> dict[str, Any]:
    """What it prints in the end."""
    process = await asyncio.create_subprocess_exec(
        *("node", script, *arguments),
        cwd=CLIENTS,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0, err.decode()
    found: dict[str, Any] = json.loads(out)
    return found


def read_by_client(script: str, streams: Iterable[object]) -> list[Any]:
    """What it makes of each."""
    read = subprocess.run(
        ["node", script],
        cwd=CLIENTS,
        input="\n".join(json.dumps(stream) for stream in streams),
        text=True,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert read.returncode == 0, read.stderr
    return [json.loads(line) for line in read.stdout.split("\n") if line]
