"""When a reply was asked for again, and when its first piece came: what its fact tells of the wait for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dragoman.errors import ProviderError
from dragoman.messages.events import Event, StepModel, StepRetry
from dragoman.trace_context import next_attempt
from dragoman.turn.facts import Retried
from dragoman.wire.wire import begins_reply


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
