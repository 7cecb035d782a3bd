"""Defines a store's operations on turns, facts, the queue and live events, and their values.

The store does not interpret facts and events: they arrive as JSON text and are returned in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Literal, NamedTuple, Protocol, TypeAlias

from pydantic import JsonValue

from dragoman.conversation.tree import Conversation
from dragoman.messages.message import Message, Part, ToolCall, ToolResult
from dragoman.messages.questions import Answer, Grant, Question
from dragoman.messages.usage import Usage

# ── questions and signals ─────────────────────────────────────────────────────────────────────────
# Operations on questions to users, signals to turns, and grants.


SignalKind: TypeAlias = Literal[
    "answer",  # A question was answered.
    "result",  # A client delivers the result of its tool.
    "steer",  # A user sends a message while the turn runs.
    "cancel",
    "follow",  # Another process wants to read the turn's events while it runs.
]


@dataclass(slots=True, frozen=True)
class Signal:
    """A signal from outside the turn that is not yet among its facts."""

    seq: int
    kind: SignalKind
    body: dict[str, JsonValue]


@dataclass(slots=True, frozen=True)
class Signalled:
    """A turn with unread signals, up to the number `newest`."""

    turn: str
    newest: int
    only_followed: bool  # No signal moves the turn.


class QuestionStore(Protocol):
    """Questions: written with a turn's facts, answered once. Lists omit unreadable ones."""

    async def question(self, id: str) -> Question:
        """Return a question. Raise Unreadable if it is damaged."""

    async def conversation_of_question(self, id: str) -> str:
        """Return its conversation, even if nothing else of it is readable."""

    async def questions(
        self,
        *,
        conversation: str | None = None,
        user: str | None = None,
        after: str | None = None,
        limit: int = 2**31,
        shared: bool = False,
    ) -> list[Question]:
        """Return open questions, oldest first, after the one named `after`.

        With `shared`, include those in shared conversations that this user may answer.
        """

    async def questions_of(self, turn: str) -> list[Question]:
        """Return open and settled questions, oldest first."""

    async def answer(
        self, question: str, answer: Answer, grants: Sequence[Grant] = (), *, by: str | None = None
    ) -> Question:
        """Settle a question once, store its grants, and post the answer to its turn.

        Raise AlreadyAnswered also after a cancel that the turn has not read yet. Raise Forbidden if `by` has
        no right to answer now.
        """


class SignalStore(Protocol):
    """Signals: posted by any process, read by the turn's owner, who deletes them together with a fact."""

    async def post(self, turn: str, kind: SignalKind, body: dict[str, JsonValue]) -> bool:
        """Post a signal to the turn's owner. Return False if the turn does not accept this kind.

        A `follow` is stored once, however often it is posted, and stays until the turn ends. A `result` is
        accepted once, and not after a cancel: otherwise, raise AlreadyAnswered.
        """

    async def signals(self, turn: str) -> list[Signal]:
        """Return unrecorded signals, oldest first, without unreadable ones."""

    async def withdraw_steering(self, turn: str, signal: int) -> bool:
        """Withdraw a steering message. Return False if it was recorded or never existed."""

    async def turns_with_signals(self, *, own: Collection[str] | None = None) -> list[Signalled]:
        """Return turns with signals. Those with only `follow` signals are limited to `own`, if given.

        Every watched turn has one, and only its owner needs to know.
        """


class GrantStore(Protocol):
    """Rules that users gave, mostly by an answer."""

    async def grants(self, conversation: str | None = None, *, user: str | None = None) -> list[Grant]:
        """Return the grants for what this user sends in a conversation, or all of a user's, or all.

        They are the user's grants, the owner's denials, and the denials of the parent conversation. A user
        who no longer takes part gets a denial of everything.
        """

    async def add_grant(self, grant: Grant) -> None:
        """Add a rule that a user gave without a request."""

    async def revoke(self, grant: str) -> None: ...


