"""Which trace the work of this task belongs to, as the W3C's `traceparent` header writes it.

Ids are derived, not drawn: whoever goes on with a turn after a restart, or on another machine, finds the same
trace and the same spans. While nothing is traced there is no context, and this costs one look-up.

A program that uses OpenTelemetry itself has spans of its own: a turn it starts belongs to the one it is in,
and what its tools trace belongs to their calls.
"""

from __future__ import annotations

import hashlib
import re
import sys
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Any

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
        return TraceContext(self.trace, self.child_id(*names), self.sampled)

    def child_id(self, *names: object) -> str:
        return derive_id(self.span, *names)

    @property
    def header(self) -> str:
        return f"00-{self.trace}-{self.span}-{'01' if self.sampled else '00'}"


class _Place:
    """A span, names below it, of which an id is made when somebody asks, and which attempt is under way."""

    __slots__ = ("attempt", "context", "names")

    def __init__(self, context: TraceContext, names: tuple[object, ...] = ()) -> None:
        self.context = context
        self.names = names
        self.attempt = 1

    @property
    def span(self) -> TraceContext:
        return self.context.child(*self.names) if self.names else self.context


_CURRENT: ContextVar[_Place | None] = ContextVar("dragoman_trace", default=None)


def context_of_turn(turn: str, parent: TraceContext | None) -> TraceContext:
    """The span of a turn: in the trace of whoever started it, else in one of its own."""
    if parent is None:
        return TraceContext(_trace_of(turn), derive_id("turn", turn))
    return TraceContext(parent.trace, derive_id("turn", turn), parent.sampled)


def _trace_of(turn: str) -> str:
    return hashlib.sha256(f"trace\0{turn}".encode()).hexdigest()[:32]


def parse_header(text: str | None) -> TraceContext | None:
    """None for what is no `traceparent`: it is ignored then, as the standard says."""
    found = _HEADER.fullmatch(text.strip()) if text else None
    if found is None or set(found[1]) == {"0"} or set(found[2]) == {"0"}:
        return None
    return TraceContext(found[1], found[2], bool(int(found[3], 16) & 1))


def current_trace() -> TraceContext | None:
    """The span that the work of this task belongs to."""
    place = _CURRENT.get()
    return None if place is None else place.span


def callers_trace() -> TraceContext | None:
    """The same for who starts something: also a span of the program's own, where it traces itself."""
    if (ours := current_trace()) is not None or (trace := _opentelemetry()) is None:
        return ours
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return None
    return TraceContext(f"{span.trace_id:032x}", f"{span.span_id:016x}", bool(span.trace_flags.sampled))


def enter_trace(context: TraceContext | None) -> None:
    """What this task does from now on belongs to this span."""
    _CURRENT.set(None if context is None else _Place(context))


def within(context: TraceContext | None, *names: object) -> _Within:
    """What is begun inside the block belongs to this span, or to the one below it with these names."""
    return _Within(None if context is None else _Place(context, names))


class _Within:
    __slots__ = ("_place", "_theirs", "_token")

    def __init__(self, place: _Place | None) -> None:
        self._place = place
        self._token: Token[_Place | None] | None = None
        self._theirs: Any = None

    def __enter__(self) -> None:
        if self._place is not None:
            self._token = _CURRENT.set(self._place)
            if (trace := _opentelemetry()) is not None and _is_set_up(trace):
                self._theirs = _attach(trace, self._place.span)

    def __exit__(self, *error: object) -> None:
        if self._token is not None:
            _CURRENT.reset(self._token)
        if self._theirs is not None:
            sys.modules["opentelemetry.context"].detach(self._theirs)


def _opentelemetry() -> Any:
    """OpenTelemetry's API, where the program has loaded it."""
    return sys.modules.get("opentelemetry.trace")


def _is_set_up(trace: Any) -> bool:
    """Whether the program makes spans, and did not merely load it, as we do ourselves to send ours."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def _attach(trace: Any, span: TraceContext) -> Any:
    """Make it the span that OpenTelemetry takes for the current one."""
    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED if span.sampled else trace.TraceFlags.DEFAULT)
    ours = trace.SpanContext(int(span.trace, 16), int(span.span, 16), is_remote=False, trace_flags=flags)
    context = trace.set_span_in_context(trace.NonRecordingSpan(ours))
    return sys.modules["opentelemetry.context"].attach(context)


def trace_headers() -> dict[str, str]:
    """For a request that goes out from here, and is no span of its own."""
    place = _CURRENT.get()
    return {} if place is None else {HEADER: place.span.header}


def attempt_headers() -> dict[str, str]:
    """For an attempt at a reply, which is a span of its own."""
    if (place := _CURRENT.get()) is None:
        return {}
    return {HEADER: place.context.child(*place.names, "attempt", place.attempt).header}


def next_attempt() -> None:
    """One failed, and is told of: what goes out from here now is the next."""
    if (place := _CURRENT.get()) is not None:
        place.attempt += 1


def derive_id(*names: object) -> str:
    """Of a span: the same for the same names."""
    return hashlib.sha256("\0".join(map(str, names)).encode()).hexdigest()[:16]
