"""A person at a terminal: the real program in a pseudo-terminal, and a model that plays what they name."""

from __future__ import annotations

import re
import resource
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen

import pexpect

from tests.cli.program import clean_environment
from tests.patience import PATIENCE

ENTER, ALT_ENTER, CTRL_C, CTRL_D, CTRL_S = "\r", "\x1b\r", "\x03", "\x04", "\x13"
ALL_AWAY = "\x7f" * 100  # backspaces: the cursor is at the end
TERMINAL = {"TERM": "xterm", "NO_COLOR": "1", "PROMPT_TOOLKIT_NO_CPR": "1"}
ESCAPES = r"\x1b\[[0-9;?]*[ -/]*[@-~]"


class Person:
    """Sees what the program prints, and types."""

    def __init__(self, *arguments: str, folder: Path, room: int | None = None, **environment: str) -> None:
        """`room` is how large a file may get, as if the disk were full then."""
        limit = (resource.RLIMIT_FSIZE, (room, room)) if room is not None else None
        self.program: pexpect.spawn[str] = pexpect.spawn(
            sys.executable,
            ["-m", "dragoman.cli.main", *arguments],
            cwd=str(folder),
            env={**clean_environment(folder), **TERMINAL, **environment},
            preexec_fn=(lambda: resource.setrlimit(*limit)) if limit is not None else None,
            encoding="utf-8",
            timeout=PATIENCE,
            dimensions=(40, 110),
        )
        self.program.delaybeforesend = None

    def sees(self, text: str) -> str:
        """Waits for it, in whatever colours. What came before, without what only moves the cursor."""
        self.program.expect(f"(?:{ESCAPES})*".join(map(re.escape, text)))
        return without_escapes(self.program.before or "")

    def types(self, text: str, end: str = ENTER) -> None:
        self.program.send(text + end)

    def says(self, text: str, end: str = ENTER) -> None:
        """At the prompt for messages."""
        self.sees("› ")
        self.types(text, end)

    def answers(self, text: str) -> None:
        """At the menu of a question."""
        self.sees("your choice:")
        self.types(text)

    def leaves(self) -> int:
        self.sees("› ")
        self.types("", CTRL_D)
        return self.ended()

    def ended(self) -> int:
        self.program.expect(pexpect.EOF)
        self.program.close()
        assert self.program.exitstatus is not None
        return self.program.exitstatus


def without_escapes(text: str) -> str:
    return re.sub(rf"{ESCAPES}|\x1b[=>]|\r", "", text)


@contextmanager
def playing(folder: Path) -> Iterator[str]:
    """The address of a model in a process of its own, which plays what a message names (`plays.py`)."""
    command = [sys.executable, "-m", "tests.browser.plays", str(folder)]
    with Popen(command, stdout=PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            settings = tomllib.loads((folder / "dragoman.toml").read_text("utf-8"))
            yield settings["providers"]["stage"]["base_url"]
        finally:
            process.kill()
