"""What those who observe a turn are told: each write, and each request beside the conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dragoman.messages.events import StepRetry
from dragoman.messages.message import Message
from dragoman.messages.request import Request
from dragoman.trace_context import TraceContext, next_attempt
from dragoman.turn.facts import Fact
from dragoman.turn.trace import RequestTrace


@dataclass(slots=True)
class Written:
    """A write of a turn that ended: which facts, when it began and ended, and what it failed with."""

    facts: Sequence[Fact]
    began: float
    ended: float
    error: BaseException | None = None


@dataclass(slots=True)
class Aside:
    """A request beside the conversation that is over, with each attempt at its reply."""

    purpose: str  # title, summary, or tool
    place: str  # among those of its turn, also over a restart
    parent: TraceContext | None  # what it was asked for: the turn, or a call
    request: Request
    attempts: list[RequestTrace]
    reply: Message | None = None

    def retry(self, event: StepRetry, at: float) -> None:
        """What was sent failed, and is sent again."""
        next_attempt()
        last = self.attempts[-1]
        last.ended, last.error, last.status, last.wait = at, event.reason, event.status, event.seconds
        number = len(self.attempts) + 1
        self.attempts.append(RequestTrace(number, last.model, at + event.seconds, sent=number))


Observed: TypeAlias = Written | Aside
Observer: TypeAlias = Callable[[Observed], None]
