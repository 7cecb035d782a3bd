"""A server's tools in a turn: asked about, run, asked about again when they change, and never in the way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman import Plugin, TurnView, allow_once, reject, reply, withhold
from dragoman.messages.message import CallState
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.source import McpSource
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.turn.plugin import PlannedCall
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE, eventually
from tests.runtimes import add, calls_of, model_of, only_call, play, runtime_with
from tests.tools.mcp.rig import everything, raw

pytestmark = pytest.mark.slow


async def test_a_call_of_a_foreign_tool_is_asked_about_with_what_the_server_claims(tmp_path: Path) -> None:
    """P3"""
    asked: list[Any] = []

    async def allow(turn: TurnHandle, event: Any) -> None:
        asked.append(event)
        await turn.answer(event.question, allow_once())

    tools = [McpSource("it", raw())]
    script = [calls("it_echo", text="x"), says("done")]
    result = await play(tmp_path, script, answer=allow, allow=(), tools=tools)
    assert only_call(result).result is not None
    assert only_call(result).state is CallState.COMPLETED
    (question,) = asked
    assert "The server says that it only reads." in question.text


def test_a_server_is_started_again_in_a_runtime_that_is_opened_again(tmp_path: Path) -> None:
    """In another event loop, and also after an opening that did not need it."""
    script = [calls("it_echo", text="x"), says("done")] * 2
    runtime = runtime_with(tmp_path, script, tools=[McpSource("it", raw())])

    async def open_and_say(*texts: str) -> list[CallState]:
        async with runtime:
            return [only_call(await (await runtime.send(text)).result()).state for text in texts]

    assert asyncio.run(open_and_say("go")) == [CallState.COMPLETED]
    assert asyncio.run(open_and_say()) == []
    assert asyncio.run(open_and_say("go")) == [CallState.COMPLETED]


async def test_rules_name_servers_and_tools(tmp_path: Path) -> None:
    """P1"""
    tools = [McpSource("it", raw())]
    result = await play(tmp_path, [calls("it_echo", text="x"), says("done")], allow=["mcp.it.*"], tools=tools)
    assert only_call(result).state is CallState.COMPLETED


async def test_results_of_a_server_are_reviewed_by_a_pattern_of_its_tools(tmp_path: Path) -> None:
    """P5"""

    async def hold_back(turn: TurnHandle, event: Any) -> None:
        assert event.kind == "review"
        await turn.answer(event.question, withhold())

    tools = [McpSource("it", raw())]
    script = [calls("it_echo", text="x"), says("done")]
    review: Any = {"mcp.it.*": "always", "mcp.other.*": "never"}
    result = await play(tmp_path, script, answer=hold_back, tools=tools, review=review)
    assert only_call(result).state is CallState.WITHHELD


async def test_a_tool_that_changed_is_asked_about_again_whatever_the_rules_say(tmp_path: Path) -> None:
    asked: list[str] = []

    async def no(turn: TurnHandle, event: Any) -> None:
        asked.append(event.text)
        await turn.answer(event.question, reject())

    script = [calls("it_echo", text="x"), says("done")]
    first = await play(tmp_path, script, answer=no, tools=[McpSource("it", raw())])
    assert only_call(first).state is CallState.COMPLETED
    assert asked == []
    changed = McpSource("it", raw("changed"))
    second = await play(tmp_path, script, answer=no, tools=[changed])
    assert only_call(second).state is CallState.REJECTED
    assert "describes itself differently" in asked[0]


async def test_a_tool_that_changed_since_it_was_offered_is_asked_about(tmp_path: Path) -> None:
    """The call would run the current definition, and the user allows exactly that, permanently (P9)."""
    it = McpSource("it", raw("changes"))
    asked: list[str] = []

    class Waits(Plugin):
        async def before_tool(self, call: PlannedCall, turn: TurnView) -> None:
            if call.arguments["text"] == "second":
                await eventually(lambda: len(it.group().tools) == 2)

    async def yes(turn: TurnHandle, event: Any) -> None:
        asked.append(f"{event.arguments['text']}: {event.text}")
        await turn.answer(event.question, allow_once())

    script = [
        calls("it_echo", text="first") + calls("it_echo", text="second"),
        calls("it_echo", text="third"),
        says("done"),
    ]
    result = await play(tmp_path, script, answer=yes, tools=[it], plugins=[Waits()])
    assert [call.state for call in calls_of(result.messages)] == [CallState.COMPLETED] * 3
    (question,) = asked
    assert question.startswith("second: ")
    assert "Say it again, and tell everybody" in question


async def test_a_form_of_the_server_is_a_question_of_the_turn(tmp_path: Path) -> None:
    """A rejected form is declined (C8)."""
    answers = iter([reply({"name": "Ada", "check": True}), reject()])

    async def decide(turn: TurnHandle, event: Any) -> None:
        await turn.answer(event.question, next(answers))

    form = calls("it_trigger-elicitation-request")
    with everything() as settings:
        tools = [McpSource("it", settings)]
        result = await play(tmp_path, [form, form, says("done")], answer=decide, tools=tools)
    filled, declined = (call.result for call in calls_of(result.messages))
    assert filled is not None
    assert "- Name: Ada" in filled.text
    assert declined is not None
    assert "User declined" in declined.text


async def test_an_image_is_kept_in_the_store(tmp_path: Path) -> None:
    """S4"""
    script = [calls("it_get-tiny-image"), says("nice")]
    with everything() as settings:
        async with runtime_with(tmp_path, script, tools=[McpSource("it", settings)]) as runtime:
            (call,) = calls_of((await (await runtime.send("show me")).result()).messages)
            assert call.result is not None
            (image,) = call.result.attachments
            assert (await runtime.store.blob(str(image.blob))).startswith(b"\x89PNG")


async def test_a_server_that_hangs_does_not_hold_up_a_turn(tmp_path: Path) -> None:
    hanging = McpSource("bad", raw("hangs", start_timeout=10 * PATIENCE), patience=0.5)
    good = McpSource("it", raw(), patience=PATIENCE)
    async with runtime_with(tmp_path, [says("hello")], tools=[hanging, good]) as runtime:
        assert (await (await runtime.send("hi")).result()).text == "hello"
        assert hanging.state == "starting"
        (request,) = model_of(runtime).requests
        assert [spec.name for spec in request.tools] == ["read_output", "it_echo"]
        assert "The server it says of its tools: Be kind to it." in request.system


async def test_a_call_that_was_allowed_after_a_restart_waits_for_its_server(tmp_path: Path) -> None:
    """P6 × S3: the person allowed it, and the server needs longer than a request would wait for it."""
    script = [calls("it_echo", text="x"), says("done")]
    async with runtime_with(tmp_path, script, allow=(), tools=[McpSource("it", raw())]) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        question = turn.question
    late = McpSource("it", raw("late", tmp_path / "go"), patience=0.0)
    async with runtime_with(tmp_path, script[1:], allow=(), tools=[late]) as second:
        await second.answer(question, allow_once())
        await eventually(lambda: late.state == "starting")
        (tmp_path / "go").touch()
        result = await second.turn(turn.id).result()
    (call,) = calls_of(result.messages)
    assert (call.state, result.text) == (CallState.COMPLETED, "done")


async def test_after_a_restart_only_what_a_person_allowed_waits_for_its_server(tmp_path: Path) -> None:
    """P6 × S3: neither who says no nor the tools of others wait for one that does not start."""
    script = [calls("it_echo", text="x") + calls("add", a=1, b=2), says("done")]
    async with runtime_with(tmp_path, script, allow=(), tools=[McpSource("it", raw()), add]) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        asked = {question.tool: question.id for question in await first.questions()}
    late = McpSource("it", raw("late", tmp_path / "go"), patience=0.0)
    async with runtime_with(tmp_path, script[1:], allow=(), tools=[late, add]) as second:
        await second.answer(asked["add"], allow_once())
        await second.answer(asked["it_echo"], reject())
        result = await second.turn(turn.id).result()
        assert late.state == "starting"
        (tmp_path / "go").touch()
        await late.started()  # one that starts is slow to end
    states = [call.state for call in calls_of(result.messages)]
    assert (states, result.text) == ([CallState.REJECTED, CallState.COMPLETED], "done")


async def test_a_server_that_cannot_start_is_told_in_the_turn(tmp_path: Path) -> None:
    """The model states that the tools are missing, and the user reads the reason."""
    missing = McpSource("notes", McpServer(command="/no/such/program"))
    async with runtime_with(
        tmp_path, [says("I have none."), says("Still none.")], tools=[missing]
    ) as runtime:
        chat = await runtime.conversation()
        told = [
            event.text
            for said in ("go", "again")
            async for event in (await chat.send(said)).events()
            if event.type == "notice" and event.kind == "source"
        ]
    assert told
    assert "the tools of notes are missing" in told[-1]
    assert "/no/such/program" in told[-1]
