"""A turn reads each external signal once, whichever caller collects it first."""

from __future__ import annotations

import asyncio
from typing import cast

from dragoman import allow_once
from dragoman.messages.questions import Question
from dragoman.store.store import Signal, Store
from dragoman.turn.live.signals import Signals


class SlowQuestions:
    """A store in which an answer waits, and that reads it when it is let."""

    def __init__(self) -> None:
        self.asked, self.let = asyncio.Event(), asyncio.Event()

    async def signals(self, turn: str) -> list[Signal]:
        return [Signal(1, "answer", {"question": "ask_1"})]

    async def question(self, id: str) -> Question:
        self.asked.set()
        await self.let.wait()
        return Question(id, "conv_1", "turn_1", "call_1", "approve", "look", "", {}, "", answer=allow_once())


async def test_who_answered_finds_it_read_also_where_somebody_else_reads_it() -> None:
    """A stored answer applies from then on, whichever collect call reads it (P6)."""
    store = SlowQuestions()
    signals = Signals("turn_1", cast("Store", store), on_cancel=lambda _: None)
    looks = asyncio.create_task(signals.collect())
    await store.asked.wait()
    answered = asyncio.create_task(signals.collect())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not answered.done()
    store.let.set()
    await answered
    assert signals.has_answer("ask_1")
    await looks
