"""Clients of other people's protocols, as they are published on npm: each in a process that loads its
packages once, and plays one scene after the other."""

from __future__ import annotations

import asyncio
import atexit
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
_HOST = Path(__file__).with_name("host.mjs")


async def run_client(script: str, *arguments: str, packages: str = CLIENTS) -> dict[str, Any]:
    """What it prints in the end."""
    placed = await asyncio.to_thread(_placed, script, packages)
    host = _host(script)
    try:
        told = await asyncio.wait_for(asyncio.to_thread(_ask, host, placed, arguments), PATIENCE)
    except TimeoutError:
        host.kill()
        _host.cache_clear()
        raise
    assert "printed" in told, told["failed"]
    found: dict[str, Any] = json.loads(told["printed"])
    return found


@cache
def _host(script: str) -> subprocess.Popen[str]:
    """For this script alone: one that draws a page has all that a page has."""
    host = subprocess.Popen([NODE, _HOST], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(_end, host)
    return host


def _ask(host: subprocess.Popen[str], script: Path, arguments: tuple[str, ...]) -> dict[str, str]:
    assert host.stdin is not None
    assert host.stdout is not None
    host.stdin.write(json.dumps({"script": str(script), "arguments": arguments}) + "\n")
    host.stdin.flush()
    told: dict[str, str] = json.loads(host.stdout.readline() or '{"failed": "the process ended"}')
    return told


def _end(host: subprocess.Popen[str]) -> None:
    with host:
        host.kill()


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
