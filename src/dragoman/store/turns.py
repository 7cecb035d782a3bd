"""What a store does with turns, their facts, the queue and live events, and the values it takes and gives.

The store knows nothing of what facts and events mean: they come as JSON text and are given back in order.
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
# What a store does with questions to a person, with signals to a turn and with grants.


SignalKind: TypeAlias = Literal[
    "answer",  # a question was answered
    "result",  # a client delivers what its tool gave
    "steer",  # a person says something while the turn runs
    "cancel",
    "follow",  # another process wants to read the turn's events while it runs
]


@dataclass(slots=True, frozen=True)
class Signal:
    """Something that came in for a turn from outside and is not yet among its facts."""

    seq: int
    kind: SignalKind
    body: dict[str, JsonValue]


@dataclass(slots=True, frozen=True)
class Signalled:
    """A turn for which signals wait to be read, up to the number `newest`."""

    turn: str
    newest: int
    only_followed: bool  # nothing came in that would move it


class QuestionStore(Protocol):
    """Questions: written with a turn's facts, answered once. One that cannot be read is in no list."""

    async def question(self, id: str) -> Question:
        """May be Unreadable."""

    async def conversation_of_question(self, id: str) -> str:
        """Where it is asked, also where nothing else of it can be read."""

    async def questions(
        self,
        *,
        conversation: str | None = None,
        user: str | None = None,
        after: str | None = None,
        limit: int = 2**31,
        shared: bool = False,
    ) -> list[Question]:
        """The open ones, oldest first. `after` one of them, at most `limit`. With `shared`, also those in
        conversations of others that this user may answer.
        """

    async def questions_of(self, turn: str) -> list[Question]:
        """The open and the settled ones, oldest first."""

    async def answer(
        self, question: str, answer: Answer, grants: Sequence[Grant] = (), *, by: str | None = None
    ) -> Question:
        """Settle a question, once, with what it grants, and post the answer to its turn. AlreadyAnswered also
        where somebody has cancelled the turn, which may not have heard of that yet. Forbidden where `by`
        may not answer at this moment.
        """


class SignalStore(Protocol):
    """Signals: posted by anybody, read by the turn's owner, who strikes them off with a fact."""

    async def post(self, turn: str, kind: SignalKind, body: dict[str, JsonValue]) -> bool:
        """Put a signal where the turn's owner finds it. False where the turn takes none of this kind.

        A `follow` is there once, however often it is posted, and stays until the turn ends. A `result` is
        taken once, and not after a cancel: AlreadyAnswered.
        """

    async def signals(self, turn: str) -> list[Signal]:
        """Those not yet struck off, oldest first, without any that cannot be read."""

    async def withdraw_steering(self, turn: str, signal: int) -> bool:
        """Take a steering message back. False where it has been struck off, or was never there."""

    async def turns_with_signals(self, *, own: Collection[str] | None = None) -> list[Signalled]:
        """Of those that are only asked to be followed, `own` alone, if it is named: every turn that somebody
        watches is one of them, and none but its owner need know."""


class GrantStore(Protocol):
    """Rules that people gave, most of them by an answer."""

    async def grants(self, conversation: str | None = None, *, user: str | None = None) -> list[Grant]:
        """Those that hold in a conversation, with what is denied in the one whose call opened it, for what
        this user sends there: the user's own, and what its owner denies. For one who takes part no longer,
        a denial of everything. Else all of a user's, or all.
        """

    async def add_grant(self, grant: Grant) -> None:
        """One that a person gave without being asked."""

    async def revoke(self, grant: str) -> None: ...


@dataclass(slots=True, frozen=True)
class TurnRow:
    """A turn as the store sees it. `owner` is the process that runs it, or None."""

    id: str
    conversation: str
    message: str
    state: str
    live: bool
    steerable: bool
    epoch: int
    owner: str | None
    created: float
    sender: str | None = None  # The user who sent its message. None: who owns the conversation.


@dataclass(slots=True, frozen=True)
class Rating:
    """What a user thinks of the answer of a turn, with a note on why."""

    turn: str
    user: str
    value: Literal["good", "bad"]
    note: str = ""
    at: float = 0.0


KEPT = 24 * 3600.0  # seconds for which the key of a send is kept


@dataclass(slots=True, frozen=True)
class SendKey:
    """What a send is known by if it comes again: it joins the turn that a send of the same user has begun
    under this name since then. `sum` is a hash of what is sent."""

    name: str
    sum: str
    since: float


class SentBefore(Exception):
    """A send with the same key has begun this turn: nothing was stored."""

    def __init__(self, turn: str) -> None:
        super().__init__(turn)
        self.turn = turn


