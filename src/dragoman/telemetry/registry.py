"""Adds up the metrics of this process."""

from __future__ import annotations

import threading
from bisect import bisect_left
from dataclasses import dataclass, field

from dragoman.telemetry.measures import ALL, Labels, Measure

MOST = 500  # sets of labels of one metric: names that models or people choose must not fill the memory


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
