"""A turn reads each external signal once, whichever caller collects it first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from dragoman import allow_once
from dragoman.errors import NotFound, StoreUnavailable
from dragoman.messages.message import Message, Text
from dragoman.messages.questions import Question
from dragoman.store.codecs import MESSAGE
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


class FirstGone:
    """A store that is unreachable at first, and then has a question without an answer."""

    gone = True

    async def signals(self, turn: str) -> list[Signal]:
        return [Signal(1, "answer", {"question": "ask_1"})]

    async def question(self, id: str) -> Question:
        if self.gone:
            self.gone = False
            raise StoreUnavailable("the store", "it is gone for a moment")
        return Question(id, "conv_1", "turn_1", "call_1", "approve", "look", "", {}, "")


async def test_an_answer_is_read_when_the_store_is_back_and_only_if_it_is_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """P6 × S2"""
    signals = Signals("turn_1", cast("Store", FirstGone()), on_cancel=print)
    with pytest.raises(StoreUnavailable):
        await signals.collect()
    assert not signals.has_read(1)
    await signals.collect()
    assert (signals.has_read(1), signals.has_answer("ask_1")) == (True, False)
    assert "its question has no answer" in caplog.text


class Rows:
    """A store that holds these signals, and may do something while it reads them."""

    def __init__(self, *rows: Signal) -> None:
        self.rows = [*rows]
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def signals(self, turn: str) -> list[Signal]:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return [*self.rows]


def steers(number: int) -> Signal:
    message = Message(f"msg_{number}", "conv_1", None, "user", (Text("and?"),))
    return Signal(number, "steer", {"message": MESSAGE.to_json(message)})


async def test_a_steering_message_is_taken_away_or_comes_back_in_its_place() -> None:
    """Only a message that the store no longer has stays away (T13)."""
    signals = Signals("turn_1", cast("Store", Rows(steers(1), steers(2), steers(3))), on_cancel=print)
    await signals.collect()

    def left() -> list[int]:
        return [received.signal for received in signals.steering]

    with pytest.raises(NotFound, match="4"), signals.without_steering(4):
        raise AssertionError("it is not there")
    with pytest.raises(OSError, match="2, 3"), signals.without_steering(1):
        raise OSError(str(left()))
    assert left() == [1, 2, 3]
    with pytest.raises(NotFound, match="2"), signals.without_steering(2):
        raise NotFound("message", "2")
    with signals.without_steering(3):
        pass
    assert left() == [1]


@pytest.mark.parametrize(
    ("waiting", "recorded"),
    [
        ([], True),
        ([steers(1), Signal(2, "follow", {})], True),
        ([Signal(1, "cancel", {"reason": "why", "by": "bob"})], False),
    ],
)
async def test_signals_are_left_to_the_next_owner_if_none_moves_the_turn(
    waiting: list[Signal], *, recorded: bool
) -> None:
    """N2"""
    cancelled: list[str] = []
    rows = Rows(*waiting)
    signals = Signals("turn_1", cast("Store", rows), on_cancel=cancelled.append)
    assert await signals.all_recorded() is recorded
    await signals.collect()
    assert [signals.has_read(one.seq) for one in waiting] == [not recorded] * len(waiting)
    signals.reopen()
    await signals.collect()
    await signals.collect()
    assert all(signals.has_read(one.seq) for one in waiting)
    assert cancelled == ([] if recorded else ["why"])
    assert signals.cancelled_by == (None if recorded else "bob")
    rows.rows.append(steers(9))
    rows.meanwhile = signals.collect  # somebody else reads at that moment
    assert not await signals.all_recorded()
