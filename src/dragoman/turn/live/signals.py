"""What reaches a running turn from outside: answers, results of clients, steering, cancels, followers.

A signal is a row that any process may write. The owner of the turn reads it here, acts on it, and strikes it
off in the transaction that records what came of it.
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
    """What a signal says, and its number, by which it is struck off."""

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
        self.left = asyncio.Event()  # nobody reads them here any more

    def has_read(self, number: int) -> bool:
        return number in self._seen

    async def all_recorded(self) -> bool:
        """Whether nothing has come in that would move the turn and is not among its facts. If so, nothing
        more is read here: it is left to whoever runs the turn next."""
        seen = len(self._seen)
        waiting = any(moves_waiting(signal) for signal in await self._store.signals(self._turn))
        self._closed = not waiting and len(self._seen) == seen
        return self._closed

    def reopen(self) -> None:
        """It is not given up after all."""
        self._closed = False

    async def collect(self) -> None:
        """Read what has come in since the last time. Where somebody else does already, it has been read when
        this is done all the same: who answered counts on that."""
        async with self._collecting:
            for signal in await self._store.signals(self._turn):
                if signal.seq not in self._seen and not self._closed:
                    self._seen.add(signal.seq)
                    try:
                        await self._receive(signal)
                    except Unreadable as error:  # it moves nothing, and hides no cancel that came after it
                        _log.warning("turn %s: %s", self._turn, error)
                        if signal.kind == "steer":  # a turn does not end before what steers it was taken in
                            await self._store.withdraw_steering(self._turn, signal.seq)
                    except BaseException:
                        self._seen.discard(signal.seq)
                        raise

    @contextmanager
    def without_steering(self, signal: int) -> Iterator[None]:
        """The turn does not take this message in while the block strikes it off, nor after.

        It does where the block fails for another reason than that it is not there: what is stored has to be
        taken in before the turn can end.
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
        """Wait for a person."""
        return await _slot(self._answers, question)

    async def answer_unless(self, question: str, *ended: asyncio.Event) -> Received[Answer] | None:
        """The same, for as long as somebody wants to know. None where that ended first."""
        waiting = asyncio.ensure_future(self.answer(question))
        unwanted = [asyncio.ensure_future(one.wait()) for one in ended]
        try:
            await asyncio.wait({waiting, *unwanted}, return_when=asyncio.FIRST_COMPLETED)
            return waiting.result() if waiting.done() else None
        finally:
            for one in (waiting, *unwanted):
                one.cancel()

    def has_answer(self, question: str) -> bool:
        """Whether it was read here, and is still to be recorded."""
        return _is_there(self._answers, question)

    def answer_recorded(self, question: str) -> None:
        self._answers.pop(question, None)

    async def result(self, call: str) -> Received[dict[str, JsonValue]]:
        """Wait for a client that runs the call."""
        return await _slot(self._results, call)

    def has_result(self, call: str) -> bool:
        """Whether a client delivered it, and it is still to be recorded."""
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
    """Whether a turn that waits for a person goes on because of it: steering is for its next step."""
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


# Takes in what a person says while a turn runs: it hangs on the branch, where the next request finds it.


async def take_in_steering(log: TurnLog, signals: Signals) -> None:
    """Hang what came in on the turn's branch, where the next request finds it."""
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
