"""Read OpenTelemetry's standard environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dragoman.errors import ConfigError

Exporter: TypeAlias = Literal["otlp", "console"]

_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_YES = ("true", "1", "span_only", "span_and_event")


@dataclass(slots=True, frozen=True)
class Wanted:
    """The exporters of spans and metrics, if any, and whether contents are exported."""

    traces: Exporter | None = None
    metrics: Exporter | None = None
    content: bool = False

    @property
    def anything(self) -> bool:
        return self.traces is not None or self.metrics is not None


NOTHING = Wanted()


def wanted_telemetry(environment: Mapping[str, str] = os.environ) -> Wanted:
    """Return the requested telemetry: none unless a variable names an endpoint or an exporter. Raises
    ConfigError for unsupported values."""

    def said(name: str) -> str:
        return environment.get(name, "").strip().lower()

    if said("OTEL_SDK_DISABLED") == "true":
        return NOTHING
    traces, metrics = (_exporter(environment, signal) for signal in ("TRACES", "METRICS"))
    return Wanted(traces, metrics, content=said(_CONTENT) in _YES)


def _exporter(environment: Mapping[str, str], signal: str) -> Exporter | None:
    variable = f"OTEL_{signal}_EXPORTER"
    named = environment.get(variable, "").strip().lower()
    endpoints = (_ENDPOINT, f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    if not named:
        named = "otlp" if any(environment.get(name) for name in endpoints) else "none"
    match named:
        case "none":
            return None
        case "console":
            return "console"
        case "otlp":
            _check_protocol(environment, signal)
            return "otlp"
        case "prometheus" if signal == "METRICS":
            return None  # The route /metrics serves Prometheus.
    raise ConfigError(f"Unknown exporter {variable}={named}. Choose otlp, console or none.")


def _check_protocol(environment: Mapping[str, str], signal: str) -> None:
    for variable in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = environment.get(variable, "").strip()
        if protocol:
            if protocol != "http/protobuf":
                raise ConfigError(
                    f"Unknown protocol {variable}={protocol}. Dragoman supports only http/protobuf."
                )
            return
