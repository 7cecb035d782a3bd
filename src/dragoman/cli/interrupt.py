"""Ctrl-C in, a turn that is cancelled in order out; the program goes on."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman.turn.handles import TurnHandle


@contextmanager
def cancelled_by_interrupt(turn: TurnHandle, *, once: bool = False) -> Iterator[None]:
    """With `once`, a second Ctrl-C ends the program."""
    loop = asyncio.get_running_loop()
    cancelling: set[asyncio.Task[bool]] = set()

    def cancel() -> None:
        if once:
            loop.remove_signal_handler(signal.SIGINT)
        task = loop.create_task(turn.cancel("interrupted at the keyboard"))
        cancelling.add(task)
        task.add_done_callback(cancelling.discard)

    try:
        loop.add_signal_handler(signal.SIGINT, cancel)
    except NotImplementedError:  # Windows: there Ctrl-C ends the program
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
