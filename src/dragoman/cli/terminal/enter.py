"""Calls somebody when Enter is pressed at a terminal whose program is busy with something else."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_AGAIN = 1.0  # seconds until a program in the background looks whether it is in front again


@contextmanager
def on_enter(act: Callable[[], None]) -> Iterator[None]:
    """As long as the block runs. Where there is no terminal, nothing is read."""
    if sys.platform == "win32" or not sys.stdin.isatty():
        yield
        return
    loop, terminal = asyncio.get_running_loop(), sys.stdin.fileno()
    later: asyncio.TimerHandle | None = None

    def read() -> None:
        nonlocal later
        try:
            in_front = os.tcgetpgrp(terminal) == os.getpgrp()
            pressed = in_front and os.read(terminal, 4096)
        except OSError:
            loop.remove_reader(terminal)  # the terminal has gone, and would be ready to be read for ever
            return
        if pressed:
            act()
            return
        loop.remove_reader(terminal)
        if not in_front:  # reading from the background would stop the program
            later = loop.call_later(_AGAIN, loop.add_reader, terminal, read)

    loop.add_reader(terminal, read)
    try:
        yield
    finally:
        loop.remove_reader(terminal)
        if later is not None:
            later.cancel()
