"""Standard input and output for a protocol alone: whatever else the program prints goes to standard error."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

LONGEST = 256 * 1024 * 1024  # bytes of a line: a message may hold pictures


@contextmanager
def claimed_streams() -> Iterator[tuple[int, int]]:
    """Descriptors of the two ends. Meanwhile nothing can be read from descriptor 0, and what is written to
    descriptor 1, by us or by a program we start, is written to descriptor 2."""
    ours = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    try:
        yield ours
    finally:
        os.dup2(ours[0], 0)
        os.dup2(ours[1], 1)
        for each in ours:
            os.close(each)


async def open_lines(descriptor: int) -> AsyncIterator[bytes]:
    """Each line, until the other side closes."""
    if not _is_watchable(descriptor):
        with os.fdopen(os.dup(descriptor), "rb") as file:
            for line in file:
                yield line
        return
    reader = asyncio.StreamReader(limit=LONGEST)
    pipe = os.fdopen(os.dup(descriptor), "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    try:
        while line := await reader.readline():
            yield line
    finally:
        transport.close()


async def open_writer(descriptor: int) -> asyncio.StreamWriter | FileWriter:
    if not _is_watchable(descriptor):
        return FileWriter(os.dup(descriptor))
    loop = asyncio.get_running_loop()
    pipe = os.fdopen(os.dup(descriptor), "wb", buffering=0)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, pipe)
    return asyncio.StreamWriter(transport, protocol, None, loop)


class FileWriter:
    """What is written to a file, which never lets one wait."""

    def __init__(self, descriptor: int) -> None:
        self._file = os.fdopen(descriptor, "wb")

    def write(self, data: bytes) -> None:
        self._file.write(data)

    async def drain(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _is_watchable(descriptor: int) -> bool:
    """Whether the event loop can wait for it: not for a file, nor for the device that is always empty."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)
