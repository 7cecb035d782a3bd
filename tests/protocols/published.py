"""Clients of other people's protocols, as they are published on npm, each in a process of its own."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.npm import NODE, TESTS, installed
from tests.patience import PATIENCE

CLIENTS = "protocols/clients"
FRONTENDS = "protocols/frontends"


async def run_client(script: str, *arguments: str, packages: str = CLIENTS) -> dict[str, Any]:
    """What it prints in the end."""
    process = await asyncio.create_subprocess_exec(
        *(NODE, str(await asyncio.to_thread(_placed, script, packages)), *arguments),
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
        [NODE, _placed(script, CLIENTS)],
        input="\n".join(json.dumps(stream) for stream in streams),
        text=True,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert read.returncode == 0, read.stderr
    return [json.loads(line) for line in read.stdout.split("\n") if line]


@cache
def _placed(script: str, packages: str) -> Path:
    """The script beside the packages it imports: Node looks for them from where it lies."""
    try:
        folder = installed(packages)
    except (AssertionError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"npm cannot install the published clients here: {error}")
    text = (TESTS / packages / script).read_bytes()
    placed = folder / f"{hashlib.sha256(text).hexdigest()[:16]}-{script}"
    if not placed.exists():
        written = placed.with_suffix(f".{os.getpid()}")
        written.write_bytes(text)
        written.replace(placed)  # others may run it by now
    return placed
