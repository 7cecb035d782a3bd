"""Check that requests outside the conversation have separate spans in the trace of its turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from dragoman import Runtime, ToolContext, tool
from dragoman.errors import ContextOverflow, ProviderError
from dragoman.messages.message import Text
from dragoman.messages.request import Request, RequestMessage
from dragoman.wire.scripted import calls, fails, says
from tests.loopback import Answer, loopback
from tests.runtimes import runtime_with
from tests.telemetry.collector import Collector, attributes, collecting, telemetry
from tests.wire.test_retries import models_at

pytestmark = pytest.mark.slow

TURN = ("step 1", ["chat model"])
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@pytest_asyncio.fixture
async def collector(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Collector]:
    async with collecting(monkeypatch) as found:
        yield found


async def test_a_title_is_a_span_of_the_turn(tmp_path: Path, collector: Collector) -> None:
    """The span has its tokens, which are also counted, and not its text (O1, T9)."""
    script = [says("ok"), says("Moons of Jupiter")]
    async with runtime_with(tmp_path, script, titles_by_model=True, telemetry=telemetry()) as runtime:
        await (await runtime.send("Tell me all about the moons")).result()
    assert collector.tree() == [("invoke_agent", [TURN, "chat model"])]
    title = attributes(collector.named("chat")[-1])
    assert (title["dragoman.purpose"], title["gen_ai.operation.name"]) == ("title", "chat")
    assert (title["gen_ai.usage.input_tokens"], title["gen_ai.response.finish_reasons"]) == (10, ["stop"])
    points = collector.metrics["gen_ai.client.token.usage"].histogram.data_points
    assert sum(point.sum for point in points) == 30
    assert b"Jupiter" not in b"".join(collector.bodies)


async def test_each_attempt_at_a_title_is_a_span_whose_id_went_out(
    tmp_path: Path, collector: Collector
) -> None:
    """O1, R6"""
    busy = Answer(503, {"error": {"message": "we are busy"}})
    async with (
        loopback(says("Here I am."), busy, says("A title")) as server,
        models_at(server.url) as models,
        Runtime(tmp_path / "chat.db", model=models, telemetry=telemetry(), titles_by_model=True) as runtime,
    ):
        await (await runtime.send("Hello?")).result()
    chats = collector.named("chat")
    told = [attributes(chat) for chat in chats]
    assert [one.get("dragoman.purpose") for one in told] == [None, "title", "title"]
    assert [one.get("error.type") for one in told] == [None, "503", None]
    assert [one["dragoman.attempt"] for one in told] == [1, 1, 2]
    sent = [headers["traceparent"] for headers in server.headers]
    assert sent == [f"00-{chat.trace_id.hex()}-{chat.span_id.hex()}-01" for chat in chats]
    assert len(set(sent)) == 3


async def test_a_title_that_fails_is_told_as_failed(tmp_path: Path, collector: Collector) -> None:
    """O1, T9: by the kind of its error alone."""
    script = [says("ok"), fails(ProviderError("no title for Jupiter", status=500))]
    async with runtime_with(tmp_path, script, titles_by_model=True, telemetry=telemetry()) as runtime:
        await (await runtime.send("Tell me")).result()
    assert attributes(collector.named("chat")[-1])["error.type"] == "500"
    assert b"Jupiter" not in b"".join(collector.bodies)


async def test_a_summary_is_inside_its_compaction(tmp_path: Path, collector: Collector) -> None:
    """O1, R7"""
    script = [says("one"), fails(ContextOverflow("too long")), says("SUMMARY"), says("answer")]
    async with runtime_with(tmp_path, script, telemetry=telemetry()) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("first")).result()
        await (await chat.send("second")).result()
    compaction = collector.one("compaction")
    (summary,) = [chat for chat in collector.named("chat") if "dragoman.purpose" in attributes(chat)]
    assert attributes(summary)["dragoman.purpose"] == "summary"
    assert summary.parent_span_id == compaction.span_id
    assert len({span.span_id for span in collector.spans}) == len(collector.spans)


async def test_a_summary_that_fails_ends_its_compaction_with_the_turn(
    tmp_path: Path, collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    """The span ends immediately, and no span has a parent that never arrives (O1 × R7 × T8)."""
    script = [says("one"), fails(ContextOverflow("too long")), fails(ProviderError("not now", status=400))]
    async with runtime_with(tmp_path, script, telemetry=telemetry()) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("first")).result()
        with pytest.raises(ProviderError):
            await (await chat.send("second")).result()
    assert "broke off" not in caplog.text
    assert attributes(collector.one("compaction"))["error.type"] == "error"
    known = {span.span_id for span in collector.spans} | {b""}
    assert {span.parent_span_id for span in collector.spans} <= known


async def test_what_a_tool_asks_a_model_is_below_its_call(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contents are included if they are enabled (O1)."""
    monkeypatch.setenv(CONTENT, "true")

    @tool
    async def consult(context: ToolContext) -> str:
        """Ask a model."""
        asked = Request("", (RequestMessage("user", (Text("Which moon?"),)),))
        return (await context.complete(asked)).text

    script = [calls("consult"), says("Io"), says("It is Io.")]
    async with runtime_with(tmp_path, script, tools=[consult], telemetry=telemetry()) as runtime:
        await (await runtime.send("go")).result()
    step = ("step 1", ["chat model", ("execute_tool consult", ["chat model"])])
    assert collector.tree() == [("invoke_agent", [step, ("step 2", ["chat model"])])]
    (aside,) = [chat for chat in collector.named("chat") if "dragoman.purpose" in attributes(chat)]
    assert attributes(aside)["dragoman.purpose"] == "tool"
    assert "Which moon?" in attributes(aside)["gen_ai.input.messages"]
    assert "Io" in attributes(aside)["gen_ai.output.messages"]
