"""Work that nobody awaits, such as loops and chores: what fails is logged, and what is to go on goes on."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from dragoman.errors import StoreUnavailable

_log = logging.getLogger("dragoman.background")
_LONGEST = 5.0  # seconds between two tries of a loop that fails again and again


async def to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Do it, though who waits for it is cancelled: they hear of that when it is over."""
    task, cancelled = asyncio.create_task(work), None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:  # in a cancelled scope of anyio each wait raises one
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled


class Background:
    """The tasks of one runtime. Each has a name, by which the log tells of its failure."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self, name: str, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Do it once."""
        return self._watch(asyncio.create_task(self._once(name, work), name=name))

    def repeat(self, name: str, work: Callable[[], Awaitable[None]], *, every: float) -> asyncio.Task[None]:
        """Do it again and again. After a failure it is begun again, later and later as long as it fails."""
        return self._watch(asyncio.create_task(self._for_ever(name, work, every), name=name))

    async def close(self) -> None:
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        while tasks:
            for task in tasks:
                task.cancel()
            _, left = await asyncio.wait(tasks, timeout=1.0)
            tasks = [*left]  # one that waits for something else may have swallowed it

    def _watch(self, task: asyncio.Task[None]) -> asyncio.Task[None]:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _once(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception as error:
            _log.error("%s failed: %s", name, error, exc_info=not isinstance(error, StoreUnavailable))

    async def _for_ever(self, name: str, work: Callable[[], Awaitable[None]], every: float) -> None:
        failures = 0
        last = ""
        while True:
            await asyncio.sleep(min(every * 2**failures, _LONGEST) if failures else every)
            try:
                await work()
                if failures:
                    _log.warning("%s works again", name)
                failures, last = 0, ""
            except Exception as error:
                failures += 1
                if (text := f"{type(error).__name__}: {error}") != last:  # the same failure is told once
                    trace = not isinstance(error, StoreUnavailable)
                    _log.error("%s failed, trying again: %s", name, error, exc_info=trace)
                    last = text


# Runs a blocking function in a thread of its own, so that it holds up neither the loop nor the exit.


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
