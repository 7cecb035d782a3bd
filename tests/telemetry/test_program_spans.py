"""A program that uses OpenTelemetry itself: its spans and ours are one trace (O1)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from dragoman import tool
from dragoman.wire.scripted import calls, says
from tests.runtimes import runtime_with
from tests.telemetry.collector import Collector, collecting, telemetry

pytestmark = pytest.mark.slow

KEPT = InMemorySpanExporter()
PROVIDER = TracerProvider()
PROVIDER.add_span_processor(SimpleSpanProcessor(KEPT))
TRACER = PROVIDER.get_tracer("the program")


@tool
async def look_up(city: str) -> str:
    """Ask a database."""
    with TRACER.start_as_current_span("query"):
        return f"{city} is large"


@pytest_asyncio.fixture
async def collector(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Collector]:
    KEPT.clear()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", PROVIDER)  # it can be set only once per process
    async with collecting(monkeypatch) as found:
        yield found


async def test_a_turn_hangs_below_the_span_that_started_it_and_what_a_tool_traces_below_its_call(
    tmp_path: Path, collector: Collector
) -> None:
    script = [calls("look_up", city="Bonn"), says("done")]
    async with runtime_with(tmp_path, script, tools=[look_up], telemetry=telemetry()) as runtime:
        with TRACER.start_as_current_span("request"):
            assert (await (await runtime.send("Is Bonn large?")).result()).text == "done"
    spans = {span.name: span for span in KEPT.get_finished_spans()}
    request, query = spans["request"], spans["query"]
    turn, call = collector.one("invoke_agent"), collector.one("execute_tool look_up")
    assert int.from_bytes(turn.parent_span_id) == request.context.span_id
    assert query.parent is not None
    assert query.parent.span_id == int.from_bytes(call.span_id)
    assert {request.context.trace_id, query.context.trace_id} == {int.from_bytes(turn.trace_id)}


async def test_without_tracing_of_ours_theirs_stays_as_it_was(tmp_path: Path, collector: Collector) -> None:
    """A span of a tool is below the span that started the turn."""
    async with runtime_with(
        tmp_path, [calls("look_up", city="Bonn"), says("done")], tools=[look_up]
    ) as runtime:
        with TRACER.start_as_current_span("request"):
            await (await runtime.send("Is Bonn large?")).result()
    spans = {span.name: span for span in KEPT.get_finished_spans()}
    assert spans["query"].parent is not None
    assert spans["query"].parent.span_id == spans["request"].context.span_id


async def test_a_span_that_is_not_sampled_keeps_the_turn_out_of_the_trace(
    tmp_path: Path, collector: Collector
) -> None:
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    unsampled = TracerProvider(sampler=ALWAYS_OFF).get_tracer("the program")
    async with runtime_with(tmp_path, [says("done")], telemetry=telemetry()) as runtime:
        with unsampled.start_as_current_span("request"):
            await (await runtime.send("Hi")).result()
    assert collector.spans == []
