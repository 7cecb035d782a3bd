"""Sends spans and metrics on by OpenTelemetry's SDK, which is imported here alone, and when it is wanted."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from dragoman.telemetry.environment import Exporter, Wanted
from dragoman.telemetry.measures import ALL, GAUGES, Labels, Measure
from dragoman.telemetry.observer import Telemetry
from dragoman.telemetry.spans import SpanValue

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Counter, Histogram, Observation
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import SpanProcessor

_SCOPE = "dragoman"
_NANO = 1_000_000_000


class OtelTelemetry(Telemetry):
    """Where the environment says that spans and metrics go. `close` sends what is left."""

    def __init__(self, wanted: Wanted) -> None:
        resource = _resource()
        self._spans = OtelSpans(wanted.traces, resource) if wanted.traces else None
        self._meter = OtelMeter(wanted.metrics, resource, lambda: self.gauges) if wanted.metrics else None
        super().__init__(
            spans=self._spans, meters=[self._meter] if self._meter else [], content=wanted.content
        )

    async def close(self) -> None:
        """Sends what is left, in a thread: it takes as long as the collector does."""
        for part in (self._spans, self._meter):
            if part is not None:
                await asyncio.to_thread(part.close)


class OtelSpans:
    """A `SpanExporter`. Ids are given, so the SDK's provider is one of our own, and not the program's."""

    def __init__(self, exporter: Exporter, resource: Resource) -> None:
        from opentelemetry import trace as api
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.id_generator import IdGenerator

        class GivenIds(IdGenerator):
            trace = span = 0

            def generate_trace_id(self) -> int:
                return self.trace

            def generate_span_id(self) -> int:
                return self.span

        self._api = api
        self._ids = GivenIds()
        self._provider = TracerProvider(
            resource=resource, id_generator=self._ids, shutdown_on_exit=False
        )  # the sampler is the environment's
        self._provider.add_span_processor(_processor(exporter))
        self._tracer = self._provider.get_tracer(_SCOPE, version("dragoman"))

    def samples(self, trace: str) -> bool:
        from opentelemetry.sdk.trace.sampling import Decision

        decided = self._provider.sampler.should_sample(None, int(trace, 16), "invoke_agent")
        return decided.decision is Decision.RECORD_AND_SAMPLE

    def emit(self, span: SpanValue) -> None:
        api = self._api
        self._ids.trace, self._ids.span = int(span.context.trace, 16), int(span.context.span, 16)
        around = api.Context() if span.parent is None else self._inside(span.context.trace, span.parent)
        kind = api.SpanKind.CLIENT if span.client else api.SpanKind.INTERNAL
        attributes = dict(span.attributes)
        if span.error is not None:
            attributes["error.type"] = span.error
        start = int(span.start * _NANO)
        made = self._tracer.start_span(
            span.name, around, kind, attributes, start_time=start, record_exception=False
        )
        for name, at in span.events:
            made.add_event(name, timestamp=int(at * _NANO))
        if span.error is not None:
            made.set_status(api.StatusCode.ERROR)
        made.end(max(start, int(span.end * _NANO)))

    def _inside(self, trace: str, parent: str) -> Any:
        api = self._api
        context = api.SpanContext(
            int(trace, 16),
            int(parent, 16),
            is_remote=True,
            trace_flags=api.TraceFlags(api.TraceFlags.SAMPLED),
        )
        return api.set_span_in_context(api.NonRecordingSpan(context), api.Context())

    def close(self) -> None:
        self._provider.shutdown()


class OtelMeter:
    """A `Meter` whose values the SDK sends on at its own pace."""

    def __init__(
        self, exporter: Exporter, resource: Resource, gauges: Callable[[], dict[str, float]]
    ) -> None:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import (
            ConsoleMetricExporter,
            MetricExporter,
            PeriodicExportingMetricReader,
        )

        if exporter == "console":
            target: MetricExporter = ConsoleMetricExporter()
        else:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

            target = OTLPMetricExporter()
        self._provider = MeterProvider(
            [PeriodicExportingMetricReader(target)], resource=resource, shutdown_on_exit=False
        )
        meter = self._provider.get_meter(_SCOPE, version("dragoman"))
        self._instruments: dict[str, Counter | Histogram] = {}
        for measure in ALL:
            about = {"unit": measure.unit, "description": measure.description}
            if measure.kind == "counter":
                self._instruments[measure.name] = meter.create_counter(measure.name, **about)
            elif measure.kind == "histogram":
                self._instruments[measure.name] = meter.create_histogram(
                    measure.name, explicit_bucket_boundaries_advisory=list(measure.buckets), **about
                )
        for measure in GAUGES:
            meter.create_observable_gauge(
                measure.name, [_callback(measure, gauges)], measure.unit, measure.description
            )

    def record(self, measure: Measure, value: float, labels: Labels) -> None:
        instrument = self._instruments[measure.name]
        if measure.kind == "counter":
            instrument.add(value, dict(labels))  # type: ignore[union-attr]  # by its kind
        else:
            instrument.record(value, dict(labels))  # type: ignore[union-attr]  # by its kind

    def close(self) -> None:
        self._provider.shutdown()


def _callback(
    measure: Measure, gauges: Callable[[], dict[str, float]]
) -> Callable[[CallbackOptions], Iterable[Observation]]:
    from opentelemetry.metrics import Observation

    def observe(options: CallbackOptions) -> Iterable[Observation]:
        return [Observation(gauges()[measure.name])]

    return observe


def _processor(exporter: Exporter) -> SpanProcessor:
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SimpleSpanProcessor

    if exporter == "console":
        return SimpleSpanProcessor(ConsoleSpanExporter())
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return BatchSpanProcessor(OTLPSpanExporter())


def _resource() -> Resource:
    from opentelemetry.sdk.resources import Resource

    named = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    own = {} if named else {"service.name": "dragoman"}
    return Resource.create({**own, "service.version": version("dragoman")})