@dataclass(slots=True, frozen=True)
class TurnRow:
    """A stored turn. `owner` is the process that runs it, or None."""

    id: str
    conversation: str
    message: str
    state: str
    live: bool
    steerable: bool
    epoch: int
    owner: str | None
    created: float
    sender: str | None = None  # The user who sent its message. None: the conversation's owner.


@dataclass(slots=True, frozen=True)
class Rating:
    """A user's rating of a turn's answer, with a note."""

    turn: str
    user: str
    value: Literal["good", "bad"]
    note: str = ""
    at: float = 0.0


KEPT = 24 * 3600.0  # Seconds to keep the key of a send.


@dataclass(slots=True, frozen=True)
class SendKey:
    """The idempotency key of a send: a repeated send joins the turn that the same user's first send has
    started.

    It applies to sends after `since`. `sum` is a hash of the content.
    """

    name: str
    sum: str
    since: float


class SentBefore(Exception):
    """An earlier send with this key has started this turn, so nothing was stored."""

    def __init__(self, turn: str) -> None:
        super().__init__(turn)
        self.turn = turn


@dataclass(slots=True, frozen=True)
class Start:
    """A turn to start: with a new message, or (`message` None) as another answer to an existing one.

    A message without a parent goes below the conversation's leaf, unless `root` is set. `parallel` allows
    another answer while others are running. `opens` is a conversation that is added with its history in the
    same transaction.
    """

    turn: str
    conversation: str
    fact: str
    at: float
    message: Message | None = None
    again: str | None = None
    root: bool = False
    queue: bool = False
    parallel: bool = False
    key: SendKey | None = None
    opens: Conversation | None = None
    history: Sequence[Message] = ()
    by: str | None = None  # The sending user, who needs the right at this moment. None: the owner.


@dataclass(slots=True, frozen=True)
class Started:
    """A started turn. `message` is None if it answers an existing message."""

    turn: TurnRow
    conversation: Conversation
    message: Message | None
    revision: int


@dataclass(slots=True, frozen=True)
class Queued:
    """A turn that starts when the previous one is over."""

    turn: str
    conversation: str
    message: Message
    fact: str = ""  # its first fact
    sender: str | None = None


@dataclass(slots=True)
class Change:
    """Everything that one transaction writes for a turn."""

    conversation: str = ""
    facts: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    made: list[ToolCall] = field(default_factory=list)  # new calls by programs
    held: dict[str, ToolResult] = field(default_factory=dict)  # results under review, by call
    questions: list[Question] = field(default_factory=list)  # new questions
    # questions that need no answer, each with the reason
    closed: dict[str, str] = field(default_factory=dict)
    signals: list[int] = field(default_factory=list)  # signals that are now among the facts
    leaf: tuple[str | None, str] | None = None  # moved from, to
    usage: Usage | None = None  # Usage of the whole turn at its end, to add to the conversation's.
    state: str = ""
    live: bool = True
    steerable: bool = True

    def add(self, other: Change) -> None:
        """Add another, later change."""
        self.messages += other.messages
        later = {call.id for call in other.calls}
        self.calls = [call for call in self.calls if call.id not in later] + other.calls
        self.made += other.made
        self.held.update(other.held)
        self.questions += other.questions
        self.closed.update(other.closed)
        self.signals += other.signals


class Unread(Exception):
    """A user sent a message or cancelled before the turn could stop accepting signals."""


