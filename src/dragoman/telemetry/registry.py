"""Add up the metrics of this process."""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

# ── measures ──────────────────────────────────────────────────────────────────────────────────────
# These are the metrics with their names, units and buckets, and the receivers of their values.


Labels: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values, in a stable order."""


@dataclass(slots=True, frozen=True)
class Measure:
    name: str
    kind: Literal["counter", "histogram", "gauge"]
    unit: str
    description: str
    buckets: Sequence[float] = ()


_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
_LONG = (1, 5, 15, 60, 300, 900, 3600, 14400, 86400, 604800)  # Users take their time to answer.

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
WAIT = Measure(
    "dragoman.question.duration", "histogram", "s", "How long calls waited for a user's answer.", _LONG
)
COST = Measure("dragoman.cost", "counter", "{USD}", "Cost of replies, if the price is known.")
UNPRICED = Measure("dragoman.replies.unpriced", "counter", "{reply}", "Replies whose price is unknown.")
ERRORS = Measure("dragoman.errors", "counter", "{error}", "Turns that failed.")
STORE = Measure("dragoman.store.write.duration", "histogram", "s", "How long a turn's write took.", _SECONDS)

ALL = (LIVE, WAITING, QUEUED, TURN, REQUEST, FIRST, TOKENS, TOOL, WAIT, COST, UNPRICED, ERRORS, STORE)
GAUGES = (LIVE, WAITING, QUEUED)


class Meter(Protocol):
    """Receives values."""

    def record(self, measure: Measure, value: float, labels: Labels) -> None:
        """Add a value to a counter or a histogram."""


# Maximum number of label sets of one metric: names that models or users choose must not fill the memory.
MOST = 500


@dataclass(slots=True)
class Series:
    """The values of a metric under one set of labels."""

    counts: list[int] = field(default_factory=list)  # by bucket, the last one without an upper bound
    sum: float = 0.0
    count: int = 0
    least: float = 0.0
    most: float = 0.0


class Registry:
    """A `Meter` that adds values up. Only one thread records at a time, but another thread can read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._series: dict[str, dict[Labels, Series]] = {measure.name: {} for measure in ALL}

    def record(self, measure: Measure, value: float, labels: Labels) -> None:
        known = self._series[measure.name]
        series = known.get(labels)
        if series is None:
            if len(known) >= MOST:
                labels = tuple((name, "_other") for name, _ in labels)
            new = Series([0] * (len(measure.buckets) + 1), least=value, most=value)
            with self._lock:
                series = known.setdefault(labels, new)
        series.sum += value
        series.count += 1
        if value < series.least:
            series.least = value
        elif value > series.most:
            series.most = value
        if measure.buckets:
            series.counts[bisect_left(measure.buckets, value)] += 1

    def series(self, measure: Measure) -> list[tuple[Labels, Series]]:
        with self._lock:
            return sorted(self._series[measure.name].items())


# ── as Prometheus reads them ──────────────────────────────────────────────────────────────────────
# This format is for Prometheus, so no collector is needed.


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_UNITS = {"s": "_seconds", "{USD}": "_usd", "{token}": "_tokens"}


def prometheus_text(registry: Registry, gauges: Mapping[str, float]) -> str:
    """Return all metrics as text. `gauges` are the current values, by the names of their measures."""
    lines: list[str] = []
    for measure in ALL:
        name = _name(measure)
        lines += [f"# HELP {name} {measure.description}", f"# TYPE {name} {measure.kind}"]
        if measure.kind == "gauge":
            lines.append(f"{name} {_number(gauges.get(measure.name, 0))}")
            continue
        for key, series in registry.series(measure):
            if measure.kind == "counter":
                lines.append(f"{name}{_labels(key)} {_number(series.sum)}")
            else:
                lines += _histogram(measure, name, key, series)
    return "\n".join(lines) + "\n"


def _histogram(measure: Measure, name: str, key: Labels, series: Series) -> list[str]:
    lines, below = [], 0
    for bound, count in zip((*measure.buckets, math.inf), series.counts, strict=True):
        below += count
        lines.append(f"{name}_bucket{_labels((*key, ('le', _number(bound))))} {below}")
    lines.append(f"{name}_sum{_labels(key)} {_number(series.sum)}")
    lines.append(f"{name}_count{_labels(key)} {series.count}")
    return lines


def _name(measure: Measure) -> str:
    name = measure.name.replace(".", "_")
    unit = _UNITS.get(measure.unit, "")
    return f"{name}{'' if name.endswith(unit) else unit}{'_total' if measure.kind == 'counter' else ''}"


def _labels(key: Labels) -> str:
    if not key:
        return ""
    return "{" + ",".join(f'{name.replace(".", "_")}="{_escape(value)}"' for name, value in key) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(value)
