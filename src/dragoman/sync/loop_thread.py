"""An event loop in a thread of its own, for programs that have none, or whose own must not be held up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from threading import Lock, Thread, current_thread
from typing import Any, TypeVar

from dragoman.errors import BadRequest

T = TypeVar("T")
_INSIDE = (
    "SyncRuntime cannot be waited for in its own thread, where plugins and async tools run: there, await the "
    "methods of its `.runtime`, or write the tool without async"
)
_CLOSED = "the SyncRuntime is closed: use it, and what it gave, inside its `with` statement"


class LoopThread:
    """Runs coroutines while the caller waits. It also works where a loop runs already, as in a notebook."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._closed = False
        self._starting = Lock()  # nothing is started once it is closed: nobody would finish it
        self._thread = Thread(target=self._loop.run_forever, name="dragoman", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Its result, or what it raises. Ctrl-C stops it."""
        if current_thread() is self._thread:
            work.close()
            raise BadRequest(_INSIDE)
        with self._starting:
            if self._closed:
                work.close()
                raise BadRequest(_CLOSED)
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        return self._wait(future)

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """The items as they come. Whoever stops early closes it."""
        try:
            while True:
                try:
                    yield self.run(_next(items))
                except StopAsyncIteration:
                    return
        finally:
            self._finish(items)

    def close(self) -> None:
        if current_thread() is self._thread:
            raise BadRequest(_INSIDE)
        with self._starting:
            if self._closed:
                return
            self._closed = True
        for last in (_cancel_others(), self._loop.shutdown_asyncgens()):
            self._wait(asyncio.run_coroutine_threadsafe(last, self._loop))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait(self, future: Future[T]) -> T:
        try:
            return future.result()
        except CancelledError:
            if self._closed:
                raise BadRequest(_CLOSED) from None
            raise
        except BaseException:
            future.cancel()
            raise

    def _finish(self, items: AsyncIterator[Any]) -> None:
        """Close what was read. It may be dropped anywhere and at any time, so this neither waits where it
        must not nor raises: what is left when the loop closes is closed by `close`."""
        if (close := getattr(items, "aclose", None)) is None:
            return
        with self._starting:
            if self._closed:
                return
            future = asyncio.run_coroutine_threadsafe(_close(close), self._loop)
        if current_thread() is not self._thread:
            self._wait(future)


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)


async def _close(close: Any) -> None:
    await close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
