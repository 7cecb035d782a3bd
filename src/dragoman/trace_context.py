"""Determine the trace of the current task, in the format of the W3C's `traceparent` header.

IDs are derived, not random. So a process that resumes a turn after a restart, or on another machine, computes
the same trace and spans. If nothing is traced, there is no context, and this costs one lookup.

A program that uses OpenTelemetry has spans, too: a turn that it starts belongs to its current span, and spans
of its tools belong to their calls.
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
    """A span of a trace. `sampled` tells whether it is exported."""

    trace: str
    span: str
    sampled: bool = True

    def child(self, *names: object) -> TraceContext:
        """Return a span below this one. The same names yield the same span."""
        return TraceContext(self.trace, self.child_id(*names), self.sampled)

    def child_id(self, *names: object) -> str:
        return derive_id(self.span, *names)

    @property
    def header(self) -> str:
        return f"00-{self.trace}-{self.span}-{'01' if self.sampled else '00'}"


class _Place:
    """A span, names below it whose ID is computed on demand, and the number of the current attempt."""

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
    """Return the span of a turn: in the trace of its caller, otherwise in a separate one."""
    if parent is None:
        return TraceContext(_trace_of(turn), derive_id("turn", turn))
    return TraceContext(parent.trace, derive_id("turn", turn), parent.sampled)


def _trace_of(turn: str) -> str:
    return hashlib.sha256(f"trace\0{turn}".encode()).hexdigest()[:32]


def parse_header(text: str | None) -> TraceContext | None:
    """Return the context of a header. None for an invalid `traceparent`, which the standard says to
    ignore."""
    found = _HEADER.fullmatch(text.strip()) if text else None
    if found is None or set(found[1]) == {"0"} or set(found[2]) == {"0"}:
        return None
    return TraceContext(found[1], found[2], bool(int(found[3], 16) & 1))


def current_trace() -> TraceContext | None:
    """Return the span that this task's work belongs to."""
    place = _CURRENT.get()
    return None if place is None else place.span


def callers_trace() -> TraceContext | None:
    """Return the parent span for new work. If Dragoman has none, this is the program's OpenTelemetry span."""
    if (ours := current_trace()) is not None or (trace := _opentelemetry()) is None:
        return ours
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return None
    return TraceContext(f"{span.trace_id:032x}", f"{span.span_id:016x}", bool(span.trace_flags.sampled))


def enter_trace(context: TraceContext | None) -> None:
    """Set the span that this task's work belongs to from now on."""
    _CURRENT.set(None if context is None else _Place(context))


def within(context: TraceContext | None, *names: object) -> _Within:
    """Return a context manager: work that starts inside belongs to this span, or to the one below it with
    these names."""
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
    """Return OpenTelemetry's API if the program has loaded it."""
    return sys.modules.get("opentelemetry.trace")


def _is_set_up(trace: Any) -> bool:
    """Return whether the program creates spans. Dragoman loads the API itself to export its spans, which does
    not count."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def _attach(trace: Any, span: TraceContext) -> Any:
    """Make it OpenTelemetry's current span."""
    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED if span.sampled else trace.TraceFlags.DEFAULT)
    ours = trace.SpanContext(int(span.trace, 16), int(span.span, 16), is_remote=False, trace_flags=flags)
    context = trace.set_span_in_context(trace.NonRecordingSpan(ours))
    return sys.modules["opentelemetry.context"].attach(context)


def trace_headers() -> dict[str, str]:
    """Return the headers of an outgoing request that has no separate span."""
    place = _CURRENT.get()
    return {} if place is None else {HEADER: place.span.header}


def attempt_headers() -> dict[str, str]:
    """Return the headers of an attempt at a reply, which has a separate span."""
    if (place := _CURRENT.get()) is None:
        return {}
    return {HEADER: place.context.child(*place.names, "attempt", place.attempt).header}


def next_attempt() -> None:
    """Record that an attempt failed and was reported. Later requests belong to the next attempt."""
    if (place := _CURRENT.get()) is not None:
        place.attempt += 1


def derive_id(*names: object) -> str:
    """Return the ID of a span, derived from these names."""
    return hashlib.sha256("\0".join(map(str, names)).encode()).hexdigest()[:16]
