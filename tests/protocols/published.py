"""Run clients of foreign protocols, as published on npm.

Each has a process that loads its packages once and plays one scene after another.
"""

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
from tempfile import NamedTemporaryFile
from threading import Timer
from typing import Any

import pytest

from tests.npm import NODE, TESTS, installed
from tests.patience import PATIENCE

CLIENTS = "protocols/clients"
FRONTENDS = "protocols/frontends"
_HOST = Path(__file__).with_name("host.mjs")


async def run_client(script: str, *arguments: str, packages: str = CLIENTS) -> dict[str, Any]:
    """Return what the script prints at the end."""
    found: dict[str, Any] = json.loads(await asyncio.to_thread(_play, script, packages, *arguments))
    return found


def read_by_client(script: str, streams: Iterable[object]) -> list[Any]:
    """Return the client's result for each stream."""
    with NamedTemporaryFile("w", encoding="utf-8", suffix=".jsonl") as file:
        file.writelines(json.dumps(stream) + "\n" for stream in streams)
        file.flush()
        printed = _play(script, CLIENTS, file.name)
    return [json.loads(line) for line in printed.split("\n") if line]


def _play(script: str, packages: str, *arguments: str) -> str:
    placed = _placed(script, packages)
    host = _host(script if packages == FRONTENDS else packages)
    assert host.stdin is not None
    assert host.stdout is not None
    late = Timer(PATIENCE, host.kill)
    late.start()
    host.stdin.write(json.dumps({"script": str(placed), "arguments": arguments}) + "\n")
    host.stdin.flush()
    line = host.stdout.readline()
    late.cancel()
    if not line:
        _host.cache_clear()
    told: dict[str, str] = json.loads(line or '{"failed": "the process ended"}')
    assert "printed" in told, told["failed"]
    return told["printed"]


@cache
def _host(whose: str) -> subprocess.Popen[str]:
    """Start a process for all scripts that use the same packages. A script that draws a page has a separate
    process with the globals of a page."""
    host = subprocess.Popen([NODE, _HOST], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(_end, host)
    return host


def _end(host: subprocess.Popen[str]) -> None:
    with host:
        host.kill()


@cache
def _placed(script: str, packages: str) -> Path:
    """Place the script next to the packages that it imports, because Node searches from the script's
    folder."""
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