@dataclass(slots=True, frozen=True)
class Start:
    """A turn that is to begin: with a new message, or (`message` None) once more at one that is there.

    A message whose parent is None hangs on the conversation's leaf, unless `root` is set. With `beside`, an
    answer may be made once more while others are. With `opens`, its conversation is added before it, with
    this history: all of it or nothing.
    """

    turn: str
    conversation: str
    fact: str
    at: float
    message: Message | None = None
    again: str | None = None
    root: bool = False
    queue: bool = False
    beside: bool = False
    key: SendKey | None = None
    opens: Conversation | None = None
    history: Sequence[Message] = ()
    by: str | None = None  # The user who sends it, and has to be allowed to at this moment. None: the owner.


@dataclass(slots=True, frozen=True)
class Started:
    """A turn that has begun, and what it begins with. `message` is None where it answers an old one."""

    turn: TurnRow
    conversation: Conversation
    message: Message | None
    revision: int


@dataclass(slots=True, frozen=True)
class Queued:
    """A turn that begins when the one before it is over, and what it begins with."""

    turn: str
    conversation: str
    message: Message
    fact: str = ""  # its first
    sender: str | None = None


@dataclass(slots=True)
class Change:
    """Everything one transaction writes for a turn."""

    conversation: str = ""
    facts: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    made: list[ToolCall] = field(default_factory=list)  # new ones, by programs
    held: dict[str, ToolResult] = field(default_factory=dict)  # results under review, by call
    questions: list[Question] = field(default_factory=list)  # new ones
    closed: dict[str, str] = field(default_factory=dict)  # questions nobody need answer, and why
    signals: list[int] = field(default_factory=list)  # read and now among the facts
    leaf: tuple[str | None, str] | None = None  # moved from, to
    usage: Usage | None = None  # of the whole turn, when it ends: what it adds to the conversation's
    state: str = ""
    live: bool = True
    steerable: bool = True

    def add(self, other: Change) -> None:
        """Put in what another change writes, later."""
        self.messages += other.messages
        later = {call.id for call in other.calls}
        self.calls = [call for call in self.calls if call.id not in later] + other.calls
        self.made += other.made
        self.held.update(other.held)
        self.questions += other.questions
        self.closed.update(other.closed)
        self.signals += other.signals


class Unread(Exception):
    """A person said something to the turn, or cancelled it, before it could stop listening."""


class TurnStore(Protocol):
    """Turns and their facts: one owner at a time writes, and what it writes is whole."""

    async def start(self, start: Start) -> Started | None:
        """Begin a turn, or (None) put it in the queue. TurnBusy where its branch is running. SentBefore where
        its key is taken, and KeyReused where that was for something else. NotFound where `by` does not
        take part in the conversation.
        """

    async def turn_of_key(self, user: str, key: SendKey) -> str | None:
        """The turn that was begun under it. KeyReused where that was for something else."""

    def append(
        self, turn: str, epoch: int, seq: int, change: Change, *, sync: bool = False
    ) -> asyncio.Future[None]:
        """Write a change whose first fact has number `seq`.

        Takes its place in the order of writes when it is called. It need not be awaited. The next one fails
        if this one did. A change of messages or calls raises the conversation's revision by one.

        Fenced where the epoch is old. StoreUnavailable where one before it was not written. `Unread` where
        the turn is to stop taking steering messages and one has come in meanwhile, or is to be completed and
        somebody has cancelled it.
        """

    async def turn(self, id: str) -> TurnRow: ...

    async def turn_of_call(self, call: str) -> TurnRow: ...

    async def turns(self, conversation: str) -> list[TurnRow]:
        """All of them, oldest first."""

    async def rate(self, rating: Rating) -> None:
        """Keep what a user thinks of an answer, in place of what they thought before."""

    async def remove_rating(self, turn: str, user: str) -> None: ...

    async def ratings(self, conversation: str | None = None) -> list[Rating]:
        """Those of one conversation, or all, oldest first."""

    async def live_turns_among(self, conversations: Collection[str]) -> list[TurnRow]:
        """Those that are not over in any of these."""

    async def live_turns(self, conversation: str | None = None) -> list[TurnRow]:
        """Those that are not over, of one conversation or of all, oldest first."""

    async def live_turns_named(self, turns: Collection[str]) -> list[TurnRow]:
        """Those of these that are not over."""

    async def facts(self, turn: str) -> list[str]:
        """All of them in order. None for a turn that is not there. Unreadable where one is damaged."""

    async def claim(self, turn: str) -> int | None:
        """Become the owner. The new epoch, or None where the turn is over or its owner is alive."""

    async def is_abandoned(self, turn: str) -> bool:
        """Whether it is not over and nobody runs it: it has no owner, or a dead one."""

    async def abandoned_turns(self, *, waiting: bool = True) -> list[TurnRow]:
        """Those that are not over and nobody runs, oldest first. If `waiting` is False, without those that
        wait for a person and have got no answer yet, of which there may be very many: unless it was a tool
        that asked, which is gone.
        """

    async def own_turns(self) -> list[TurnRow]:
        """Those that are not over and belong to this process."""

    async def running_turns(self) -> list[TurnRow]:
        """Those that somebody runs and that do not wait for a person, nor do all tasks they gave. Without the
        turns of tasks.
        """

    async def nodes(self) -> list[str]:
        """The living processes that have the store open, this one excepted, by the names under which they own
        turns: an id, the number of the process and, where there are several, the machine."""

    async def close_turn(self, turn: str) -> None:
        """End, as cancelled and without a fact, a turn whose facts cannot be read."""

    async def release(self, turn: str, epoch: int) -> None:
        """Own it no longer, so that anybody may claim it."""


