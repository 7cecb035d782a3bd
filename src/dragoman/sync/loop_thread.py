"""Run an event loop in a separate thread, for programs that have none or must not block theirs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine, Generator
from concurrent.futures import CancelledError, Future
from threading import RLock, Thread, current_thread
from typing import Any, TypeVar

from dragoman.errors import BadRequest

T = TypeVar("T")
_INSIDE = (
    "SyncRuntime cannot be waited for in its own thread, where plugins and async tools run: there, await the "
    "methods of its `.runtime`, or write the tool without async"
)
_CLOSED = "the SyncRuntime is closed: use it, and what it gave, inside its `with` statement"
_FORKED = "the SyncRuntime belongs to the process that made it: a forked child makes one of its own"


class LoopThread:
    """Runs coroutines while the caller waits. It also works if a loop is already running, as in a
    notebook."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._closed = False
        self._ending = False
        self._process = os.getpid()
        # Nothing starts after the loop is closed, because it would never finish. The lock is reentrant: the
        # garbage collector can run at any line, so objects can be dropped while something is being started.
        self._starting = RLock()
        self._thread = Thread(target=self._run, name="dragoman", daemon=True)
        self._thread.start()

    @property
    def forked(self) -> bool:
        """Whether this is a copy in a forked child, which lacks the thread."""
        return os.getpid() != self._process

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine, or raise its exception. Ctrl-C cancels it."""
        return self._wait(self.start(work))

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine and return its future. Raises BadRequest if the loop cannot be used."""
        if current_thread() is self._thread:
            work.close()
            raise BadRequest(_INSIDE)
        if self.forked:
            work.close()
            raise BadRequest(_FORKED)
        with self._starting:
            if self._closed:
                work.close()
                raise BadRequest(_CLOSED)
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def iterate(self, items: AsyncIterator[T]) -> Generator[T, None, None]:
        """Yield the items as they arrive. A caller that stops early closes the iterator."""
        try:
            while True:
                try:
                    yield self.run(_next(items))
                except StopAsyncIteration:
                    return
        finally:
            self._finish(items)

    def close(self, last: Coroutine[Any, Any, None] | None = None) -> None:
        """Close the loop after this work, if any. Ctrl-C interrupts the caller, but not the work."""
        with self._starting:
            if self._ending and last is None:
                return
            try:
                if self._ending:
                    raise BadRequest(_CLOSED)
                ending = self.start(self._end(last))
            except BadRequest:
                if last is not None:
                    last.close()
                raise
            self._ending = True
        ending.result()
        self._thread.join()

    async def _end(self, last: Coroutine[Any, Any, None] | None) -> None:
        try:
            if last is not None:
                await last
        finally:
            with self._starting:
                self._closed = True
            await asyncio.sleep(0)  # Let work that was started just before become a task.
            await _cancel_others()
            await self._loop.shutdown_asyncgens()
            self._loop.call_soon(self._loop.stop)

    def _run(self) -> None:
        self._loop.run_forever()
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
        """Close an iterator without waiting or raising.

        It can be dropped at any place and time, even by code that holds a lock that the loop needs. `close`
        closes those that are left.
        """
        if (close := getattr(items, "aclose", None)) is None or self.forked:
            return
        with self._starting:
            if not self._closed:
                asyncio.run_coroutine_threadsafe(_close(close), self._loop)


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)


async def _close(close: Any) -> None:
    await close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
