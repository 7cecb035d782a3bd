"""Which trace the work of this task belongs to, as the W3C's `traceparent` header writes it.

Ids are derived, not drawn: whoever goes on with a turn after a restart, or on another machine, finds the same
trace and the same spans. While nothing is traced there is no context, and this costs one look-up.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

HEADER = "traceparent"
_HEADER = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")


@dataclass(slots=True, frozen=True)
class TraceContext:
    """A span of a trace. `sampled`: somebody wants to see it."""

    trace: str
    span: str
    sampled: bool = True

    def child(self, *names: object) -> TraceContext:
        """A span below this one, the same for the same names."""
        return TraceContext(self.trace, _derived(16, self.span, *names), self.sampled)

    @property
    def header(self) -> str:
        return f"00-{self.trace}-{self.span}-{'01' if self.sampled else '00'}"


CURRENT: ContextVar[TraceContext | None] = ContextVar("dragoman_trace", default=None)


def context_of_turn(turn: str, parent: TraceContext | None) -> TraceContext:
    """The span of a turn: in the trace of whoever started it, else in one of its own."""
    if parent is None:
        return TraceContext(_derived(32, "trace", turn), _derived(16, "turn", turn))
    return TraceContext(parent.trace, _derived(16, "turn", turn), parent.sampled)


def parse_header(text: str | None) -> TraceContext | None:
    """None for what is no `traceparent`: it is ignored then, as the standard says."""
    found = _HEADER.fullmatch(text.strip()) if text else None
    if found is None or set(found[1]) == {"0"} or set(found[2]) == {"0"}:
        return None
    return TraceContext(found[1], found[2], bool(int(found[3], 16) & 1))


@contextmanager
def within(context: TraceContext | None) -> Iterator[None]:
    """What is begun inside the block belongs to this span."""
    if context is None:
        yield
        return
    token = CURRENT.set(context)
    try:
        yield
    finally:
        CURRENT.reset(token)


def trace_headers(*names: object) -> dict[str, str]:
    """For a request that goes out from here: as a span of its own, where names are given."""
    context = CURRENT.get()
    if context is None:
        return {}
    return {HEADER: (context.child(*names) if names else context).header}


def _derived(digits: int, *names: object) -> str:
    return hashlib.sha256("\0".join(map(str, names)).encode()).hexdigest()[:digits]
