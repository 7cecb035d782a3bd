"""Runs a blocking function in a thread of its own, so that it holds up neither the loop nor the exit."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")


async def in_thread(function: Callable[[], T]) -> T:
    """Run it beside the event loop. A thread that hangs holds up neither other calls nor the exit."""
    loop, within = asyncio.get_running_loop(), contextvars.copy_context()
    ended: asyncio.Future[T] = loop.create_future()

    def tell(settle: Callable[[], None]) -> None:
        if not ended.done():  # else nobody waits any more: cancelled, or out of time
            settle()

    def work() -> None:
        settle: Callable[[], None]
        try:
            settle = partial(ended.set_result, within.run(function))
        except StopIteration as error:  # no future takes one: it would end whoever waits
            settle = partial(ended.set_exception, RuntimeError(f"it raised StopIteration: {error}"))
        except BaseException as error:
            settle = partial(ended.set_exception, error)
        try:
            loop.call_soon_threadsafe(tell, settle)
        except RuntimeError:
            pass  # the loop is closed: the program ended before the thread did

    threading.Thread(target=work, name="dragoman-tool", daemon=True).start()
    return await ended
