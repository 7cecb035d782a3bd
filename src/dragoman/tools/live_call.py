"""What a running tool may say and ask: the same for one in the event loop and one in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import JsonValue

from dragoman.messages.codec import replace_fast
from dragoman.tools.result import as_json
from dragoman.tools.tool import ToolContext

T = TypeVar("T")


class LiveCall:
    """A call while it runs. Once it is over it reports and asks nothing more."""

    def __init__(self, context: ToolContext, limit: asyncio.Timeout) -> None:
        self._context = context
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._asked: set[asyncio.Task[Any]] = set()  # from a thread, which waits for the answer
        self._open = 0  # questions that wait for a person: the clock stands still while there are any
        self._left: float | None = None  # seconds the tool still had when the clock was stopped
        self._over = False

    def in_loop(self) -> ToolContext:
        return replace_fast(
            self._context, progress=self._report, ask=self._ask, require_permission=self._require_permission
        )

    def in_thread(self) -> ToolContext:
        return replace_fast(
            self._context,
            progress=self._report_from_thread,
            ask=lambda *args, **options: self._from_thread(self._ask(*args, **options)),
            require_permission=lambda *args: self._from_thread(self._require_permission(*args)),
        )

    def end(self) -> None:
        self._over = True
        for question in list(self._asked):
            question.cancel()

    def _report(self, value: Any) -> None:
        self._tell(as_json(value))

    def _tell(self, value: JsonValue) -> None:
        if not self._over:
            self._context.progress(value)

    async def _ask(
        self,
        text: str,
        choices: Sequence[str] = (),
        schema: dict[str, JsonValue] | None = None,
        *,
        free: bool = False,
    ) -> JsonValue:
        with self._clock_stopped():
            answer: JsonValue = await self._context.ask(text, choices, schema, free=free)
        return answer

    async def _require_permission(self, pattern: str, question: str = "") -> None:
        with self._clock_stopped():
            await self._context.require_permission(pattern, question)

    @contextmanager
    def _clock_stopped(self) -> Iterator[None]:
        """The time a person takes to answer is not the tool's."""
        when = self._limit.when()
        if self._open == 0:
            self._left = when - self._loop.time() if when is not None else None
            self._limit.reschedule(None)
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            goes_on = self._open == 0 and not self._over and not self._limit.expired()
            if goes_on and self._left is not None:
                self._limit.reschedule(self._loop.time() + self._left)

    def _report_from_thread(self, value: Any) -> None:
        self._loop.call_soon_threadsafe(self._tell, as_json(value))

    def _from_thread(self, question: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(self._while_live(question), self._loop).result()

    async def _while_live(self, question: Coroutine[Any, Any, T]) -> T:
        """In the loop, as the end of the call is, which cancels it; what comes after that is never asked."""
        task = asyncio.current_task()
        if self._over or task is None:
            question.close()
            raise asyncio.CancelledError
        self._asked.add(task)
        try:
            return await question
        finally:
            self._asked.discard(task)
