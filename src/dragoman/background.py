"""Run work that no caller awaits, such as loops and chores. Failures are logged, and loops continue."""

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
_LONGEST = 5.0  # maximum seconds between two tries of a loop that fails repeatedly


async def to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Run work to its end, even if the caller is cancelled. The cancellation is raised afterwards."""
    task, cancelled = asyncio.create_task(work), None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:  # In a cancelled scope of anyio, each wait raises this.
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled


class Background:
    """The tasks of one runtime. The log names a failed task."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self, name: str, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Run the work once."""
        return self._watch(asyncio.create_task(self._once(name, work), name=name))

    def repeat(self, name: str, work: Callable[[], Awaitable[None]], *, every: float) -> asyncio.Task[None]:
        """Run the work periodically. After failures, the pauses get longer."""
        return self._watch(asyncio.create_task(self._for_ever(name, work, every), name=name))

    async def close(self) -> None:
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        while tasks:
            for task in tasks:
                task.cancel()
            _, left = await asyncio.wait(tasks, timeout=1.0)
            tasks = [*left]  # A task that waits for another can have swallowed the cancellation.

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
                if (text := f"{type(error).__name__}: {error}") != last:  # A repeated failure is logged once.
                    trace = not isinstance(error, StoreUnavailable)
                    _log.error("%s failed, trying again: %s", name, error, exc_info=trace)
                    last = text


# This runs a blocking function in a separate thread, so that it delays neither the loop nor the exit.


T = TypeVar("T")


async def in_thread(function: Callable[[], T]) -> T:
    """Run a function outside the event loop. A hanging thread delays neither other calls nor the exit."""
    loop, within = asyncio.get_running_loop(), contextvars.copy_context()
    ended: asyncio.Future[T] = loop.create_future()

    def tell(settle: Callable[[], None]) -> None:
        if not ended.done():  # Otherwise the caller no longer waits: it was cancelled, or its time was over.
            settle()

    def work() -> None:
        settle: Callable[[], None]
        try:
            settle = partial(ended.set_result, within.run(function))
        # A future refuses this exception, and it would end the waiting coroutine.
        except StopIteration as error:
            settle = partial(ended.set_exception, RuntimeError(f"it raised StopIteration: {error}"))
        except BaseException as error:
            settle = partial(ended.set_exception, error)
        try:
            loop.call_soon_threadsafe(tell, settle)
        except RuntimeError:
            pass  # The loop is closed, because the program ended before the thread did.

    threading.Thread(target=work, name="dragoman-tool", daemon=True).start()
    return await ended
