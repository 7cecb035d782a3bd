"""Spans, as a collector gets them over HTTP: the tree of a turn, also over a restart, without contents."""

from __future__ import annotations

import asyncio
import json
import unicodedata
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from fastapi import FastAPI

from dragoman import Agent, OpenAICompatible, Runtime, allow_once, tool
from dragoman.messages.message import Message, ToolCall, ToolResult
from dragoman.messages.request import Request
from dragoman.server.app import api, everybody_is_local
from dragoman.telemetry.spans import Contents
from dragoman.wire.scripted import Line, calls, says
from tests.loopback import Answer, loopback
from tests.runtimes import runtime_with
from tests.server.site import listening, serving
from tests.telemetry.collector import Collector, attributes, collecting, telemetry
from tests.wire.test_retries import models_at

pytestmark = pytest.mark.slow

SECRET = "sk-live-0123456789abcdef"
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@tool(pattern="path")
async def delete(path: str) -> str:
    """Delete a file."""
    return f"{path} is gone"


@pytest_asyncio.fixture
async def collector(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Collector]:
    async with collecting(monkeypatch) as found:
        yield found


async def test_a_turn_with_parallel_calls_is_one_tree(tmp_path: Path, collector: Collector) -> None:
    """Turn, steps, requests and parallel calls are named by the conventions for generative AI (O1)."""
    script = [calls("delete", path="a") + calls("delete", path="b"), says("ok")]
    async with runtime_with(tmp_path, script, tools=[delete], telemetry=telemetry()) as runtime:
        turn = await runtime.send("go")
        await turn.result()
    assert collector.tree() == [
        (
            "invoke_agent",
            [
                ("step 1", ["chat model", "execute_tool delete", "execute_tool delete"]),
                ("step 2", ["chat model"]),
            ],
        )
    ]
    assert {span.trace_id for span in collector.spans} == {collector.spans[0].trace_id}
    top = attributes(collector.one("invoke_agent"))
    assert top["gen_ai.operation.name"] == "invoke_agent"
    assert top["dragoman.turn.id"] == turn.id
    assert (top["gen_ai.usage.input_tokens"], top["gen_ai.usage.output_tokens"]) == (20, 10)
    chat = attributes(collector.named("chat")[0])
    assert (chat["gen_ai.provider.name"], chat["gen_ai.request.model"]) == ("scripted", "model")
    assert chat["gen_ai.response.finish_reasons"] == ["tool_calls"]
    assert chat["gen_ai.response.time_to_first_chunk"] >= 0
    call = attributes(collector.named("execute_tool")[0])
    assert (call["gen_ai.tool.name"], call["dragoman.call.because"]) == ("delete", "rule")
    assert collector.named("store append")


async def test_an_approval_over_a_restart_is_one_trace(tmp_path: Path, collector: Collector) -> None:
    """The spans of the first process fit those of the second, and none arrives twice (O1 × T4)."""
    script = [calls("delete", path="a"), says("gone")]
    options: dict[str, Any] = {"tools": [delete], "allow": ()}
    async with runtime_with(tmp_path, script, telemetry=telemetry(), **options) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        question = turn.question
    async with runtime_with(tmp_path, [says("gone")], telemetry=telemetry(), **options) as second:
        await second.answer(question, replace(allow_once(), by="ada"))
        await second.turn(turn.id).result()
    assert collector.tree() == [
        (
            "invoke_agent",
            [
                ("step 1", ["chat model", ("execute_tool delete", ["question approve"])]),
                ("step 2", ["chat model"]),
            ],
        )
    ]
    assert len({span.trace_id for span in collector.spans}) == 1
    assert len({span.span_id for span in collector.spans}) == len(collector.spans)
    asked = attributes(collector.one("question"))
    assert (asked["dragoman.question.verdict"], asked["dragoman.question.answered_by"]) == ("allow", "ada")


async def test_each_attempt_is_a_span_and_its_id_went_out_with_it(
    tmp_path: Path, collector: Collector
) -> None:
    """The provider can continue the trace (O1, R6)."""
    busy = Answer(503, {"error": {"message": "we are busy"}})
    async with (
        loopback(busy, busy, says("Here I am.")) as server,
        models_at(server.url) as models,
        Runtime(tmp_path / "chat.db", model=models, telemetry=telemetry()) as runtime,
    ):
        await (await runtime.send("Hello?")).result()
    chats = collector.named("chat")
    assert [attributes(chat).get("error.type") for chat in chats] == ["503", "503", None]
    assert [attributes(chat)["dragoman.attempt"] for chat in chats] == [1, 2, 3]
    sent = [headers["traceparent"] for headers in server.headers]
    assert sent == [f"00-{chat.trace_id.hex()}-{chat.span_id.hex()}-01" for chat in chats]


