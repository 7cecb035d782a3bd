"""What a memory has to be able to do, and the values that go in and out of it.

The store knows nothing of what facts mean: they come as text, and are given back in order. It keeps three
promises. What one call writes is written whole or not at all. Of two owners of a turn, only the newer can
write. What it has returned from is on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from pydantic import JsonValue

from dragoman.conversation.tree import Conversation
from dragoman.messages.message import Message
from dragoman.messages.parts import ToolCall, ToolResult
from dragoman.messages.questions import Answer, Grant, Question
from dragoman.messages.usage import Usage

SignalKind: TypeAlias = Literal["answer", "result", "steer", "cancel", "follow"]


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


@dataclass(slots=True, frozen=True)
class Start:
    """A turn that is to begin: with a new message, or (`message` None) once more at one that is there.

    A message whose parent is None hangs on the conversation's leaf, unless `root` is set.
    """

    turn: str
    conversation: str
    fact: str
    at: float
    message: Message | None = None
    again: str | None = None
    root: bool = False
    queue: bool = False


@dataclass(slots=True, frozen=True)
class Started:
    """A turn that has begun, and what it begins with. `message` is None where it answers an old one."""

    turn: TurnRow
    conversation: Conversation
    message: Message | None
    revision: int


@dataclass(slots=True, frozen=True)
class Signal:
    """Something that came in for a turn from outside and is not yet among its facts."""

    seq: int
    kind: SignalKind
    body: dict[str, JsonValue]


@dataclass(slots=True)
class Change:
    """Everything one transaction writes for a turn."""

    conversation: str = ""
    facts: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
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
        self.held.update(other.held)
        self.questions += other.questions
        self.closed.update(other.closed)
        self.signals += other.signals


@dataclass(slots=True, frozen=True)
class Found:
    """A message that a search found."""

    message: str
    conversation: str
    title: str | None
    snippet: str


@dataclass(slots=True, frozen=True)
class Busy:
    """What goes on in a conversation: whether a turn is alive, and how many questions are open."""

    live: bool = False
    waiting: int = 0


@dataclass(slots=True, frozen=True)
class Queued:
    """A turn that begins when the one before it is over, and what it begins with."""

    turn: str
    conversation: str
    message: Message


@dataclass(slots=True, frozen=True)
class Person:
    """Somebody who may use a server."""

    name: str
    created: float


@dataclass(slots=True, frozen=True)
class Spent:
    """What one reply used."""

    model: str | None
    day: str
    usage: Usage


class Store(Protocol):
    """The memory of a house. `conformance` is the test any implementation must pass."""

    async def open(self) -> None: ...
    async def close(self) -> None: ...

    # conversations
    async def add_conversation(
        self, conversation: Conversation, messages: Sequence[Message] = ()
    ) -> None: ...
    async def conversation(self, id: str) -> Conversation: ...
    async def conversations(
        self, *, user: str | None = None, limit: int = 50, before: tuple[float, str] | None = None
    ) -> list[Conversation]:
        """One page, the most recently used first. `before`: `updated` and `id` of the last one seen."""

    async def within(self, conversation: str) -> list[str]:
        """A conversation and those that its calls opened, the innermost first."""

    async def busy(self, conversations: Sequence[str]) -> dict[str, Busy]: ...
    async def set_title(self, conversation: str, title: str) -> None: ...
    async def change_settings(
        self, conversation: str, change: Callable[[dict[str, JsonValue]], dict[str, JsonValue]]
    ) -> None:
        """Make new settings of the old ones, with nobody in between. What `change` raises changes nothing."""

    async def set_leaf(self, conversation: str, leaf: str, at: float) -> None: ...
    async def delete_conversation(self, id: str) -> None:
        """And with it the conversations that its calls opened."""

    # messages
    async def messages(self, conversation: str) -> tuple[list[Message], int]:
        """All of them with their calls, oldest first, and the revision they were read at."""

    async def revision(self, conversation: str) -> int: ...
    async def revisions(self, conversations: Sequence[str]) -> dict[str, int]: ...
    async def message(self, id: str) -> Message: ...
    async def call(self, id: str) -> tuple[ToolCall, str, ToolResult | None]:
        """A call, its conversation, and its result where that waits for a person."""

    async def search(self, query: str, *, user: str | None = None, limit: int = 20) -> list[Found]: ...

    # turns
    async def start(self, start: Start) -> Started | None:
        """Begin a turn, or (None) put it in the queue. TurnBusy where its branch is running."""

    async def begin_queued(self, turn: str) -> Started | None: ...
    async def is_queued(self, turn: str) -> bool: ...
    async def queued(self, *, turn: str | None = None, conversation: str | None = None) -> list[Queued]:
        """What waits for its turn, the first first."""

    async def unqueue(self, turn: str) -> bool:
        """Call it off. False where it has begun, or was never there."""

    async def queue(self) -> list[str]:
        """Turns that may begin now: the one they waited for is over."""

    def append(
        self, turn: str, epoch: int, seq: int, change: Change, *, sync: bool = False
    ) -> asyncio.Future[None]:
        """Write a change whose first fact has number `seq`.

        Takes its place in the order of writes when it is called; it need not be awaited. The next one
        fails if this one did. A change of messages or calls raises the conversation's revision by one.

        Fenced where the epoch is old. `Unread` where the turn is to stop taking steering messages
        and one has come in meanwhile.
        """

    async def turn(self, id: str) -> TurnRow: ...
    async def turn_of_call(self, call: str) -> TurnRow: ...
    async def turns(self, conversation: str) -> list[TurnRow]: ...
    async def live_turns(self) -> list[TurnRow]: ...
    async def facts(self, turn: str) -> list[str]: ...
    async def claim(self, turn: str) -> int | None:
        """Become the owner. The new epoch, or None where the turn is over or its owner is alive."""

    async def release(self, turn: str, epoch: int) -> None: ...

    # questions, signals, grants
    async def question(self, id: str) -> Question: ...
    async def questions(self, *, conversation: str | None = None, user: str | None = None) -> list[Question]:
        """The open ones."""

    async def questions_of(self, turn: str) -> list[Question]: ...
    async def answer(self, question: str, answer: Answer, grants: Sequence[Grant] = ()) -> Question:
        """Settle a question, once, and post the answer to its turn."""

    async def post(self, turn: str, kind: SignalKind, body: dict[str, JsonValue]) -> bool:
        """Put a signal in a turn's box. False where the turn does not take it any more."""

    async def signals(self, turn: str) -> list[Signal]: ...
    async def turns_with_signals(self) -> list[str]: ...
    async def changed(self) -> bool:
        """Whether anybody, also another process, has written since this was last asked."""

    async def grants(self, conversation: str | None = None, *, user: str | None = None) -> list[Grant]:
        """Those that hold in a conversation; or all of a user's; or all."""

    async def revoke(self, grant: str) -> None: ...

    # pins, people, prompts, usage
    async def pin(self, user: str, tool: str) -> str | None:
        """The fingerprint of a foreign tool's definition when this person last let it run."""

    async def set_pin(self, user: str, tool: str, fingerprint: str) -> None: ...
    async def add_person(self, name: str, key: str, created: float) -> None:
        """`key` is a hash: the key itself is nowhere."""

    async def person_with_key(self, key: str) -> str | None: ...
    async def key_of(self, person: str) -> str | None:
        """The hash of their key, as long as they may come in."""

    async def people(self) -> list[Person]: ...
    async def remove_person(self, name: str) -> None: ...
    async def prompts(self, user: str) -> dict[str, str]: ...
    async def set_prompt(self, user: str, name: str, text: str) -> None: ...
    async def remove_prompt(self, user: str, name: str) -> None: ...
    async def spent(self, user: str) -> list[Spent]:
        """What every reply in a person's conversations used, oldest first."""

    # blobs
    async def put_blob(self, data: bytes) -> str: ...
    async def blob(self, key: str) -> bytes: ...
    def read_blob(self, key: str) -> bytes:
        """The same without an event loop: for a wire that puts an attachment into a request."""


class Unread(Exception):
    """A steering message came in before the turn could close its box."""
