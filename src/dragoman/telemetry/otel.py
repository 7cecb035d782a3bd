"""Export spans and metrics with OpenTelemetry's SDK, which only this module imports, and only on request.

The SDK decides on sampling and the resource, and encodes metrics. This package encodes spans as OTLP
(`otlp.py`) with derived IDs, and adds metrics up. If the SDK did that and sent them, it would cost ten times
as much and delay the exit of the program.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    ConsoleMetricExporter,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from dragoman.telemetry.environment import Exporter, Wanted
from dragoman.telemetry.observer import Telemetry
from dragoman.telemetry.otlp import encode_head, encode_request, encode_span
from dragoman.telemetry.registry import ALL, GAUGES, Measure, Registry
from dragoman.telemetry.sender import Sender, collector_from
from dragoman.telemetry.spans import SpanValue

_SCOPE = "dragoman"
_NANO = 1_000_000_000
_FLAGS = TraceFlags(TraceFlags.SAMPLED)
_INTERVAL = "OTEL_METRIC_EXPORT_INTERVAL"  # milliseconds


class OtelTelemetry(Telemetry):
    """Telemetry to the exporters that the environment names."""

    def __init__(self, wanted: Wanted) -> None:
        resource = _resource()
        self._spans: OtlpSpans | ConsoleSpans | None = None
        if wanted.traces is not None:
            self._spans = OtlpSpans(resource) if wanted.traces == "otlp" else ConsoleSpans(resource)
        self._metrics = OtelMetrics(wanted.metrics, resource) if wanted.metrics else None
        meters = [self._metrics.registry] if self._metrics is not None else []
        super().__init__(spans=self._spans, meters=meters, content=wanted.content)

    def open(self) -> None:
        super().open()
        if self._metrics is not None:
            self._repeat("sending metrics", self._send_metrics, every=_interval())

    async def _send_metrics(self) -> None:
        if self._metrics is not None:
            await asyncio.to_thread(self._metrics.send, self._metrics.data(self.gauges))

    async def close(self) -> None:
        """Send what is left, concurrently in threads, because a collector can be slow or unavailable."""
        await super().close()
        await self._send_metrics()
        parts = [part for part in (self._metrics, self._spans) if part is not None]
        await asyncio.gather(*(asyncio.to_thread(part.close) for part in parts))


class OtlpSpans:
    """A `SpanExporter` that sends to a collector."""

    def __init__(self, resource: Resource) -> None:
        head = encode_head(resource.attributes, resource.schema_url, _SCOPE, version("dragoman"))
        self.samples = _sampler()
        self._sender = Sender(collector_from(), partial(encode_request, head))
        self._longest = _longest()

    def emit(self, spans: Sequence[SpanValue]) -> None:
        self._sender.add([encode_span(span, self._longest) for span in spans])

    def close(self) -> None:
        self._sender.close()


class ConsoleSpans:
    """A `SpanExporter` that prints as the SDK does."""

    def __init__(self, resource: Resource) -> None:
        self.samples = _sampler()
        self._resource = resource
        self._scope = InstrumentationScope(_SCOPE, version("dragoman"))
        self._exporter = ConsoleSpanExporter()
        self._longest = _longest()

    def emit(self, spans: Sequence[SpanValue]) -> None:
        self._exporter.export([self._readable(span) for span in spans])

    def _readable(self, span: SpanValue) -> ReadableSpan:
        trace = int(span.trace, 16)
        start = int(span.start * _NANO)
        attributes = {**span.usual.attributes, **span.attributes}
        if (longest := self._longest) is not None:
            attributes = {n: v[:longest] if isinstance(v, str) else v for n, v in attributes.items()}
        if span.error is not None:
            attributes["error.type"] = span.error
        parent = span.parent and SpanContext(trace, int(span.parent, 16), True, _FLAGS)
        return ReadableSpan(
            span.name,
            SpanContext(trace, int(span.id, 16), False, _FLAGS),
            parent or None,
            self._resource,
            attributes,
            [Event(name, timestamp=int(at * _NANO)) for name, at in span.events],
            kind=SpanKind.CLIENT if span.client else SpanKind.INTERNAL,
            status=Status(StatusCode.UNSET if span.error is None else StatusCode.ERROR),
            start_time=start,
            end_time=max(start, int(span.end * _NANO)),
            instrumentation_scope=self._scope,
        )

    def close(self) -> None:
        self._exporter.shutdown()


class OtelMetrics:
    """Metrics that this package adds up, in the form of the SDK's exporters."""

    def __init__(self, exporter: Exporter, resource: Resource) -> None:
        self.registry = Registry()
        self._output: OtlpMetrics | ConsoleMetricExporter = (
            OtlpMetrics() if exporter == "otlp" else ConsoleMetricExporter()
        )
        self._resource = resource
        self._began = time.time_ns()

    def data(self, gauges: dict[str, float]) -> MetricsData:
        """Return the current metrics. It must be called in the thread that records the values."""
        now = time.time_ns()
        metrics = [self._metric(measure, now) for measure in ALL if measure.kind != "gauge"]
        for measure in GAUGES:
            point = NumberDataPoint({}, self._began, now, gauges[measure.name])
            metrics.append(Metric(measure.name, measure.description, measure.unit, Gauge([point])))
        scope = ScopeMetrics(InstrumentationScope(_SCOPE, version("dragoman")), metrics, "")
        return MetricsData([ResourceMetrics(self._resource, [scope], "")])

    def _metric(self, measure: Measure, now: int) -> Metric:
        series = self.registry.series(measure)
        data: Sum | Histogram
        if measure.kind == "counter":
            sums = [NumberDataPoint(dict(key), self._began, now, one.sum) for key, one in series]
            data = Sum(sums, AggregationTemporality.CUMULATIVE, is_monotonic=True)
        else:
            points = [
                HistogramDataPoint(
                    attributes=dict(key),
                    start_time_unix_nano=self._began,
                    time_unix_nano=now,
                    count=one.count,
                    sum=one.sum,
                    bucket_counts=list(one.counts),
                    explicit_bounds=list(measure.buckets),
                    min=one.least,
                    max=one.most,
                )
                for key, one in series
            ]
            data = Histogram(points, AggregationTemporality.CUMULATIVE)
        return Metric(measure.name, measure.description, measure.unit, data)

    def send(self, data: MetricsData) -> None:
        self._output.export(data)

    def close(self) -> None:
        self._output.shutdown()