class TurnStore(Protocol):
    """Turns and their facts: one owner at a time writes, in complete transactions."""

    async def start(self, start: Start) -> Started | None:
        """Start a turn, or (None) queue it.

        Raise TurnBusy if its branch has a running turn, and NotFound if `by` does not take part in the
        conversation. For a used key, raise SentBefore, or KeyReused if the content differed.
        """

    async def turn_of_key(self, user: str, key: SendKey) -> str | None:
        """Return the turn started with this key. Raise KeyReused if the content differed."""

    def append(
        self, turn: str, epoch: int, seq: int, change: Change, *, sync: bool = False
    ) -> asyncio.Future[None]:
        """Write a change whose first fact has number `seq`.

        The call fixes its position in the order of writes and need not be awaited. The next write fails if
        this one did. A change of messages or calls increases the conversation's revision by one.

        Raise Fenced if the epoch is old, and StoreUnavailable if an earlier write failed. Raise `Unread` if
        the turn is to stop accepting steering messages and one has arrived, or is to complete and was
        cancelled.
        """

    async def turn(self, id: str) -> TurnRow: ...

    async def turn_of_call(self, call: str) -> TurnRow: ...

    async def turns(self, conversation: str) -> list[TurnRow]:
        """Return all turns, oldest first."""

    async def rate(self, rating: Rating) -> None:
        """Store a user's rating of an answer, replacing an earlier one."""

    async def remove_rating(self, turn: str, user: str) -> None: ...

    async def ratings(self, conversation: str | None = None) -> list[Rating]:
        """Return the ratings of one conversation, or all, oldest first."""

    async def live_turns_among(self, conversations: Collection[str]) -> list[TurnRow]:
        """Return the unfinished turns in these conversations."""

    async def live_turns(self, conversation: str | None = None) -> list[TurnRow]:
        """Return the unfinished turns of one conversation or of all, oldest first."""

    async def live_turns_named(self, turns: Collection[str]) -> list[TurnRow]:
        """Return those of these turns that are not over."""

    async def facts(self, turn: str) -> list[str]:
        """Return all facts in order, none for an unknown turn. Raise Unreadable if one is damaged."""

    async def claim(self, turn: str) -> int | None:
        """Become the owner and return the new epoch. None if the turn is over or its owner is alive."""

    async def is_abandoned(self, turn: str) -> bool:
        """Return whether it is unfinished and no process runs it: it has no owner, or a dead one."""

    async def abandoned_turns(self, *, waiting: bool = True) -> list[TurnRow]:
        """Return unfinished turns that no process runs, oldest first.

        `waiting=False` omits the possibly many turns that wait for a user without an answer so far. Turns
        whose tool asked are included, because the tool is gone.
        """

    async def own_turns(self) -> list[TurnRow]:
        """Return the unfinished turns of this process."""

    async def running_turns(self) -> list[TurnRow]:
        """Return the running turns that do not wait for a user, and whose tasks do not all wait.

        Turns of tasks are not included.
        """

    async def nodes(self) -> list[str]:
        """Return the other living processes that have the store open, by their names as owners of turns.

        A name has an ID, the process number and, if several machines can be involved, the machine.
        """

    async def close_turn(self, turn: str) -> None:
        """End a turn with unreadable facts as cancelled, without a fact."""

    async def release(self, turn: str, epoch: int) -> None:
        """Give up ownership, so that any process may claim it."""


class QueueStore(Protocol):
    """Turns that start when the previous ones are over. An unreadable one never starts."""

    async def start_queued(self, turn: str) -> Started | None:
        """Start it after the turn it waited for. None if it is gone, or has to wait for another."""

    async def is_queued(self, turn: str) -> bool: ...

    async def queued(self, *, turn: str | None = None, conversation: str | None = None) -> list[Queued]:
        """Return queued turns in their order."""

    async def renew_queued(self, conversation: str, renew: Callable[[str], str]) -> None:
        """Replace the first fact of each turn queued in a conversation."""

    async def unqueue(self, turn: str) -> bool:
        """Remove it from the queue. Return False if it has started or never existed."""

    async def change_queued(self, turn: str, parts: Sequence[Part]) -> bool:
        """Replace its message. Return False if it has started or never existed."""

    async def reorder_queue(self, conversation: str, turns: Sequence[str]) -> None:
        """Move these turns to the front of the conversation's queue, in this order.

        Started ones are skipped.
        """

    async def queue_marks(self, conversations: Sequence[str]) -> dict[str, str]:
        """Return a text for each with queued or steering messages, which changes with them."""

    async def queue(self, conversation: str | None = None) -> list[str]:
        """Return turns that may start now: the ones they waited for are over."""


class StoredEvent(NamedTuple):
    """A published event of a turn, with its number."""

    turn: str
    seq: int
    body: str


