"""Calls to the official server, over each way there is to reach one (C6, C8)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from dragoman.messages.message import CallState, ToolCall
from dragoman.tools.execute import Permit, execute
from dragoman.tools.mcp.elicitation import NOT_OPENED, OPENED
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.source import McpSource
from tests.cli.program import clean_environment
from tests.fork_server import python
from tests.patience import eventually
from tests.server.mcp.client import SERVE
from tests.server.mcp.client import settings as write_settings
from tests.tools.bench import Bench
from tests.tools.mcp.rig import call, everything, modern, raw, source, tool

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]


@pytest.fixture(scope="module", params=["stdio", "http", "sse"])
def settings(request: pytest.FixtureRequest) -> Iterator[McpServer]:
    with everything(request.param) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server(settings: McpServer) -> AsyncIterator[McpSource]:
    async with source(settings) as connected:
        yield connected


@pytest.fixture(scope="module")
def noticed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server of the newest protocol says what it noticed."""
    return tmp_path_factory.mktemp("newest") / "noticed"


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=["stdio", "http"])
async def newest(request: pytest.FixtureRequest, noticed: Path) -> AsyncIterator[McpSource]:
    noticed.unlink(missing_ok=True)  # noqa: ASYNC240  # that of the other way
    with modern(request.param, noticed) as settings:
        async with source(settings) as connected:
            yield connected


async def test_its_tools_are_a_group_with_its_instructions(server: McpSource) -> None:
    group = server.group()
    assert group.name == "it"
    assert group.rules.startswith("The server it says of its tools: # Everything Server")
    echo = tool(server, "echo")
    assert (echo.name, echo.permission, echo.server) == ("it_echo", "mcp.it.echo", "it")
    assert echo.parameters.names == ["message"]
    assert (echo.replay, echo.remark) == (
        "safe",
        "The server says that it only reads, that it keeps to its own data.",
    )
    assert tool(server, "toggle-simulated-logging").replay == "never"


async def test_a_call_returns_its_text(server: McpSource) -> None:
    assert (await call(server, "echo", message="hello")).result.text == "Echo: hello"


async def test_structured_content_becomes_the_value(server: McpSource) -> None:
    result = (await call(server, "get-structured-content", location="New York")).result
    assert isinstance(result.value, dict)
    assert result.value.keys() == {"temperature", "conditions", "humidity"}
    assert json.loads(result.text) == result.value


async def test_images_become_attachments(server: McpSource) -> None:
    bench = Bench()
    result = (await call(server, "get-tiny-image", bench)).result
    (image,) = result.attachments
    assert image.media_type == "image/png"
    assert bench.files[str(image.blob)].startswith(b"\x89PNG")
    assert f"[image 1 (image/png), {image.size} bytes]" in result.text


async def test_resources_are_told_and_links_kept(server: McpSource) -> None:
    linked = (await call(server, "get-resource-links", count=1)).result
    assert "demo://resource/dynamic/" in linked.text
    embedded = (await call(server, "get-resource-reference", resourceType="Blob", resourceId=1)).result
    assert [file.name for file in embedded.attachments] == ["1"]


async def test_an_error_of_the_tool_reaches_the_model(server: McpSource) -> None:
    outcome = await call(server, "get-resource-reference", resourceType="Text", resourceId=-1)
    assert outcome.state is CallState.FAILED
    assert "Invalid resourceId: -1" in outcome.result.text


async def test_progress_passes_through(server: McpSource) -> None:
    bench = Bench()
    await call(server, "trigger-long-running-operation", bench, duration=0.2, steps=4)
    steps = [{"progress": float(step), "total": 4.0} for step in (1, 2, 3, 4)]
    # progress of a busy server is thinned
    assert bench.progress == [step for step in steps if step in bench.progress]
    assert [bench.progress[0], bench.progress[-1]] == [steps[0], steps[-1]]


async def test_a_form_is_filled_in_by_the_person_of_the_call(server: McpSource) -> None:
    bench = Bench(answers=[{"name": "Ada", "check": True}])
    result = (await call(server, "trigger-elicitation-request", bench)).result
    (question,) = bench.questions
    assert question[0] == "it asks: Please provide inputs for the following fields:"
    assert "- Name: Ada" in result.text
    assert "It was a dark and stormy night." in result.text  # the default of an untouched field


async def test_an_address_is_shown_and_the_person_says_whether_they_were_there(server: McpSource) -> None:
    for said, told in ((OPENED, "accept"), (NOT_OPENED, "decline")):
        bench = Bench(answers=[said])
        arguments: dict[str, Any] = {"url": "https://example.com/pay", "message": "Please pay."}
        result = (await call(server, "trigger-url-elicitation", bench, **arguments)).result
        assert "open a page at example.com: Please pay.\nhttps://example.com/pay" in bench.questions[0][0]
        assert told in result.text


