"""The real program, started as a person would; what it printed and how it ended."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE

PROGRAM = (sys.executable, "-m", "dragoman.cli.main")


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output, each line of which is a JSON object."""
        return [json.loads(line) for line in self.out.splitlines()]

    def events(self, type: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["type"] == type]

    @property
    def result(self) -> dict[str, Any]:
        last = self.lines[-1]
        assert last["type"] == "result"
        return last


def clean_environment(folder: Path) -> dict[str, str]:
    """The environment of a person with no keys and no settings, whose own folders are in this one, which they
    trust: what comes with a folder they do not is in `commands/test_trust.py`."""
    private = ("_API_KEY", "DRAGOMAN_", "COVERAGE_", "EDITOR", "VISUAL")
    rest = {name: value for name, value in os.environ.items() if not any(word in name for word in private)}
    home = folder / "home"
    own = {"XDG_DATA_HOME": str(home / "data"), "XDG_CONFIG_HOME": str(home / "config")}
    return {**rest, **own, "DRAGOMAN_TRUST": str(folder)}


async def started(*arguments: str, folder: Path, stdin: int = PIPE, **environment: str) -> Process:
    """The program, running in this folder."""
    return await asyncio.create_subprocess_exec(
        *PROGRAM,
        *arguments,
        cwd=folder,
        env={**clean_environment(folder), **environment},
        stdin=stdin,
        stdout=PIPE,
        stderr=PIPE,
    )


async def program(*arguments: str, folder: Path, stdin: str | bytes = "", **environment: str) -> Ended:
    """From start to end, with this on its standard input."""
    process = await started(*arguments, folder=folder, stdin=PIPE, **environment)
    given = stdin.encode() if isinstance(stdin, str) else stdin
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate(given)
    assert process.returncode is not None
    ended = Ended(process.returncode, out.decode(), err.decode())
    assert "Traceback" not in ended.err
    return ended
