"""Delivers outside input to a running turn: answers, client results, steering, cancels, followers.

A signal is a row that any process can write. The turn's owner reads it here and acts on it. The transaction
that records the outcome also deletes the signal.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import JsonValue, ValidationError

from dragoman.errors import NotFound, Unreadable
from dragoman.messages.codec import Codec
from dragoman.messages.events import MessageAdded
from dragoman.messages.ids import derived_id
from dragoman.messages.message import Message
from dragoman.messages.questions import Answer
from dragoman.store.codecs import MESSAGE, RESULT
from dragoman.store.store import Change, Signal, Store
from dragoman.turn.facts import Steered
from dragoman.turn.live.log import TurnLog

T = TypeVar("T")
_log = logging.getLogger("dragoman.turn")


@dataclass(slots=True, frozen=True)
class Received(Generic[T]):
    """The content of a signal, and the number by which it is deleted."""

    value: T
    signal: int


class Signals:
    """The signals of one turn that are not yet among its facts."""

    def __init__(
        self,
        turn: str,
        store: Store,
        *,
        on_cancel: Callable[[str], None],
        on_follow: Callable[[], None] = lambda: None,
    ) -> None:
        self._turn = turn
        self._store = store
        self._on_cancel = on_cancel
        self._on_follow = on_follow
        self._seen: set[int] = set()
        self._collecting = asyncio.Lock()
        self._closed = False
        self._answers: dict[str, asyncio.Future[Received[Answer]]] = {}
        self._results: dict[str, asyncio.Future[Received[dict[str, JsonValue]]]] = {}
        self.steering: list[Received[dict[str, JsonValue]]] = []
        self.cancelled_by: str | None = None
        self.left = asyncio.Event()  # set when the turn's process stops reading signals

    def has_read(self, number: int) -> bool:
        return number in self._seen

    async def all_recorded(self) -> bool:
        """Return whether every signal that moves the turn is among its facts.

        If so, stop reading signals here: they are left to the turn's next owner.
        """
        seen = len(self._seen)
        waiting = any(moves_waiting(signal) for signal in await self._store.signals(self._turn))
        self._closed = not waiting and len(self._seen) == seen
        return self._closed

    def reopen(self) -> None:
        """Read signals again: the turn is not given up after all."""
        self._closed = False

    async def collect(self) -> None:
        """Read new signals.

        If another task is already reading, return only after it is done: a caller that just answered relies
        on that.
        """
        async with self._collecting:
            for signal in await self._store.signals(self._turn):
                if signal.seq not in self._seen and not self._closed:
                    self._seen.add(signal.seq)
                    try:
                        await self._receive(signal)
                    # An unreadable signal moves nothing, and must not hide a later cancel.
                    except Unreadable as error:
                        _log.warning("turn %s: %s", self._turn, error)
                        # A turn cannot end while a steering message is unread, so withdraw this one.
                        if signal.kind == "steer":
                            await self._store.withdraw_steering(self._turn, signal.seq)
                    except BaseException:
                        self._seen.discard(signal.seq)
                        raise

    @contextmanager
    def without_steering(self, signal: int) -> Iterator[None]:
        """Keep the turn from reading this message while the block deletes it, and afterwards.

        If the block fails for any reason except NotFound, the turn reads the message: what is stored must be
        read before the turn can end.
        """
        found = next((received for received in self.steering if received.signal == signal), None)
        if found is None:
            raise NotFound("steering message", str(signal))
        self.steering.remove(found)
        try:
            yield
        except NotFound:
            raise
        except BaseException:
            self.steering.append(found)
            self.steering.sort(key=lambda received: received.signal)
            raise

    async def answer(self, question: str) -> Received[Answer]:
        """Wait for a user's answer."""
        return await _slot(self._answers, question)

    async def answer_unless(self, question: str, *ended: asyncio.Event) -> Received[Answer] | None:
        """Wait for an answer, or until an `ended` event. Return None if one of these is set first."""
        waiting = asyncio.ensure_future(self.answer(question))
        unwanted = [asyncio.ensure_future(one.wait()) for one in ended]
        try:
            await asyncio.wait({waiting, *unwanted}, return_when=asyncio.FIRST_COMPLETED)
            return waiting.result() if waiting.done() else None
        finally:
            for one in (waiting, *unwanted):
                one.cancel()

    def has_answer(self, question: str) -> bool:
        """Return whether the answer was read here and is not recorded yet."""
        return _is_there(self._answers, question)

    def answer_recorded(self, question: str) -> None:
        self._answers.pop(question, None)

    async def result(self, call: str) -> Received[dict[str, JsonValue]]:
        """Wait for the result of a call that a client runs."""
        return await _slot(self._results, call)

    def has_result(self, call: str) -> bool:
        """Return whether a client delivered the result and it is not recorded yet."""
        return _is_there(self._results, call)

    async def _receive(self, signal: Signal) -> None:
        match signal.kind:
            case "answer":
                question = await self._store.question(_named(signal, "question"))
                if question.answer is None:
                    raise Unreadable("signal", str(signal.seq), "its question has no answer")
                _put(self._answers, question.id, Received(question.answer, signal.seq))
            case "result":
                _refuse_unreadable(RESULT, signal, "result")
                _put(self._results, _named(signal, "call"), Received(signal.body, signal.seq))
            case "steer":
                _refuse_unreadable(MESSAGE, signal, "message")
                self.steering.append(Received(signal.body, signal.seq))
            case "cancel":
                by = signal.body.get("by")
                self.cancelled_by = by if isinstance(by, str) else None
                self._on_cancel(str(signal.body.get("reason") or ""))
            case "follow":
                self._on_follow()


def moves_waiting(signal: Signal) -> bool:
    """Return whether the signal resumes a turn that waits for a user. Steering waits for the next step."""
    return signal.kind not in ("follow", "steer")


def _named(signal: Signal, noun: str) -> str:
    if not isinstance(id := signal.body.get(noun), str):
        raise Unreadable("signal", str(signal.seq), f"it names no {noun}")
    return id


def _refuse_unreadable(codec: Codec[Any], signal: Signal, noun: str) -> None:
    try:
        codec.from_json(signal.body.get(noun))
    except ValidationError as error:
        raise Unreadable("signal", str(signal.seq), f"there is no {noun} in it") from error


def _slot(slots: dict[str, asyncio.Future[Received[T]]], key: str) -> asyncio.Future[Received[T]]:
    if key not in slots or slots[key].cancelled():
        slots[key] = asyncio.get_running_loop().create_future()
    return slots[key]


def _is_there(slots: dict[str, asyncio.Future[Received[T]]], key: str) -> bool:
    return key in slots and slots[key].done() and not slots[key].cancelled()


def _put(slots: dict[str, asyncio.Future[Received[T]]], key: str, received: Received[T]) -> None:
    slot = _slot(slots, key)
    if not slot.done():
        slot.set_result(received)


# Adds messages that a user sends while a turn runs to the branch, for the next request.


async def take_in_steering(log: TurnLog, signals: Signals) -> None:
    """Add steering messages to the turn's branch, for the next request."""
    while signals.steering:
        received = signals.steering.pop(0)
        said = MESSAGE.from_json(received.value["message"])
        message = Message(
            derived_id("msg", log.id, "steer", received.signal),
            log.conversation.id,
            log.tip,
            "user",
            said.parts,
            turn=log.id,
            created=log.now(),
            metadata=said.metadata,
            by=said.by,
        )
        await log.record(Steered(message.id), change=Change(messages=[message], signals=[received.signal]))
        log.publish(MessageAdded(message))
