"""Which trace the work of this task belongs to, as the W3C's `traceparent` header writes it.

Ids are derived, not drawn: whoever goes on with a turn after a restart, or on another machine, finds the same
trace and the same spans. While nothing is traced there is no context, and this costs one look-up.
"""

from __future__ import annotations

import hashlib
import re
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import TypeAlias

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


# A span, and names below it: an id is made of them when somebody asks for it.
_Place: TypeAlias = tuple[TraceContext, tuple[object, ...]]
_CURRENT: ContextVar[_Place | None] = ContextVar("dragoman_trace", default=None)


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


def current_trace() -> TraceContext | None:
    """The span that the work of this task belongs to."""
    if (place := _CURRENT.get()) is None:
        return None
    context, names = place
    return context.child(*names) if names else context


def enter_trace(context: TraceContext | None) -> None:
    """What this task does from now on belongs to this span."""
    _CURRENT.set(None if context is None else (context, ()))


def within(context: TraceContext | None, *names: object) -> _Within:
    """What is begun inside the block belongs to this span, or to the one below it with these names."""
    return _Within(None if context is None else (context, names))


class _Within:
    __slots__ = ("_place", "_token")

    def __init__(self, place: _Place | None) -> None:
        self._place = place
        self._token: Token[_Place | None] | None = None

    def __enter__(self) -> None:
        if self._place is not None:
            self._token = _CURRENT.set(self._place)

    def __exit__(self, *error: object) -> None:
        if self._token is not None:
            _CURRENT.reset(self._token)


def trace_headers(*names: object) -> dict[str, str]:
    """For a request that goes out from here: as a span of its own, where names are given."""
    if (place := _CURRENT.get()) is None:
        return {}
    context, above = place
    return {HEADER: (context.child(*above, *names) if above or names else context).header}


def derive_id(*names: object) -> str:
    """Of a span: the same for the same names."""
    return _derived(16, *names)


def _derived(digits: int, *names: object) -> str:
    return hashlib.sha256("\0".join(map(str, names)).encode()).hexdigest()[:digits]
