"""A turn while it runs here: facts in, checked by the machine, stored, and told to whoever listens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TypeVar

from dragoman.conversation.tree import Conversation
from dragoman.errors import NotFound
from dragoman.messages.events import Event, TurnState
from dragoman.messages.fold import Draft
from dragoman.messages.message import Message
from dragoman.messages.parts import ToolCall, ToolResult
from dragoman.messages.questions import Question
from dragoman.store.store import Change, Store, TurnRow, Unread
from dragoman.turn.broadcast import Broadcast
from dragoman.turn.facts import FACT, Fact, ReplyReceived
from dragoman.turn.machine import State, Turn, advance, replay


@dataclass(slots=True, frozen=True)
class Snapshot:
    """A turn at one moment, for whoever comes late: its state, what it asks, what it has said so far."""

    id: str
    conversation: str
    turn: Turn
    messages: tuple[Message, ...]
    questions: tuple[Question, ...]
    last: int  # the number of the last event this contains

    @property
    def state(self) -> State:
        return self.turn.state


T = TypeVar("T")
Listener = Callable[[Snapshot], None]


class TurnLog:
    """The one object that knows a running turn whole. Its `turn` is always `replay` of what it recorded."""

    def __init__(
        self,
        row: TurnRow,
        *,
        store: Store,
        conversation: Conversation,
        facts: Sequence[Fact],
        path: list[Message],
        questions: Sequence[Question] = (),
        held: dict[str, ToolResult] | None = None,
        clock: Callable[[], float],
    ) -> None:
        self.id = row.id
        self.epoch = row.epoch
        self.resumed = row.epoch > 1
        self.conversation = conversation
        self.store = store
        self.now = clock
        self.turn = replay(facts)
        self.path = path
        self.questions = {question.id: question for question in questions}
        self.held = held or {}  # results that wait for a person
        self.events = Broadcast(row.epoch)
        self.draft: Draft | None = None
        self.cancelled: str | None = None  # the reason, once somebody wants it stopped
        self.revision = 0
        self.watchers: list[Callable[[Event], None]] = []
        self._count = len(facts)
        self._listeners: list[Listener] = []
        self._home: dict[str, int] = {}  # where a call of this turn is in the path
        start = len(path) - len(self.messages)
        for place in range(start, len(path)):
            self._home.update({call.id: place for call in path[place].calls})

    # ── what was said ─────────────────────────────────────────────────────────────────────────────

    @property
    def tip(self) -> str | None:
        """Where the next message of this turn hangs."""
        return self.path[-1].id if self.path else None

    @property
    def messages(self) -> list[Message]:
        """Those of this turn: the end of the path."""
        own = list(takewhile(lambda message: message.turn == self.id, reversed(self.path)))
        return own[::-1]

    def call(self, id: str) -> ToolCall:
        if id not in self._home:
            raise NotFound("call", id)
        return next(call for call in self.path[self._home[id]].calls if call.id == id)

    def snapshot(self) -> Snapshot:
        messages = self.messages
        if self.draft is not None:
            messages.append(self.draft.message)
        questions = tuple(q for q in self.questions.values() if q.answer is None and q.closed is None)
        return Snapshot(
            self.id, self.conversation.id, self.turn, tuple(messages), questions, self.events.last
        )

    # ── what happened ─────────────────────────────────────────────────────────────────────────────

    async def record(self, *facts: Fact, change: Change | None = None, sync: bool = False) -> None:
        """Write facts and the rows they change, as one. Returns when they are stored."""
        turn, count = self.turn, self._count
        try:
            self.revision = await self._write(facts, change or Change(), sync)
        except Unread:
            self.turn, self._count = turn, count  # it did not happen: read the letter first
            raise
        self._tell(turn.state)

    def record_soon(self, *facts: Fact) -> None:
        """The same without waiting: for facts that need be stored only before the next ones."""
        before = self.turn.state
        self._write(facts, Change(), sync=False).add_done_callback(_look)
        self._tell(before)

    def _write(self, facts: Sequence[Fact], change: Change, sync: bool) -> asyncio.Future[int]:
        stamped = [fact if fact.at else replace(fact, at=self.now()) for fact in facts]
        turn = self.turn
        for fact in stamped:
            turn = advance(turn, fact)
        change.facts = [FACT.dump(fact) for fact in stamped]
        change.usage = next((fact.usage for fact in facts if isinstance(fact, ReplyReceived)), change.usage)
        change.state, change.live = turn.state, not turn.state.ended
        change.steerable = change.live and not (turn.state is State.FINALIZING and turn.finished)
        change.leaf = self._grow(change.messages)
        for call in change.calls:
            self._settle(call)
        for question in change.questions:
            self.questions[question.id] = question
        for id, why in change.closed.items():
            self.questions[id] = replace(self.questions[id], closed=why)
        seq = self._count + 1
        self._count += len(facts)
        self.turn = turn
        return self.store.append(self.id, self.epoch, seq, change, sync=sync)

    def _grow(self, messages: Sequence[Message]) -> tuple[str | None, str] | None:
        before = self.tip
        for message in messages:
            if message.parent == self.tip:
                self._home.update({call.id: len(self.path) for call in message.calls})
                self.path.append(message)
        return (before, self.path[-1].id) if self.tip != before else None

    def _settle(self, call: ToolCall) -> None:
        place = self._home[call.id]
        message = self.path[place]
        parts = tuple(call if part.type == "call" and part.id == call.id else part for part in message.parts)
        self.path[place] = replace(message, parts=parts)

    # ── who is told ───────────────────────────────────────────────────────────────────────────────

    def publish(self, event: Event) -> None:
        self.events.publish(event)
        for watch in self.watchers:
            _call(watch, event)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call it now and on every change. Returns the way to end that. What it raises is dropped."""
        self._listeners.append(listener)
        _call(listener, self.snapshot())

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def _tell(self, before: State) -> None:
        if self.turn.state is not before:
            self.publish(TurnState(self.turn.state))
        if self._listeners:
            snapshot = self.snapshot()
            for listener in list(self._listeners):
                _call(listener, snapshot)


def _call(listener: Callable[[T], None], told: T) -> None:
    try:
        listener(told)
    except Exception:
        pass  # a listener's trouble is its own: neither the turn nor another listener may suffer


def _look(future: asyncio.Future[int]) -> None:
    """A write nobody waits for failed: the next one fails too, and that one is waited for."""
    if not future.cancelled():
        future.exception()
