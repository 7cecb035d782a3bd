"""A call's context in, what the tool gets of it while it runs out: in the event loop, or in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from pydantic import JsonValue

from dragoman.tools.result import as_json
from dragoman.tools.tool import ToolContext


class LiveCall:
    """A call while it runs. Once it is over it reports and asks nothing more."""

    def __init__(self, context: ToolContext, limit: asyncio.Timeout) -> None:
        self._context = context
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._asked: list[Future[JsonValue]] = []  # from a thread, which waits for the answer
        self._over = False

    def in_loop(self) -> ToolContext:
        return replace(self._context, progress=self._report, ask=self._ask)

    def in_thread(self) -> ToolContext:
        return replace(self._context, progress=self._report_from_thread, ask=self._ask_from_thread)

    def end(self) -> None:
        self._over = True
        for question in self._asked:
            question.cancel()

    def _report(self, value: Any) -> None:
        self._tell(as_json(value))

    def _tell(self, value: JsonValue) -> None:
        if not self._over:
            self._context.progress(value)

    async def _ask(
        self, text: str, choices: Sequence[str] = (), schema: dict[str, JsonValue] | None = None
    ) -> JsonValue:
        """The time a person takes to answer is not the tool's."""
        until, asked = self._limit.when(), self._loop.time()
        self._limit.reschedule(None)
        try:
            answer: JsonValue = await self._context.ask(text, choices, schema)
        finally:
            # until is None where another question has stopped the clock already
            if until is not None and not self._over and not self._limit.expired():
                self._limit.reschedule(until + self._loop.time() - asked)
        return answer

    def _report_from_thread(self, value: Any) -> None:
        self._loop.call_soon_threadsafe(self._tell, as_json(value))

    def _ask_from_thread(
        self, text: str, choices: Sequence[str] = (), schema: dict[str, JsonValue] | None = None
    ) -> JsonValue:
        question = asyncio.run_coroutine_threadsafe(self._ask(text, choices, schema), self._loop)
        self._asked.append(question)
        return question.result()
