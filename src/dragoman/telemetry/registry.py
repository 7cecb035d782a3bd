"""Adds up the metrics of this process."""

from __future__ import annotations

import threading
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TypeAlias

from dragoman.telemetry.measures import ALL, Labels, Measure

MOST = 500  # sets of labels of one metric: names that models or people choose must not fill the memory

Key: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Series:
    """The values of a metric under one set of labels."""

    counts: list[int] = field(default_factory=list)  # by bucket, the last without a bound
    sum: float = 0.0
    count: int = 0
    least: float = 0.0
    most: float = 0.0


class Registry:
    """A `Meter`. Values come from one thread at a time; they may be read from another."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._series: dict[str, dict[Key, Series]] = {measure.name: {} for measure in ALL}

    def record(self, measure: Measure, value: float, labels: Labels) -> None:
        known = self._series[measure.name]
        key = tuple(labels.items())
        series = known.get(key)
        if series is None:
            if len(known) >= MOST:
                key = tuple((name, "_other") for name, _ in key)
            new = Series([0] * (len(measure.buckets) + 1), least=value, most=value)
            with self._lock:
                series = known.setdefault(key, new)
        series.sum += value
        series.count += 1
        series.least, series.most = min(series.least, value), max(series.most, value)
        if measure.buckets:
            series.counts[bisect_left(measure.buckets, value)] += 1

    def series(self, measure: Measure) -> list[tuple[Key, Series]]:
        with self._lock:
            return sorted(self._series[measure.name].items())
