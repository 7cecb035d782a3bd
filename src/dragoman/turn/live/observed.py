"""Defines the notifications to observers of a turn: each write, and each side request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from dragoman.errors import ProviderError
from dragoman.messages.events import Event, StepModel, StepRetry
from dragoman.messages.message import Message
from dragoman.messages.request import Request
from dragoman.trace_context import TraceContext, next_attempt
from dragoman.turn.facts import Fact, Retried
from dragoman.turn.trace import RequestTrace
from dragoman.wire.wire import begins_reply


@dataclass(slots=True)
class Written:
    """A finished write of a turn: its facts, start, end and error."""

    facts: Sequence[Fact]
    began: float
    ended: float
    error: BaseException | None = None


@dataclass(slots=True)
class Aside:
    """A finished side request, with each attempt at its reply."""

    purpose: str  # title, summary, or tool
    place: str  # its position among those of the turn, unique across restarts
    parent: TraceContext | None  # the span that requested it: the turn or a call
    request: Request
    attempts: list[RequestTrace]
    reply: Message | None = None

    def retry(self, event: StepRetry, at: float) -> None:
        """Note that an attempt failed and the request is sent again."""
        next_attempt()
        last = self.attempts[-1]
        last.ended, last.error, last.status, last.wait = at, event.reason, event.status, event.seconds
        number = len(self.attempts) + 1
        self.attempts.append(RequestTrace(number, last.model, at + event.seconds, sent=number))


Observed: TypeAlias = Written | Aside
Observer: TypeAlias = Callable[[Observed], None]


# Measures retries and the arrival of the first chunk, for the fact that reports the wait for a reply.


@dataclass(slots=True)
class ReplyTiming:
    """The timing of one step. `retries` holds all failed attempts before the reply, whichever component
    retried."""

    first: float = 0.0
    retries: list[Retried] = field(default_factory=list)
    chosen: bool = False  # whether a model of a chain was asked

    def begin(self, attempt: int) -> None:
        """Note that a request is sent. All requests of one step are reported together."""
        self.first, self.chosen = 0.0, False
        if attempt == 1:
            self.retries.clear()

    def see(self, events: Sequence[Event], now: Callable[[], float]) -> None:
        """Process events that arrive before any part of the reply."""
        if begins_reply(events):
            self.first = now()
            return
        for event in events:
            if isinstance(event, StepRetry):
                self._failed(Retried(now(), event.seconds, event.reason, event.status))
            elif isinstance(event, StepModel):
                if self.chosen:  # The previous model failed, and this one is asked immediately.
                    self._failed(Retried(now(), 0.0, event.reason))
                self.chosen = True

    def _failed(self, retry: Retried) -> None:
        self.retries.append(retry)
        next_attempt()

    def failed(self, error: ProviderError, at: float) -> None:
        """Note that a plugin removed the cause of an error, so the request is repeated immediately."""
        self.retries.append(Retried(at, 0.0, error.message, error.status))
