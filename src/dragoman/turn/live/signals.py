"""What comes in from outside for a running turn: signals out of the store in, whoever waits for one woken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import JsonValue

from dragoman.messages.questions import Answer
from dragoman.store.store import Signal, Store

T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class Delivered(Generic[T]):
    """What a signal said, and its number: whoever acts on it strikes it off in the same transaction."""

    value: T
    signal: int


class Signals:
    """The signals of one turn that are not yet among its facts."""

    def __init__(self, turn: str, store: Store, on_cancel: Callable[[str], None]) -> None:
        self._turn = turn
        self._store = store
        self._on_cancel = on_cancel
        self._seen: set[int] = set()
        self._answers: dict[str, asyncio.Future[Delivered[Answer]]] = {}
        self._results: dict[str, asyncio.Future[Delivered[dict[str, JsonValue]]]] = {}
        self.steering: list[Delivered[dict[str, JsonValue]]] = []

    async def collect(self) -> None:
        """Read what has come in since the last time."""
        for signal in await self._store.signals(self._turn):
            if signal.seq not in self._seen:
                self._seen.add(signal.seq)
                await self._deliver(signal)

    async def answer(self, question: str) -> Delivered[Answer]:
        """Wait for a person."""
        return await _slot(self._answers, question)

    async def result(self, call: str) -> Delivered[dict[str, JsonValue]]:
        """Wait for a client that runs the call."""
        return await _slot(self._results, call)

    async def _deliver(self, signal: Signal) -> None:
        match signal.kind:
            case "answer":
                question = await self._store.question(str(signal.body["question"]))
                assert question.answer is not None
                _put(self._answers, question.id, Delivered(question.answer, signal.seq))
            case "result":
                _put(self._results, str(signal.body["call"]), Delivered(signal.body, signal.seq))
            case "steer":
                self.steering.append(Delivered(signal.body, signal.seq))
            case "cancel":
                self._on_cancel(str(signal.body.get("reason") or ""))


def _slot(slots: dict[str, asyncio.Future[Delivered[T]]], key: str) -> asyncio.Future[Delivered[T]]:
    if key not in slots or slots[key].cancelled():
        slots[key] = asyncio.get_running_loop().create_future()
    return slots[key]


def _put(slots: dict[str, asyncio.Future[Delivered[T]]], key: str, delivered: Delivered[T]) -> None:
    slot = _slot(slots, key)
    if not slot.done():
        slot.set_result(delivered)
