"""A turn while it runs here: facts in, checked by the machine, stored, and told to whoever listens."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import takewhile
from typing import TypeVar

from dragoman.conversation.tree import Conversation
from dragoman.errors import NotFound
from dragoman.messages.altered import altered
from dragoman.messages.events import Event, TurnState
from dragoman.messages.fold import Draft
from dragoman.messages.message import Message
from dragoman.messages.parts import ToolCall, ToolResult
from dragoman.messages.questions import Question
from dragoman.store.store import Change, Store, TurnRow, Unread
from dragoman.turn.broadcast import Broadcast
from dragoman.turn.facts import FACT, Fact
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


@dataclass(slots=True)
class _Untold:
    """What may be told when a write is stored."""

    snapshot: Snapshot | None
    events: list[Event] = field(default_factory=list)


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
        revision: int = 0,
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
        self.revision = revision  # of the conversation, if nobody else changes it
        self._early: list[Fact] = []  # applied, and written with what comes next
        self._untold: deque[_Untold] = deque()
        self._last_write: asyncio.Future[None] | None = None
        self._last_state = self.turn.state
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
            await asyncio.shield(self._write(facts, change or Change(), sync))
        except Unread:
            self.turn, self._count = turn, count  # it did not happen: read the letter first
            raise

    def record_soon(self, *facts: Fact, change: Change | None = None) -> None:
        """The same without waiting. What is published from now on is held back until they are stored, and
        whatever is recorded next fails if this does."""
        self._write(facts, change or Change(), sync=False)

    async def stored(self) -> None:
        """Wait until everything recorded so far is on disk."""
        while self._last_write is not None and not self._last_write.done():
            await asyncio.wait([self._last_write])

    def record_with_next(self, fact: Fact) -> None:
        """For a fact that the next one follows at once: both are written together."""
        self._early.append(self._stamped(fact))
        self.turn = advance(self.turn, self._early[-1])

    def _write(self, facts: Sequence[Fact], change: Change, sync: bool) -> asyncio.Future[None]:
        stamped = [self._stamped(fact) for fact in facts]
        turn = reduce(advance, stamped, self.turn)  # an illegal one raises here, and nothing has happened
        change.facts = [FACT.dump(fact) for fact in (*self._early, *stamped)]
        self._early = []
        self._describe(change, turn)
        self.turn = turn
        seq = self._count + 1
        self._count += len(change.facts)
        future = self.store.append(self.id, self.epoch, seq, change, sync=sync)
        self._tell_when_stored(future)
        self._last_write = future
        return future

    def _stamped(self, fact: Fact) -> Fact:
        return fact if fact.at else altered(fact, at=self.now())

    def _describe(self, change: Change, turn: Turn) -> None:
        """What the rows say after this change; our own copies of them are changed alike."""
        change.conversation = self.conversation.id
        change.state, change.live = turn.state, not turn.state.ended
        change.steerable = change.live and not (turn.state is State.FINALIZING and turn.finished)
        if not change.live:
            change.usage = turn.usage
        change.leaf = self._grow(change.messages)
        for call in change.calls:
            self._settle(call)
        for question in change.questions:
            self.questions[question.id] = question
        for id, why in change.closed.items():
            self.questions[id] = replace(self.questions[id], closed=why)
        if change.messages or change.calls:
            self.revision += 1

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
        self.path[place] = altered(message, parts=parts)

    # ── who is told ───────────────────────────────────────────────────────────────────────────────

    def publish(self, event: Event) -> None:
        """Tell it to whoever listens; after everything that was recorded before it is stored."""
        if self._untold:
            self._untold[-1].events.append(event)
        else:
            self._tell(event)

    def _tell(self, event: Event) -> None:
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

    def _tell_when_stored(self, future: asyncio.Future[None]) -> None:
        told = _Untold(self.snapshot() if self._listeners else None)
        if self.turn.state is not self._last_state:
            self._last_state = self.turn.state
            told.events.append(TurnState(self.turn.state))
        self._untold.append(told)
        future.add_done_callback(self._stored)

    def _stored(self, future: asyncio.Future[None]) -> None:
        """Writes end in the order in which they were made, so it is the oldest that can be told now."""
        told = self._untold.popleft()
        if future.exception() is not None:
            return  # it did not happen; whoever records next is told why
        if told.snapshot is not None:
            for listener in list(self._listeners):
                _call(listener, told.snapshot)
        for event in told.events:
            self._tell(event)


def _call(listener: Callable[[T], None], told: T) -> None:
    try:
        listener(told)
    except Exception:
        pass  # a listener's trouble is its own: neither the turn nor another listener may suffer
