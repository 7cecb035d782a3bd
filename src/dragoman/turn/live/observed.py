"""What those who observe a turn are told: each write, and each request beside the conversation."""

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


# When a reply was asked for again, and when its first piece came: what its fact tells of the wait for it.


@dataclass(slots=True)
class ReplyTiming:
    """Of one step. What failed before the reply came is in `retries`, whoever asked again."""

    first: float = 0.0
    retries: list[Retried] = field(default_factory=list)
    chosen: bool = False  # a model of a chain was asked

    def begin(self, attempt: int) -> None:
        """A request goes out. Those of one step are told together."""
        self.first, self.chosen = 0.0, False
        if attempt == 1:
            self.retries.clear()

    def see(self, events: Sequence[Event], now: Callable[[], float]) -> None:
        """What came while nothing of the reply had."""
        if begins_reply(events):
            self.first = now()
            return
        for event in events:
            if isinstance(event, StepRetry):
                self._failed(Retried(now(), event.seconds, event.reason, event.status))
            elif isinstance(event, StepModel):
                if self.chosen:  # the one before it failed, and this one is asked at once
                    self._failed(Retried(now(), 0.0, event.reason))
                self.chosen = True

    def _failed(self, retry: Retried) -> None:
        self.retries.append(retry)
        next_attempt()

    def failed(self, error: ProviderError, at: float) -> None:
        """A plugin took away the cause: it is asked again at once."""
        self.retries.append(Retried(at, 0.0, error.message, error.status))