class QueueStore(Protocol):
    """Turns that begin when the one before them is over. One that cannot be read never begins."""

    async def start_queued(self, turn: str) -> Started | None:
        """Begin it where the one it waited for ended. None where it is gone, or has to wait for another."""

    async def is_queued(self, turn: str) -> bool: ...

    async def queued(self, *, turn: str | None = None, conversation: str | None = None) -> list[Queued]:
        """What waits for its turn, the first first."""

    async def renew_queued(self, conversation: str, renew: Callable[[str], str]) -> None:
        """Begin what is queued in a conversation with what this makes of its first fact."""

    async def unqueue(self, turn: str) -> bool:
        """Call it off. False where it has begun, or was never there."""

    async def change_queued(self, turn: str, parts: Sequence[Part]) -> bool:
        """Let it begin with another message. False where it has begun, or was never there."""

    async def reorder_queue(self, conversation: str, turns: Sequence[str]) -> None:
        """These of the conversation's queue come first, in this order. What has begun is passed over."""

    async def queue_marks(self, conversations: Sequence[str]) -> dict[str, str]:
        """For each that has something queued, or steered by, a text which changes with that."""

    async def queue(self, conversation: str | None = None) -> list[str]:
        """Turns that may begin now: the one they waited for is over."""


class StoredEvent(NamedTuple):
    """What a turn published, under its number."""

    turn: str
    seq: int
    body: str


class EventStore(Protocol):
    """What turns publish while they run, for followers in other processes.

    Nothing depends on events: they may be lost when a machine dies, and those of turns that have ended are
    dropped when a store is opened.
    """

    async def put_events(self, events: Sequence[StoredEvent], epochs: Mapping[str, int]) -> None:
        """Of any number of turns, each of which the caller has owned since this epoch. A number that is there
        already gets the new body. What belongs to a turn that is gone, or another's by now, is dropped.
        """

    async def events(self, after: Mapping[str, int], limit: int = 1000) -> list[StoredEvent]:
        """Of each of these turns, those with a higher number than this, in order."""

    async def wait_for_events(self, seconds: float) -> None:
        """Until another process may have put some, and no longer than this."""

    async def drop_events(self, turn: str) -> None: ...


# ── the queue of turns ────────────────────────────────────────────────────────────────────────────
# A queue of turns that wait for somebody to run them, and the one for a single process.


Work: TypeAlias = Callable[[str], Awaitable[None]]


class JobQueue(Protocol):
    """Hands turns out to whoever works, each to one at a time.

    It may forget, and may hand out what is over: whoever takes a turn claims it in the store, and turns that
    nobody runs are put here again.
    """

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def put(self, turn: str, *, urgent: bool = False, delay: float = 0.0) -> None:
        """Let somebody run it, in so many seconds, before those that are not urgent. Nothing happens where
        it waits here already: to be run now, or later, each for itself."""

    async def work(self, run: Work, *, places: int) -> None:
        """Run what is handed out, so many at once, until this is cancelled: what runs then goes on."""

    async def waiting(self) -> tuple[int, float]:
        """How many turns wait here for a worker, and for how many seconds the first of them has."""

    def alone(self) -> AbstractAsyncContextManager[None]:
        """Nobody else, in any process, is in here at the same time."""


def job_queue_of(store: object) -> Callable[[], JobQueue] | None:
    """Makes the queue that every process of this store sees. None where the store has none."""
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
        """Empty, also where it was open before, in another event loop: who opens it finds what waits."""
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
