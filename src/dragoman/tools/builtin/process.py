"""Runs a program in the workspace: bounded, without our secrets, and with all it started gone when we are."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import Process
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

_GRACE = 0.5  # seconds between being asked to end and being ended
_HALF = 500_000  # characters of output from its beginning, and as many from its end
_REPORTED = 200_000  # characters of output reported as progress
_PIECE = 1_000_000  # bytes read at once, with a pause after each, so that many small ones become one
_PAUSE = 0.02
_PASSED_ON = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR", "TMP", "TEMP"}
)
# The command's group dies with us, also after `kill -9`: else it would run on while a person is asked whether
# to run it again. One of the group reads a pipe whose other end only we hold, and never write to: when we are
# gone it reads the end, and kills the group. PR_SET_PDEATHSIG would reach the shell alone and not what it
# started, and only Linux has it. The watcher is nobody's child (two subshells), so that a command which waits
# for all its children does not wait for it; and it is there before the command is.
_WATCHED = """\
exec 3<&0 </dev/null
( (trap '' HUP INT TERM; read -r _ <&3; kill -KILL 0) >/dev/null 2>&1 & )
exec 3<&-
exec "$@"
"""


class ShellOutput:
    """What a command prints: its beginning and its end, in bounded memory."""

    def __init__(self, half: int = _HALF) -> None:
        self._half = half
        self._head = ""
        self._tail: deque[str] = deque()
        self._tail_length = 0
        self.length = 0

    def add(self, text: str) -> None:
        self.length += len(text)
        room = self._half - len(self._head)
        self._head += text[:room]
        if rest := text[room:]:
            self._tail.append(rest)
            self._tail_length += len(rest)
        while self._tail and self._tail_length - len(self._tail[0]) >= self._half:
            self._tail_length -= len(self._tail.popleft())

    def text(self) -> str:
        tail = "".join(self._tail)[-self._half :]
        if left_out := self.length - len(self._head) - len(tail):
            return f"{self._head}\n[… {left_out} characters were not kept …]\n{tail}"
        return self._head + tail


def environment(ours: Mapping[str, str]) -> dict[str, str]:
    """What a command may know of ours: only what is named, so no keys and no tokens."""
    return {name: ours[name] for name in ours if name in _PASSED_ON or name.startswith("LC_")}


async def run_program(
    program: Sequence[str], folder: Path, output: ShellOutput, report: Callable[[str], None]
) -> int:
    """Words of a command, of which no shell reads anything, run in a folder. What it starts ends with it, and
    with whoever waits for it. → its exit status, or less than 0 for the signal that ended it"""
    ours, its = os.pipe()  # our own: asyncio's would keep `wait` waiting for whoever else holds it
    try:
        process = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            _WATCHED,
            "/bin/sh",
            *program,
            cwd=folder,
            env=environment(os.environ),
            stdin=_lifeline(),
            stdout=its,
            stderr=its,
            start_new_session=True,  # a group of its own, and no terminal
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(its)
    reading = asyncio.create_task(_read(ours, output, report))
    try:
        return await process.wait()
    finally:
        try:
            await _end(process)
        finally:
            await _finish(reading)


@cache
def _lifeline() -> int:
    """The end to read of a pipe that ends when this process does."""
    held = list(os.pipe())

    def close() -> None:
        """In a forked child, which may outlive us: it makes one of its own if it needs one."""
        while held:  # once, and not again in children of the child
            os.close(held.pop())
        _lifeline.cache_clear()

    os.register_at_fork(after_in_child=close)
    return held[0]


async def _end(process: Process) -> None:
    """The whole group: asked first where it still works, so that it can tidy up, then made to."""
    try:
        if process.returncode is None:
            _signal(process, signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(_GRACE):
                    await process.wait()
    finally:
        _signal(process, signal.SIGKILL)
        await process.wait()


async def _finish(reading: asyncio.Task[None]) -> None:
    """Read what is still in the pipe, and wait no longer for one who left the group with it."""
    try:
        await asyncio.wait({reading}, timeout=_GRACE)
    finally:
        reading.cancel()
        await asyncio.wait({reading})


def _signal(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS says the latter of a group of dead processes
        os.killpg(process.pid, number)


async def _read(pipe: int, output: ShellOutput, report: Callable[[str], None]) -> None:
    reader = asyncio.StreamReader(limit=_PIECE)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(pipe, "rb", buffering=0)
    )
    decoder = getincrementaldecoder("utf-8")("replace")
    try:
        while piece := await reader.read(_PIECE):
            text = decoder.decode(piece)
            if reported := text[: max(0, _REPORTED - output.length)]:
                report(reported)
            output.add(text)
            await asyncio.sleep(_PAUSE)
        output.add(decoder.decode(b"", final=True))
    finally:
        transport.close()