class OtlpMetrics:
    """Sends metrics to a collector, encoded by the SDK and sent like spans."""

    def __init__(self) -> None:
        self._sender = Sender(collector_from(signal="metrics"), b"".join)

    def export(self, data: MetricsData) -> None:
        self._sender.add([encode_metrics(data).SerializeToString()])

    def shutdown(self) -> None:
        self._sender.close()


def _sampler() -> Callable[[str], bool]:
    """Return a function that samples traces, using the sampler that the environment names."""
    sampler = TracerProvider(shutdown_on_exit=False).sampler

    def samples(trace: str) -> bool:
        decided = sampler.should_sample(None, int(trace, 16), "invoke_agent")
        return decided.decision is Decision.RECORD_AND_SAMPLE

    return samples


def _longest() -> int | None:
    """Return the maximum characters of an attribute from the environment, or None."""
    text = os.environ.get("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT") or os.environ.get(
        "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", ""
    )
    return int(text) if text.isdecimal() else None


def _interval() -> float:
    text = os.environ.get(_INTERVAL, "")
    return max(1.0, int(text) / 1000) if text.isdecimal() else 60.0


def _resource() -> Resource:
    named = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    own = {} if named else {"service.name": "dragoman"}
    return Resource.create({**own, "service.version": version("dragoman")})