async def test_what_the_models_of_a_chain_were_asked_is_told_each(
    tmp_path: Path, collector: Collector
) -> None:
    """This includes the attempt before a switch to another model, and no ID was sent twice (O1, R6)."""
    gone = Answer(404, {"error": {"message": "there is no such model"}})
    async with loopback(gone) as one, loopback(says("Here I am.")) as two:
        models = [
            OpenAICompatible(one.url, model="a", name="one"),
            OpenAICompatible(two.url, model="b", name="two"),
        ]
        async with Runtime(tmp_path / "chat.db", model=models, telemetry=telemetry()) as runtime:
            turn = await runtime.send("Hello?")
            await turn.result()
            trace = await turn.trace()
    chats = collector.named("chat")
    assert [attributes(chat).get("error.type") for chat in chats] == ["error", None]
    sent = [headers["traceparent"] for server in (one, two) for headers in server.headers]
    assert sent == [f"00-{chat.trace_id.hex()}-{chat.span_id.hex()}-01" for chat in chats]
    assert "could not answer" in str(trace.steps[0].requests[0].error)


async def test_a_sub_agents_turn_is_below_the_call_that_opened_it(
    tmp_path: Path, collector: Collector
) -> None:
    """O1, R4"""

    def script(request: Request) -> Line:
        inner = any(part.text == "inner" for part in request.messages[0].parts if part.type == "text")
        place = sum(message.role == "assistant" for message in request.messages)
        if inner:
            return says("done")
        outer = (calls("task", agent="clerk", request="inner"), says("all done"))
        return outer[place]

    clerk = Agent(name="clerk")
    async with runtime_with(tmp_path, script, agents=[clerk], telemetry=telemetry()) as runtime:
        await asyncio.wait_for((await runtime.send("outer")).result(), 60)
    assert collector.tree() == [
        (
            "invoke_agent",
            [
                (
                    "step 1",
                    [
                        "chat model",
                        ("execute_tool task", [("invoke_agent clerk", [("step 1", ["chat model"])])]),
                    ],
                ),
                ("step 2", ["chat model"]),
            ],
        )
    ]


async def test_a_trace_that_comes_in_with_a_request_goes_on(tmp_path: Path, collector: Collector) -> None:
    """The turn is below the span of its HTTP client (O1)."""
    theirs = "00-" + "ab" * 16 + "-" + "cd" * 8 + "-01"
    runtime = runtime_with(tmp_path, [says("hi"), says("again")], telemetry=telemetry())
    async with runtime, serving(tmp_path, runtime) as site:
        conversation = await site.conversation()
        begun = await site.post(
            f"/api/conversations/{conversation}/turns", {"text": "go"}, headers={"traceparent": theirs}
        )
        await runtime.turn(begun["turn"]).result()
        other = await site.say("again", conversation)
        await runtime.turn(other).result()
    first, second = collector.named("invoke_agent")
    assert (first.trace_id.hex(), first.parent_span_id.hex()) == ("ab" * 16, "cd" * 8)
    assert second.trace_id != first.trace_id


async def test_a_mounted_api_takes_up_the_trace_too(tmp_path: Path, collector: Collector) -> None:
    """This holds in another application, under its path, and an invalid trace header is ignored (O1, U5)."""
    theirs = "00-" + "ab" * 16 + "-" + "cd" * 8 + "-01"
    outer = FastAPI()
    async with runtime_with(tmp_path, [says("hi")] * 2, telemetry=telemetry()) as runtime:
        outer.mount("/chat", api(runtime, who=everybody_is_local()))
        async with listening(outer) as url, aiohttp.ClientSession(f"{url}/chat/") as http:
            for header in (theirs, "00-nonsense"):
                async with http.post("api/conversations", json={}) as made:
                    path = f"api/conversations/{(await made.json())['id']}/turns"
                async with http.post(path, json={"text": "go"}, headers={"traceparent": header}) as begun:
                    turn = (await begun.json())["turn"]
                await runtime.turn(turn).result()
    first, second = collector.named("invoke_agent")
    assert (first.trace_id.hex(), first.parent_span_id.hex()) == ("ab" * 16, "cd" * 8)
    assert (second.trace_id != first.trace_id, second.parent_span_id) == (True, b"")


