"""The metrics there are: their names, units and buckets, and where their values go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

Labels: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values, in an order that is the same each time."""


@dataclass(slots=True, frozen=True)
class Measure:
    name: str
    kind: Literal["counter", "histogram", "gauge"]
    unit: str
    description: str
    buckets: Sequence[float] = ()


_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
_LONG = (1, 5, 15, 60, 300, 900, 3600, 14400, 86400, 604800)  # people take their time

LIVE = Measure("dragoman.turns.live", "gauge", "{turn}", "Turns that run here, waiting ones included.")
WAITING = Measure("dragoman.turns.waiting", "gauge", "{turn}", "Turns here that only wait for a person.")
QUEUED = Measure("dragoman.turns.queued", "gauge", "{turn}", "Turns that wait for the one before them.")
TURN = Measure(
    "gen_ai.invoke_agent.duration", "histogram", "s", "A turn from start to end.", (*_SECONDS, *_LONG[4:])
)
REQUEST = Measure(
    "gen_ai.client.operation.duration", "histogram", "s", "One attempt at a model's reply.", _SECONDS
)
FIRST = Measure(
    "gen_ai.client.operation.time_to_first_chunk", "histogram", "s", "Until a reply began.", _SECONDS
)
TOKENS = Measure("gen_ai.client.token.usage", "histogram", "{token}", "Tokens of one reply.", _TOKENS)
TOOL = Measure("gen_ai.execute_tool.duration", "histogram", "s", "How long a tool ran.", _SECONDS)
WAIT = Measure("dragoman.question.duration", "histogram", "s", "How long a person was waited for.", _LONG)
COST = Measure("dragoman.cost", "counter", "{USD}", "What replies cost, where the price is known.")
UNPRICED = Measure("dragoman.replies.unpriced", "counter", "{reply}", "Replies whose price is not known.")
ERRORS = Measure("dragoman.errors", "counter", "{error}", "Turns that failed.")
STORE = Measure("dragoman.store.write.duration", "histogram", "s", "How long a turn's write took.", _SECONDS)

ALL = (LIVE, WAITING, QUEUED, TURN, REQUEST, FIRST, TOKENS, TOOL, WAIT, COST, UNPRICED, ERRORS, STORE)
GAUGES = (LIVE, WAITING, QUEUED)


class Meter(Protocol):
    """Takes values as they come."""

    def record(self, measure: Measure, value: float, labels: Labels) -> None:
        """Add to a counter, or put into a histogram."""
