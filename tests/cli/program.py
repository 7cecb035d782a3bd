"""Start the real program as a user would, and return its output and exit status."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from dragoman.cli.main import _names, app, run
from tests.fork_server import python
from tests.forks import FORKS
from tests.patience import PATIENCE

PROGRAM = (sys.executable, "-m", "dragoman")


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
    """Return the environment of a user without keys or settings. The user's own folders are inside this
    folder, which is trusted: `commands/test_trust.py` covers folders that are not."""
    private = ("_API_KEY", "DRAGOMAN_", "COVERAGE_", "EDITOR", "VISUAL")
    rest = {name: value for name, value in os.environ.items() if not any(word in name for word in private)}
    home = folder / "home"
    own = {"XDG_DATA_HOME": str(home / "data"), "XDG_CONFIG_HOME": str(home / "config")}
    # Approval requests must not depend on whether bubblewrap is installed: `tools/cage` tests that.
    return {**rest, **own, "DRAGOMAN_TRUST": str(folder), "DRAGOMAN_SHELL_CAGE": "off"}


async def started(*arguments: str, folder: Path, stdin: int = PIPE, **environment: str) -> Process:
    """Start the program in this folder. `KILL` kills it."""
    return await asyncio.create_subprocess_exec(
        *python("-m", "dragoman", *arguments),
        cwd=folder,
        env={**clean_environment(folder), **environment},
        stdin=stdin,
        stdout=PIPE,
        stderr=PIPE,
    )


async def program(*arguments: str, folder: Path, stdin: str | bytes = "", **environment: str) -> Ended:
    """Run the program to its end with this standard input, in a real process that does not import everything
    again. Use `started` for a program that does not end by itself."""
    with tempfile.TemporaryDirectory() as place:
        streams = [Path(place) / name for name in ("in", "out", "err")]
        streams[0].write_bytes(stdin.encode() if isinstance(stdin, str) else stdin)
        surroundings = {**clean_environment(folder), **environment}
        process = FORKS.Process(
            target=become_with, args=(arguments, folder, surroundings, streams), daemon=True
        )
        process.start()
        await asyncio.to_thread(process.join, PATIENCE)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"{arguments} does not end")
        out, err = (stream.read_text("utf-8") for stream in streams[1:])
    ended = Ended(process.exitcode, out, err)
    assert "Traceback" not in ended.err, ended.err
    return ended


def invoke(*arguments: str, input: str | bytes | None = None, **extra: Any) -> Result:
    """Run a command in this process. Describing all commands takes longer than most of them run, and happens
    on each call, so only the group of this command is registered."""
    beside = copy(app)
    beside.registered_groups = [group for group in app.registered_groups if arguments[0] in _names(group)]
    return CliRunner().invoke(beside, arguments, input=input, **extra)


def become_with(
    arguments: Sequence[str], folder: Path, environment: dict[str, str], streams: list[Path]
) -> None:
    """The program, with these files as its three streams."""
    for number, (stream, flags) in enumerate(zip(streams, _FLAGS, strict=True)):
        os.dup2(os.open(stream, flags, 0o600), number)
    become(arguments, folder, environment)


def become(arguments: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
    """Run the program in a forked process that has its three streams."""
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, encoding="utf-8", closefd=False, buffering=1 if os.isatty(number) else -1)
        for number, mode in enumerate("rww")
    )
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests run in the background
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["dragoman", *arguments]
    run()


_FLAGS = (os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_APPEND, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
