"""Provide a collector on loopback that accepts OTLP over HTTP and shows what it received."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from dragoman.telemetry.environment import wanted_telemetry
from dragoman.telemetry.otel import OtelTelemetry


@dataclass
class Collector:
    url: str = ""
    spans: list[Span] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)
    bodies: list[bytes] = field(default_factory=list)

    async def traces(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.bodies.append(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                self.spans += scope.spans
        return web.Response(content_type="application/x-protobuf")

    async def measures(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.bodies.append(body)
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            for scope in resource.scope_metrics:
                self.metrics |= {metric.name: metric for metric in scope.metrics}
        return web.Response(content_type="application/x-protobuf")

    # ── what came ─────────────────────────────────────────────────────────────────────────────────

    def named(self, beginning: str) -> list[Span]:
        found = [span for span in self.spans if span.name.startswith(beginning)]
        return sorted(found, key=lambda span: span.start_time_unix_nano)

    def one(self, beginning: str) -> Span:
        (span,) = self.named(beginning)
        return span

    def tree(self, *, store: bool = False) -> list[Any]:
        """Names, each with those below it, in the order in which they began."""
        known = {span.span_id for span in self.spans}
        tops = [span for span in self.spans if span.parent_span_id not in known]
        return self._below(tops, store=store)

    def _below(self, spans: list[Span], *, store: bool) -> list[Any]:
        found: list[Any] = []
        for span in sorted(spans, key=lambda one: (one.start_time_unix_nano, one.name)):
            if span.name.startswith("store") and not store:
                continue
            inner = self._below(
                [one for one in self.spans if one.parent_span_id == span.span_id], store=store
            )
            found.append((span.name, inner) if inner else span.name)
        return found


def attributes(span: Span) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in span.attributes}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, kind) if kind else None


@asynccontextmanager
async def collecting(environment: pytest.MonkeyPatch) -> AsyncIterator[Collector]:
    """One that listens, and an environment whose variables name it."""
    collector = Collector()
    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/v1/traces", collector.traces)
    app.router.add_post("/v1/metrics", collector.measures)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        collector.url = f"http://{host}:{port}"
        environment.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        yield collector
    finally:
        await runner.cleanup()


def telemetry() -> OtelTelemetry:
    """Return telemetry as the environment configures it, with a span for every write."""
    made = OtelTelemetry(wanted_telemetry())
    made.slow_write = 0.0
    return made
