"""Calls that somebody else runs: a client, or a person by a click."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from dragoman import (
    AlreadyAnswered,
    allow_once,
    client_tool,
)
from dragoman.messages.parts import CallState, ToolResult
from dragoman.wire.scripted import calls, says
from tests.runtimes import add, calls_of, only_call, runtime_with


class Code(BaseModel):
    code: str


browser = client_tool("browser_js_eval", "Run JavaScript in the page.", Code)


async def test_a_call_for_a_client_waits_until_the_client_delivers(tmp_path: Path) -> None:
    """C6: once."""
    async with runtime_with(
        tmp_path, [calls("browser_js_eval", code="1+1"), says("2")], tools=[browser]
    ) as runtime:
        turn = await runtime.send("go")
        started = None
        async for event in turn.events():
            if event.type == "call.start":
                started = event
                break
        assert started is not None
        assert started.client
        assert (await turn.snapshot()).state == "waiting"
        await turn.deliver(started.call, "2")
        call = only_call(await turn.result())
        assert (call.state, call.result) == (CallState.COMPLETED, ToolResult("2"))
        with pytest.raises(AlreadyAnswered):
            await turn.deliver(started.call, "3")


async def test_in_manual_mode_the_person_runs_each_call_by_a_click(tmp_path: Path) -> None:
    """P8: also those that every rule allows, and those that a client runs."""
    script = [calls("browser_js_eval", code="1+1") + calls("add", a=1, b=1), says("2")]
    async with runtime_with(tmp_path, script, tools=[browser, add], mode="manual") as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        assert [question.kind for question in turn.questions] == ["run", "run"]
        for question in turn.questions:
            await turn.answer(question, allow_once())
        async for event in turn.events():
            if event.type == "call.start" and event.client:
                await turn.deliver(event.call, "2")
        states = [call.state for call in calls_of((await turn.result()).messages)]
    assert states == ["completed", "completed"]


async def test_a_client_may_say_that_it_failed(tmp_path: Path) -> None:
    async with runtime_with(
        tmp_path, [calls("browser_js_eval", code="x"), says("sorry")], tools=[browser]
    ) as runtime:
        turn = await runtime.send("go")
        async for event in turn.events():
            if event.type == "call.start":
                await turn.deliver(event.call, "ReferenceError: x", failed=True)
        assert only_call(await turn.result()).state is CallState.FAILED
