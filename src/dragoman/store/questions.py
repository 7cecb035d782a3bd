"""What a store does with questions to a person, with signals to a turn and with grants."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from pydantic import JsonValue

from dragoman.messages.questions import Answer, Grant, Question

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

    async def questions(self, *, conversation: str | None = None, user: str | None = None) -> list[Question]:
        """The open ones, oldest first."""

    async def questions_of(self, turn: str) -> list[Question]:
        """The open and the settled ones, oldest first."""

    async def answer(self, question: str, answer: Answer, grants: Sequence[Grant] = ()) -> Question:
        """Settle a question, once, with what it grants, and post the answer to its turn. AlreadyAnswered also
        where somebody has cancelled the turn, which may not have heard of that yet."""


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
        """Those that hold in a conversation, with what is denied in the one whose call opened it; or all of
        a user's; or all."""

    async def add_grant(self, grant: Grant) -> None:
        """One that a person gave without being asked."""

    async def revoke(self, grant: str) -> None: ...
