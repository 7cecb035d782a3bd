"""An event loop in a thread of its own, for programs that have none, or whose own must not be held up."""

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
    """Runs coroutines while the caller waits. It also works where a loop runs already, as in a notebook."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._closed = False
        self._ending = False
        self._process = os.getpid()
        # Nothing is started once it is closed: nobody would finish it. What is dropped while something is
        # started takes it once more, since the collector of garbage runs in any line.
        self._starting = RLock()
        self._thread = Thread(target=self._run, name="dragoman", daemon=True)
        self._thread.start()

    @property
    def forked(self) -> bool:
        """Whether this is a copy in a child, which has no such thread."""
        return os.getpid() != self._process

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Its result, or what it raises. Ctrl-C stops it."""
        return self._wait(self.start(work))

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """The same for who waits for it in their own way."""
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
        """The items as they come. Whoever stops early closes it."""
        try:
            while True:
                try:
                    yield self.run(_next(items))
                except StopAsyncIteration:
                    return
        finally:
            self._finish(items)

    def close(self, last: Coroutine[Any, Any, None] | None = None) -> None:
        """After this work, if there is any. Ctrl-C does not stop it, only who waits for it."""
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
            await asyncio.sleep(0)  # what was started just before is a task then
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
        """Close what was read. It may be dropped anywhere and at any time, also by who holds what the loop
        wants, so this neither waits nor raises: what is left when the loop closes is closed by `close`."""
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
