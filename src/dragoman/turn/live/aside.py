"""Requests beside the conversation: for a title, for a summary, or on behalf of a tool.

Nothing of them is stored. Whoever observes the turn is told of each when it is over, as it ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dragoman.errors import ProviderError
from dragoman.messages.request import Request
from dragoman.trace_context import current_trace, within
from dragoman.turn.live.log import TurnLog
from dragoman.turn.live.observed import Aside
from dragoman.turn.trace import RequestTrace


@contextmanager
def asking_aside(log: TurnLog, purpose: str, request: Request) -> Iterator[Aside]:
    """Around the request, which has a span of its own inside. Put the reply into `reply`."""
    log.asides += 1
    trace, current = log.trace, current_trace()
    ours = trace is not None and current is not None and current.trace == trace.trace
    aside = Aside(
        purpose,
        f"{log.epoch}.{log.asides}",
        current if ours else trace,
        request,
        [RequestTrace(1, request.model, log.now())],
    )
    error: str | None = "cancelled"
    status: int | None = None
    try:
        with within(trace, "aside", aside.place):
            yield aside
        error = None
    except Exception as wrong:
        error = type(wrong).__name__
        status = wrong.status if isinstance(wrong, ProviderError) else None
        raise
    finally:
        last = aside.attempts[-1]
        last.ended, last.error, last.status = max(last.started, log.now()), error, status
        if aside.reply is not None:
            last.finish, last.usage = aside.reply.finish, aside.reply.usage
        log.tell(aside)