@pytest.mark.parametrize(
    ("said", "state", "text"),
    [(OPENED, CallState.COMPLETED, "echo: x"), (NOT_OPENED, CallState.FAILED, "it says: pay first")],
)
async def test_a_call_that_needs_a_visit_first_is_made_again_after_it(
    said: str, state: CallState, text: str
) -> None:
    bench = Bench(answers=[said])
    async with source(raw("visit")) as server:
        outcome = await call(server, "echo", bench, text="x")
    assert (outcome.state, outcome.result.text) == (state, text)
    assert bench.answers == []


async def test_the_newest_protocol_asks_and_goes_on(newest: McpSource) -> None:
    assert newest.connection is not None
    assert newest.connection.client.protocol_version == "2026-07-28"
    bench = Bench(answers=[{"name": "Ada"}])
    assert (await call(newest, "who", bench)).result.text == "accept Ada"
    await call(newest, "work", bench)
    assert bench.progress[-1] == {"progress": 3.0, "total": 3.0, "message": "step 3"}


@pytest.mark.parametrize("settings", ["http"], indirect=True)
async def test_each_of_two_calls_at_once_asks_its_own_person(server: McpSource) -> None:
    ada, bob = Bench(answers=[{"name": "Ada"}]), Bench(answers=[{"name": "Bob"}])
    told = await asyncio.gather(*(call(server, "trigger-elicitation-request", who) for who in (ada, bob)))
    assert "- Name: Ada" in told[0].result.text
    assert "- Name: Bob" in told[1].result.text


async def test_each_of_two_calls_at_once_on_the_newest_protocol_asks_its_own_person(
    newest: McpSource,
) -> None:
    ada, bob = Bench(answers=[{"name": "Ada"}]), Bench(answers=[{"name": "Bob"}])
    told = await asyncio.gather(*(call(newest, "who", who) for who in (ada, bob)))
    assert [one.result.text for one in told] == ["accept Ada", "accept Bob"]


async def test_a_cancelled_call_is_cancelled_in_the_server(newest: McpSource, noticed: Path) -> None:
    began = asyncio.Event()
    bench = Bench()
    bench.progress = _Signal(began)
    waits = tool(newest, "wait")
    made = ToolCall("call_1", waits.name)
    running = asyncio.create_task(execute(waits, made, Permit(made.hash, "rule"), bench.context()))
    await began.wait()
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled()
    assert (await call(newest, "echo", text="still there")).result.text == "still there"
    await eventually(noticed.exists)


async def test_an_older_server_is_told_of_the_cancel(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    async with source(raw("waits", heard, timeout=0.5)) as server:
        outcome = await call(server, "echo", text="x")
        assert outcome.result.text == "it_echo failed: it took longer than 0.5 s"
    sent = [json.loads(line) for line in heard.read_text().splitlines()]  # it has ended, and heard it all
    (made,) = [one for one in sent if one["method"] == "tools/call"]
    (cancelled,) = [one for one in sent if one["method"] == "notifications/cancelled"]
    assert cancelled["params"]["requestId"] == made["id"]


class _Signal(list[Any]):
    """A list that signals each addition."""

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    def append(self, item: Any) -> None:
        super().append(item)
        self._event.set()


# ── calls that the server continues as tasks ──────────────────────────────────────────────────────


async def test_a_call_that_becomes_a_task_comes_to_its_result(newest: McpSource) -> None:
    """C6: with what the server says of it, and its questions."""
    bench = Bench()
    assert (await call(newest, "later", bench, how="works")).result.text == "done"
    assert bench.progress == [{"message": "step 1"}, {"message": "step 2"}]
    bench = Bench(answers=[{"name": "Ada"}])
    assert (await call(newest, "later", bench, how="asks")).result.text == "done Ada"
    assert [text for text, _ in bench.questions] == ["it asks: Who?"]


@pytest.mark.parametrize(
    ("how", "why"),
    [("fails", "the disk is full"), ("stops", "without a result"), ("forgets", "took effect is not known")],
)
async def test_a_task_without_a_result_is_a_failed_call(newest: McpSource, how: str, why: str) -> None:
    """C6"""
    outcome = await call(newest, "later", how=how)
    assert outcome.state is CallState.FAILED
    assert why in outcome.result.text


async def test_a_cancelled_call_cancels_its_task(newest: McpSource, noticed: Path) -> None:
    """T6"""
    bench = Bench()
    running = asyncio.create_task(call(newest, "later", bench, how="never"))
    await eventually(lambda: bool(bench.progress))
    running.cancel()
    await eventually(lambda: noticed.exists() and noticed.read_text() == "cancelled never")


async def test_a_slow_call_of_another_dragoman_is_a_task(tmp_path: Path) -> None:
    """C6: `dragoman mcp serve` continues a call of over two seconds as a task."""
    write_settings(tmp_path)
    command, *words = python("-m", "dragoman", *SERVE, "--allow", "shell")
    env = clean_environment(tmp_path)
    other = McpServer(command=command, args=tuple(words), cwd=str(tmp_path), env=env)
    async with source(other) as server:
        outcome = await call(server, "shell", command="sleep 2.5; echo all done")
    assert "all done" in outcome.result.text
