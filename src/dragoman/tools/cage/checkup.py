"""Test each boundary of the cage with real attempts, on objects made for the test, and report failures."""

from __future__ import annotations

import os
import socket
import tempfile
from dataclasses import replace
from pathlib import Path

from dragoman.tools.builtin.shell import ShellOutput, run_program
from dragoman.tools.cage.bubblewrap import interpreter
from dragoman.tools.cage.enter import cage_in
from dragoman.tools.cage.policy import CageSettings

_PATIENCE = 20.0  # seconds
# Run inside. Each line that the probe prints is something that it could do and should not be able to.
_PROBE = """
import ctypes, os, socket, sys
home, port, victim = sys.argv[1:4]
def attempt(name, work):
    try:
        if work() is not False: print("through:", name)
    except OSError: pass
def fork():
    made = []
    try:
        for _ in range(700):
            child = os.fork()
            if child == 0:
                os.close(gate[1]); os.read(gate[0], 1); os._exit(0)
            made.append(child)
    finally:
        os.close(gate[1])
        for child in made: os.waitpid(child, 0)
gate = os.pipe()
attempt("reading your home folder", lambda: open(home + "/secret").read())
attempt("writing outside the workspace", lambda: os.mkdir("/etc/dragoman-probe"))
attempt("changing version control", lambda: open(".git/config", "w"))
attempt("the network", lambda: socket.create_connection(("127.0.0.1", int(port)), 2))
attempt("sockets of other programs", lambda: socket.socket(socket.AF_UNIX))
attempt("other processes", lambda: os.kill(int(victim), 0))
attempt("new privileges", lambda: "NoNewPrivs:\\t1" not in open("/proc/self/status").read())
attempt("new namespaces", lambda: ctypes.CDLL(None).unshare(0x10000000) == 0)
attempt("more than 700 processes", fork)
open("written", "w").write("1")
print("ended")
"""
BOUNDARIES = (
    *("reading your home folder", "writing outside the workspace", "changing version control", "the network"),
    *("sockets of other programs", "other processes", "new privileges", "new namespaces"),
    "more than 700 processes",
)


async def try_cage(settings: CageSettings) -> tuple[str, list[str]]:
    """Return why no cage works here, if so, and otherwise the boundaries that fail."""
    with (
        tempfile.TemporaryDirectory(prefix=".dragoman-probe-", dir=Path.home()) as folder,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        home = Path(os.path.realpath(folder))  # noqa: ASYNC240 - once, at a terminal
        work = home / "work"
        (work / ".git").mkdir(parents=True)
        (home / "secret").write_text("secret")
        cage = cage_in(work, replace(settings, watch=False), [], look=True)
        if cage.missing:
            return cage.missing, []
        output = ShellOutput()
        port = str(listener.getsockname()[1])
        words = [interpreter(), "-c", _PROBE, str(home), port, str(_other_process())]
        await run_program(words, work, output, lambda text: None, cage=cage, timeout=_PATIENCE)
        lines = output.text().splitlines()
        if "ended" not in lines or not (work / "written").exists():
            return output.text().strip()[-300:] or "it ended before it began", []
        return "", [line.removeprefix("through: ") for line in lines if line.startswith("through: ")]


def _other_process() -> int:
    """Return a process that is outside: process numbers inside begin at 1."""
    return max(int(one.name) for one in Path("/proc").iterdir() if one.name.isdecimal())
