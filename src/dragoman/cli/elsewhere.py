"""A question that is being answered in, who was first out: the person here, or somebody elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from dragoman.cli.plain import one_line
from dragoman.messages.questions import Question
from dragoman.runtime import Runtime

_GLANCE = 0.2  # seconds between looks: another process may answer


async def settled_elsewhere(
    runtime: Runtime, question: Question, typing: Coroutine[Any, Any, None]
) -> str | None:
    """None where `typing` came to its end, or raised; else how the question was settled meanwhile."""
    here = asyncio.create_task(typing)
    there = asyncio.create_task(_settled(runtime, question.id))
    try:
        await asyncio.wait({here, there}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        there.cancel()
        here.cancel()
        await asyncio.gather(here, there, return_exceptions=True)
    if not here.cancelled():
        here.result()
        return None
    await runtime.driver.wake(question.turn)
    return _how(await runtime.store.question(question.id))


async def _settled(runtime: Runtime, id: str) -> None:
    while (await runtime.store.question(id)).open:  # noqa: ASYNC110 - it happens in a file
        await asyncio.sleep(_GLANCE)


def _how(question: Question) -> str:
    if question.answer is not None:
        by = f" by {one_line(question.answer.by)}" if question.answer.by else ""
        return f"{question.answer.verdict}, answered elsewhere{by}"
    return question.closed or "nobody need answer any more"