async def test_whoever_does_not_want_to_be_sampled_is_not(tmp_path: Path, collector: Collector) -> None:
    """O1: neither by the flag of the trace that comes in, nor where the sampler says no."""
    from dragoman.trace_context import parse_header, within

    async with runtime_with(tmp_path, [says("hi")], telemetry=telemetry()) as runtime:
        with within(parse_header("00-" + "ab" * 16 + "-" + "cd" * 8 + "-00")):
            turn = await runtime.send("go")
        await turn.result()
    assert collector.spans == []


@pytest.fixture
def told() -> list[Line]:
    return [calls("delete", path=f"/srv/{SECRET}") + says("I shall delete it."), says("The file is gone.")]


async def test_nothing_of_contents_goes_out_unless_asked_for(
    tmp_path: Path, collector: Collector, told: list[Line]
) -> None:
    """O1"""
    async with runtime_with(tmp_path, told, tools=[delete], telemetry=telemetry()) as runtime:
        await (await runtime.send("Please remove the report.")).result()
    sent = b"".join(collector.bodies)
    assert sent
    for word in (b"remove the report", b"I shall delete", b"/srv/", b"is gone", SECRET.encode()):
        assert word not in sent


async def test_contents_that_are_asked_for_come_without_secrets(
    tmp_path: Path, collector: Collector, told: list[Line], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values that look like keys are left out, and so are private values (O1, U2)."""
    monkeypatch.setenv(CONTENT, "true")
    private = {"phone": "+43 660 1234567"}
    async with runtime_with(
        tmp_path, told, tools=[delete], telemetry=telemetry(), private=private
    ) as runtime:
        await (await runtime.send("Call +43 660 1234567 and remove the report.")).result()
    top = attributes(collector.one("invoke_agent"))
    (said,) = json.loads(top["gen_ai.input.messages"])
    assert "remove the report" in said["parts"][0]["content"]
    assert "The file is gone." in top["gen_ai.output.messages"]
    assert "path" in attributes(collector.one("execute_tool"))["gen_ai.tool.call.arguments"]
    sent = b"".join(collector.bodies)
    assert SECRET.encode() not in sent
    assert b"660 1234567" not in sent


def test_what_is_private_is_found_in_results_that_are_json_and_around_what_is_private_itself() -> None:
    """O1, U2: as it is for the model."""
    contents = Contents(["Jörg", 'Jörg "Joe" Noë'])
    for name in ('Jörg "Joe" Noë', unicodedata.normalize("NFD", 'Jörg "Joe" Noë')):
        for text in (name, json.dumps([name]), json.dumps([json.dumps([name], ensure_ascii=False)])):
            call = ToolCall("call_1", "ask", {"name": text}, result=ToolResult(text))
            told = contents.result(call), contents.arguments(call), contents.output(reply_with(call))
            assert [one for one in told if "J" in one or "No" in one] == []


def reply_with(call: ToolCall) -> Message:
    return Message("msg_1", "conv_1", None, "assistant", (call,))


async def test_metrics_come_beside_the_spans(tmp_path: Path, collector: Collector) -> None:
    """O1: tokens, time to the first token, tools, waits for a person, and how many turns there are."""
    script = [calls("delete", path="a"), says("ok")]
    async with runtime_with(tmp_path, script, tools=[delete], allow=(), telemetry=telemetry()) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        await turn.answer(turn.question, allow_once())
        await turn.result()
    assert {
        "dragoman.turns.live",
        "dragoman.turns.queued",
        "gen_ai.client.token.usage",
        "gen_ai.client.operation.duration",
        "gen_ai.client.operation.time_to_first_chunk",
        "gen_ai.execute_tool.duration",
        "gen_ai.invoke_agent.duration",
        "dragoman.question.duration",
        "dragoman.replies.unpriced",
    } <= set(collector.metrics)
    points = collector.metrics["gen_ai.client.token.usage"].histogram.data_points
    assert sum(point.sum for point in points) == 30


async def test_a_collector_that_is_not_there_stops_no_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O1"""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    async with runtime_with(tmp_path, [says("hi")], telemetry=telemetry()) as runtime:
        assert (await (await runtime.send("go")).result()).text == "hi"
