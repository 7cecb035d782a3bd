"""Where tracing meets the rest: crashes, cancels, sampling, stops, versions, agents and nodes."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from dragoman import Agent, tool
from dragoman.store.postgres.store import PostgresStore
from dragoman.trace_context import parse_header, within
from dragoman.wire.scripted import Line, calls, says
from tests.fork_server import KILL, python
from tests.patience import PATIENCE, eventually
from tests.postgres import Server, schema_of
from tests.runtimes import add, calls_of, runtime_with
from tests.telemetry.collector import Collector, attributes, collecting, telemetry

pytestmark = pytest.mark.slow

THEIRS = "00-" + "ab" * 16 + "-" + "cd" * 8
STEP = ("step 1", ["chat model", "execute_tool add"])


@pytest_asyncio.fixture
async def collector(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Collector]:
    async with collecting(monkeypatch) as found:
        yield found


def once(collector: Collector) -> None:
    """Every span came once, in one trace, and hangs below one that came, too."""
    ids = [span.span_id for span in collector.spans]
    assert len(set(ids)) == len(ids)
    assert len({span.trace_id for span in collector.spans}) == 1
    assert {span.parent_span_id for span in collector.spans} <= {*ids, b""}


async def killed(folder: Path, until: Any, **environment: str) -> str:
    """Return the turn of a program that was killed while its second tool ran, once this condition held."""
    child = await asyncio.create_subprocess_exec(
        *python("-m", "tests.telemetry.killed", str(folder)), env={**os.environ, **environment}
    )
    try:
        await eventually((folder / "stays").exists)
        await eventually(until)
    finally:
        child.send_signal(KILL)
        await child.wait()
    return (folder / "turn").read_text()


@tool(replay="safe")
async def stay() -> str:
    """Stay no longer."""
    return "here"


async def test_a_turn_that_was_killed_and_taken_up_is_told_once(tmp_path: Path, collector: Collector) -> None:
    """The spans of the first process fit those of the second, and none arrives twice (O1 × S1)."""
    turn = await killed(tmp_path, lambda: len(collector.named("chat")) == 2, OTEL_BSP_SCHEDULE_DELAY="10")
    before = [span.name for span in collector.spans if not span.name.startswith("store")]
    assert sorted(before) == ["chat model", "chat model", "execute_tool add", "step 1"]
    async with runtime_with(tmp_path, [says("done")], tools=[add, stay], telemetry=telemetry()) as runtime:
        assert (await runtime.turn(turn).result()).text == "done"
    step = ("step 2", ["chat model", "execute_tool stay"])
    assert collector.tree() == [("invoke_agent", [STEP, step, ("step 3", ["chat model"])])]
    once(collector)
    top = collector.one("invoke_agent")
    assert attributes(top)["dragoman.turn.owners"] == 2
    assert "resumed" in [event.name for event in top.events]
    assert [event.name for event in collector.one("execute_tool stay").events] == ["started", "started"]


async def test_what_a_killed_process_had_not_sent_is_missing_and_the_turn_says_why(
    tmp_path: Path, collector: Collector
) -> None:
    """The trace that is built from the stored facts is complete (O1 × S1)."""
    turn = await killed(tmp_path, lambda: True, OTEL_BSP_SCHEDULE_DELAY="600000")
    assert collector.spans == []
    async with runtime_with(tmp_path, [says("done")], tools=[add, stay], telemetry=telemetry()) as runtime:
        await runtime.turn(turn).result()
        whole = await runtime.turn(turn).trace()
    assert attributes(collector.one("invoke_agent"))["dragoman.turn.owners"] == 2
    assert not collector.named("execute_tool add")
    assert [call.tool for call in whole.calls] == ["add", "stay"]


@tool(cancellable=True)
async def wait() -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return ""


@dataclass
class Cut:
    """A turn of one reply that is cancelled at this event, and the content of its step at that moment."""

    line: Line
    event: str
    inside: list[Any]
    allow: Sequence[str] = ("*",)


@pytest.mark.parametrize(
    "cut",
    [
        Cut(says("x" * 800, waits=0.01), "text.delta", ["chat model"]),
        Cut(calls("wait"), "call.start", ["chat model", "execute_tool wait"]),
        Cut(calls("wait"), "call.asked", ["chat model", ("execute_tool wait", ["question approve"])], ()),
    ],
    ids=["in a reply", "in a tool", "in a question"],
)
async def test_what_a_cancel_cuts_short_has_its_end(tmp_path: Path, collector: Collector, cut: Cut) -> None:
    """Every started span is sent with the turn's state, and a cancellation is not an error of the turn (O1 ×
    T6)."""
    async with runtime_with(
        tmp_path, [cut.line], tools=[wait], allow=cut.allow, telemetry=telemetry()
    ) as runtime:
        turn = await runtime.send("go")
        async for one in turn.events():
            if one.type == cut.event:
                await turn.cancel("enough")
                break
        await turn.result()
    assert collector.tree() == [("invoke_agent", [("step 1", cut.inside)])]
    once(collector)
    top = attributes(collector.one("invoke_agent"))
    assert (top["dragoman.turn.state"], "error.type" in top) == ("cancelled", False)
    for call in collector.named("execute_tool"):
        assert attributes(call)["error.type"] == "cancelled"
    for span in collector.spans:
        assert span.end_time_unix_nano >= span.start_time_unix_nano


async def test_who_is_not_sampled_is_counted(tmp_path: Path, collector: Collector) -> None:
    """Sampling concerns only spans, and tokens and calls are always counted (O1)."""
    script = [calls("add", a=1, b=2), says("3")]
    async with runtime_with(tmp_path, script, tools=[add], telemetry=telemetry()) as runtime:
        with within(parse_header(f"{THEIRS}-00")):
            turn = await runtime.send("go")
        await turn.result()
    assert collector.spans == []
    tokens = collector.metrics["gen_ai.client.token.usage"].histogram.data_points
    assert sum(point.sum for point in tokens) == 30
    (ran,) = collector.metrics["gen_ai.execute_tool.duration"].histogram.data_points
    assert ran.count == 1


async def test_a_collector_that_never_answers_does_not_keep_a_program_from_stopping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It stops within the configured time, and the log reports unsent spans (O1 × T9)."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{deaf.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
        with caplog.at_level(logging.WARNING, "dragoman.telemetry"):
            async with runtime_with(tmp_path, [says("hi")], telemetry=telemetry()) as runtime:
                await (await runtime.send("go")).result()
                began = time.monotonic()
    assert time.monotonic() - began < PATIENCE
    assert "spans were not sent" in caplog.text
    assert "reports of metrics were not sent" in caplog.text


async def test_steps_that_were_copied_are_told_where_they_happened(
    tmp_path: Path, collector: Collector
) -> None:
    """The new version has a separate trace, and counts nothing twice (O1 × rerun)."""
    script = [calls("add", a=1, b=2), calls("add", a=3, b=4), says("7"), says("9")]
    async with runtime_with(tmp_path, script, tools=[add], telemetry=telemetry()) as runtime:
        chat = await runtime.conversation()
        result = await (await chat.send("go")).result()
        collector.spans.clear()
        last = calls_of(result.messages)[-1]
        again = await chat.rerun_call(last.id, arguments={"a": 4, "b": 5})
        assert (await again.result()).text == "9"
        copied = [request.copied for step in (await again.trace()).steps for request in step.requests]
    assert copied == [True, True, False]
    (ours,) = {span.trace_id for span in collector.named("invoke_agent") if turn_of(span) == again.id}
    collector.spans = [span for span in collector.spans if span.trace_id == ours]
    assert collector.tree() == [
        ("invoke_agent", ["step 1", ("step 2", ["execute_tool add"]), ("step 3", ["chat model"])])
    ]
    (ran,) = collector.metrics["gen_ai.execute_tool.duration"].histogram.data_points
    asked = collector.metrics["gen_ai.client.operation.duration"].histogram.data_points
    assert (ran.count, sum(point.count for point in asked)) == (3, 4)


def turn_of(span: Any) -> str:
    return str(attributes(span)["dragoman.turn.id"])


async def test_agents_that_hand_over_share_a_trace_and_a_fork_has_its_own(
    tmp_path: Path, collector: Collector
) -> None:
    """The turn is the same whichever agent answers, and a turn in a copy of the conversation is another (O1 ×
    R4)."""
    agents = [Agent(name="desk", handoffs=("sums",), tools=()), Agent(name="sums", tools=("tools",))]
    script = [calls("hand_off", agent="sums"), calls("add", a=2, b=2), says("4"), says("again")]
    async with runtime_with(tmp_path, script, tools=[add], agents=agents, telemetry=telemetry()) as runtime:
        chat = await runtime.conversation(agent="desk")
        await (await chat.send("2 + 2?")).result()
        fork = await runtime.fork(chat.id, (await chat.messages())[-1].id)
        await (await fork.send("and again?")).result()
    first, second = collector.named("invoke_agent")
    assert (first.name, second.name) == ("invoke_agent desk", "invoke_agent sums")
    assert (second.trace_id != first.trace_id, second.parent_span_id) == (True, b"")
    collector.spans = [span for span in collector.spans if span.trace_id == first.trace_id]
    once(collector)
    assert [span.name for span in collector.named("execute_tool")] == [
        "execute_tool hand_off",
        "execute_tool add",
    ]


async def test_a_turn_that_another_node_runs_stays_in_the_trace_of_who_asked(
    tmp_path: Path, collector: Collector, postgres: Server
) -> None:
    """One node accepts the message and another runs the turn, and both send spans to the collector
    (O1 × N5)."""

    def node(role: str) -> Any:
        store = PostgresStore(postgres.url(schema_of(tmp_path)))
        script = [calls("add", a=1, b=2), says("3")]
        return runtime_with(tmp_path, script, store=store, tools=[add], role=role, telemetry=telemetry())

    async with node("web") as web:
        with within(parse_header(f"{THEIRS}-01")):
            turn = await web.send("go")
        async with node("worker"):
            assert (await asyncio.wait_for(turn.result(), PATIENCE)).text == "3"
    assert collector.tree() == [("invoke_agent", [STEP, ("step 2", ["chat model"])])]
    assert {span.trace_id.hex() for span in collector.spans} == {"ab" * 16}
    assert collector.one("invoke_agent").parent_span_id.hex() == "cd" * 8
