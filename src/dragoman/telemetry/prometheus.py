"""Writes metrics as Prometheus reads them: no collector is needed."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dragoman.telemetry.measures import ALL, Labels, Measure
from dragoman.telemetry.registry import Registry, Series

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_UNITS = {"s": "_seconds", "{USD}": "_usd", "{token}": "_tokens"}


def prometheus_text(registry: Registry, gauges: Mapping[str, float]) -> str:
    """All of it. `gauges` are the values of this moment, by the names of their measures."""
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
