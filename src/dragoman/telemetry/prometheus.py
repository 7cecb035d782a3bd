"""Keeps the metrics of this process and writes them as Prometheus reads them: no collector is needed."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

from dragoman.telemetry.measures import ALL, Labels, Measure

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_MOST = 500  # sets of labels of one metric: names that models or people choose must not fill the memory
_UNITS = {"s": "_seconds", "{USD}": "_usd", "{token}": "_tokens"}

Key = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Series:
    counts: list[int] = field(default_factory=list)  # by bucket, the last without a bound
    sum: float = 0.0
    count: int = 0


class Prometheus:
    """A `Meter`. Not for several threads: all values come from the event loop."""

    def __init__(self) -> None:
        self._series: dict[str, dict[Key, _Series]] = {measure.name: {} for measure in ALL}

    def record(self, measure: Measure, value: float, labels: Labels) -> None:
        known = self._series[measure.name]
        key = tuple(sorted(labels.items()))
        series = known.get(key)
        if series is None:
            if len(known) >= _MOST:
                key = tuple((name, "_other") for name, _ in key)
            series = known.setdefault(key, _Series([0] * (len(measure.buckets) + 1)))
        series.sum += value
        series.count += 1
        if measure.buckets:
            series.counts[bisect_left(measure.buckets, value)] += 1

    def write(self, gauges: Mapping[str, float]) -> str:
        """All of it. `gauges` are the values of this moment, by the names of their measures."""
        lines: list[str] = []
        for measure in ALL:
            name = _name(measure)
            lines += [f"# HELP {name} {measure.description}", f"# TYPE {name} {measure.kind}"]
            if measure.kind == "gauge":
                lines.append(f"{name} {_number(gauges.get(measure.name, 0))}")
                continue
            for key, series in sorted(self._series[measure.name].items()):
                if measure.kind == "counter":
                    lines.append(f"{name}{_labels(key)} {_number(series.sum)}")
                else:
                    lines += _histogram(measure, name, key, series)
        return "\n".join(lines) + "\n"


def _histogram(measure: Measure, name: str, key: Key, series: _Series) -> list[str]:
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


def _labels(key: Key) -> str:
    if not key:
        return ""
    return "{" + ",".join(f'{name.replace(".", "_")}="{_escape(value)}"' for name, value in key) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(value)
