"""A person at a terminal: the real program in a pseudo-terminal, and a model that plays what they name."""

from __future__ import annotations

import os
import re
import resource
import sys
import termios
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from subprocess import PIPE, Popen

import pexpect
from pexpect.fdpexpect import fdspawn

from tests.cli.program import become, clean_environment
from tests.fork_server import python
from tests.forks import FORKS
from tests.patience import PATIENCE

ENTER, ALT_ENTER, CTRL_C, CTRL_D = "\r", "\x1b\r", "\x03", "\x04"
CTRL_E, CTRL_S, CTRL_X, CTRL_Z = "\x05", "\x13", "\x18", "\x1a"
ALL_AWAY = "\x7f" * 100  # backspaces: the cursor is at the end
TERMINAL = {"TERM": "xterm", "NO_COLOR": "1", "PROMPT_TOOLKIT_NO_CPR": "1"}
ESCAPES = r"\x1b\[[0-9;?]*[ -/]*[@-~]"


class Person:
    """Sees what the program prints, and types."""

    def __init__(self, *arguments: str, folder: Path, room: int | None = None, **environment: str) -> None:
        """`room` is how large a file may get, as if the disk were full then."""
        terminal, slave = os.openpty()
        termios.tcsetwinsize(slave, (40, 110))
        seated, tell = FORKS.Pipe(duplex=False)
        start = (arguments, folder, {**clean_environment(folder), **TERMINAL, **environment})
        self.process = FORKS.Process(
            target=_sit_down, args=(tell, os.ttyname(slave), room, start), daemon=True
        )
        with seated, tell:
            self.process.start()
            assert seated.poll(PATIENCE)
        os.close(slave)  # from now on the terminal ends with the program
        self.program = fdspawn(terminal, encoding="utf-8", timeout=PATIENCE)
        self.program.delaybeforesend = None

    def sees(self, text: str) -> str:
        """Wait for the text in any colors. Return the text before it, without cursor movements."""
        self.program.expect(f"(?:{ESCAPES})*".join(map(re.escape, text)))
        return without_escapes(self.program.before or "")

    def types(self, text: str, end: str = ENTER) -> None:
        self.program.send(text + end)

    def says(self, text: str, end: str = ENTER) -> None:
        """At the prompt for messages."""
        self.sees("› ")
        self.types(text, end)

    def answers(self, text: str) -> None:
        """At the menu of a question, where most keys answer by themselves."""
        self.sees("your choice:")
        self.types(text, "" if text in {*"ycahnmsrw"} else ENTER)

    def leaves(self) -> int:
        self.sees("› ")
        self.types("", CTRL_D)
        return self.ended()

    def ended(self) -> int:
        self.program.expect(pexpect.EOF)
        self.program.close()
        self.process.join(PATIENCE)
        assert self.process.exitcode is not None
        return self.process.exitcode

    def kill(self) -> None:
        """Kill the program without any cleanup."""
        self.process.kill()
        self.process.join()


def _sit_down(
    tell: Connection,
    terminal: str,
    room: int | None,
    start: tuple[Sequence[str], Path, dict[str, str]],
) -> None:
    """The program, at this terminal: the first one that a session opens is its own."""
    os.setsid()
    opened = os.open(terminal, os.O_RDWR)
    for number in range(3):
        os.dup2(opened, number)
    os.close(opened)
    tell.send("seated")
    if room is not None:
        sys.dont_write_bytecode = True  # half a file would outlive it
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    become(*start)


def without_escapes(text: str) -> str:
    return re.sub(rf"{ESCAPES}|\x1b[=>]|\r", "", text)


@contextmanager
def playing(folder: Path) -> Iterator[str]:
    """Yield the address of a model in a separate process, which plays what a message names (`plays.py`)."""
    command = python("-m", "tests.browser.plays", str(folder))
    with Popen(command, stdout=PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            settings = tomllib.loads((folder / "dragoman.toml").read_text("utf-8"))
            yield settings["providers"]["stage"]["base_url"]
        finally:
            process.kill()