class EventStore(Protocol):
    """Published events of running turns, for followers in other processes.

    Nothing depends on events: they may be lost when a machine dies. Those of ended turns are dropped when a
    store opens.
    """

    async def put_events(self, events: Sequence[StoredEvent], epochs: Mapping[str, int]) -> None:
        """Store events of any number of turns, each owned by the caller since this epoch.

        An existing number gets the new body. Events of turns that are gone or have another owner are dropped.
        """

    async def events(self, after: Mapping[str, int], limit: int = 1000) -> list[StoredEvent]:
        """Return each turn's events after this number, in order."""

    async def wait_for_events(self, seconds: float) -> None:
        """Wait until another process may have stored events, at most this long."""

    async def drop_events(self, turn: str) -> None: ...


# ── the queue of turns ────────────────────────────────────────────────────────────────────────────
# Queues turns for workers, with an implementation for a single process.


Work: TypeAlias = Callable[[str], Awaitable[None]]


class JobQueue(Protocol):
    """Hands each turn out to one worker at a time.

    It may lose turns, and may hand out finished ones. The worker claims the turn in the store, and turns that
    no process runs are queued again.
    """

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def put(self, turn: str, *, urgent: bool = False, delay: float = 0.0) -> None:
        """Queue a turn, to run after `delay` seconds, and before those that are not urgent.

        Nothing happens if it is queued already. Immediate and delayed entries are separate.
        """

    async def work(self, run: Work, *, places: int) -> None:
        """Run turns from the queue, at most `places` at the same time, until cancelled. Running ones continue
        then."""

    async def waiting(self) -> tuple[int, float]:
        """Return the number of queued turns, and the seconds for which the first has waited."""

    def alone(self) -> AbstractAsyncContextManager[None]:
        """Exclude all others, in any process, during the block."""


def job_queue_of(store: object) -> Callable[[], JobQueue] | None:
    """Return a function that makes the queue shared by all processes of this store. None if it has none."""
    return getattr(store, "job_queue", None)


class MemoryJobs:
    """Implements `JobQueue` for one process."""

    def __init__(self) -> None:
        self._waiting: list[tuple[bool, int, str, float]] = []
        self._turns: set[str] = set()
        self._later: set[str] = set()
        self._count = 0
        self._more = asyncio.Event()
        self._running: set[asyncio.Future[None]] = set()
        self._lock = asyncio.Lock()

    async def open(self) -> None:
        """Start empty, even if it was open before in another event loop: opening finds waiting
        turns again."""
        self._waiting, self._turns, self._later = [], set(), set()
        self._more, self._lock = asyncio.Event(), asyncio.Lock()

    async def close(self) -> None:
        pass

    async def put(self, turn: str, *, urgent: bool = False, delay: float = 0.0) -> None:
        if not delay:
            self._add(turn, urgent)
        elif turn not in self._later:
            self._later.add(turn)
            asyncio.get_running_loop().call_later(delay, self._add_late, turn, urgent)

    def _add_late(self, turn: str, urgent: bool) -> None:
        self._later.discard(turn)
        self._add(turn, urgent)

    def _add(self, turn: str, urgent: bool) -> None:
        if turn not in self._turns:
            self._turns.add(turn)
            self._count += 1
            heappush(self._waiting, (not urgent, self._count, turn, asyncio.get_running_loop().time()))
            self._more.set()

    async def work(self, run: Work, *, places: int) -> None:
        free = asyncio.Semaphore(places)
        while True:
            await free.acquire()
            while not self._waiting:
                self._more.clear()
                await self._more.wait()
            _, _, turn, _ = heappop(self._waiting)
            self._turns.discard(turn)
            running = asyncio.ensure_future(run(turn))
            self._running.add(running)
            running.add_done_callback(self._running.discard)
            running.add_done_callback(lambda _: free.release())

    async def waiting(self) -> tuple[int, float]:
        now = asyncio.get_running_loop().time()
        return len(self._waiting), max((now - since for *_, since in self._waiting), default=0.0)

    def alone(self) -> AbstractAsyncContextManager[None]:
        return self._lock
