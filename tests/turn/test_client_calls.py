"""A client runs calls, or a user resolves them with a click."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, JsonValue

from dragoman import (
    AlreadyAnswered,
    BadRequest,
    ConfigError,
    Runtime,
    ToolContext,
    TurnEnded,
    allow_once,
    client_tool,
    reply,
    tool,
)
from dragoman.messages.message import CallState, File, ToolResult
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
        assert not runtime.services.inputs  # the sender passed nothing to keep
        image = ToolResult("2", attachments=(File("image/png", url="file:///etc/passwd"),))
        with pytest.raises(BadRequest, match="address"):
            await runtime.commands.deliver(started.call, image)
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


async def test_its_parameters_may_be_a_json_schema(tmp_path: Path) -> None:
    """A client never receives a call whose arguments do not fit the tool's JSON Schema (R2)."""
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    }
    find = client_tool("find", "Find a city.", schema, pattern="city")
    script = [calls("find", city=3), calls("find", city="Oslo"), says("found")]
    async with runtime_with(tmp_path, script, tools=[find], allow=["find:Oslo"]) as runtime:
        turn = await runtime.send("go")
        async for event in turn.events():
            if event.type == "call.start":
                await runtime.commands.deliver(event.call, ToolResult("here"))
        states = [call.state for call in calls_of((await turn.result()).messages)]
    assert states == [CallState.FAILED, CallState.COMPLETED]


@pytest.mark.parametrize("wrong", [3, str, {"type": "object", "properties": 3}])
def test_what_describes_no_parameters_is_told(wrong: Any) -> None:
    """R2"""
    with pytest.raises(ConfigError, match="Tool 'find': "):
        client_tool("find", "Find a city.", wrong)


async def test_a_result_of_what_nobody_has_allowed_yet_is_refused(tmp_path: Path) -> None:
    """A client's result does not count as an approval of its call (C6 × P3)."""
    script = [calls("browser_js_eval", code="1+1"), says("no")]
    async with runtime_with(tmp_path, script, tools=[browser], allow=()) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        (call,) = calls_of((await turn.snapshot()).messages)
        with pytest.raises(BadRequest, match=r"is not running\. Its state is asked"):
            await runtime.commands.deliver(call.id, ToolResult("2"))
        await turn.cancel()


async def test_an_answer_that_came_while_nobody_ran_the_turn_is_recorded(tmp_path: Path) -> None:
    """A repeated tool read the answer from the store, but the signal stayed unread there. With shared
    workers, a turn that waits for another answer was then never given up (P6 × S3)."""

    @tool(replay="safe")
    async def asks(context: ToolContext) -> str:
        """Ask."""
        return str(await context.ask("Well?"))

    script = [calls("asks") + calls("browser_js_eval", code="1+1")]
    async with runtime_with(tmp_path, script, tools=[browser, asks]) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        question = turn.question
    async with runtime_with(tmp_path, [], tools=[browser, asks], adopts=False) as other:
        await other.answer(question, reply("yes"))
    async with runtime_with(tmp_path, [says("done")], tools=[browser, asks]) as second:
        turn = second.turn(turn.id)
        async for event in turn.events():
            if event.type == "call.end" and event.tool == "asks":
                break
        await second.turn(turn.id).snapshot()
        waiting = [signal.kind for signal in await second.store.signals(turn.id)]
        assert "answer" not in waiting
        facts = [fact.type for fact in await turn.facts()]
        assert facts.count("question_answered") == 1
        await turn.cancel()
        await turn.result()


@pytest.mark.parametrize("delivered_first", [True, False], ids=["delivered first", "cancelled first"])
@pytest.mark.parametrize("where", ["here", "elsewhere", "while nobody runs it"])
async def test_a_result_that_was_taken_is_kept_by_a_cancel(
    tmp_path: Path, where: str, delivered_first: bool
) -> None:
    """The turn ends once, as cancelled. An accepted result stays the result of its call, and Dragoman refuses
    later ones (T6 × C6 × S2)."""

    async def act(runtime: Runtime) -> None:
        turn = runtime.turn(id)
        if delivered_first:
            await turn.deliver(call, "2")
        await turn.cancel()
        if not delivered_first:
            with pytest.raises((AlreadyAnswered, TurnEnded)):
                await turn.deliver(call, "2")

    script = [calls("browser_js_eval", code="1+1") + calls("browser_js_eval", code="for ever")]
    async with runtime_with(tmp_path, script, tools=[browser]) as first:
        turn = await first.send("go")
        id, call = turn.id, ""
        async for event in turn.events():
            if event.type == "call.start" and event.arguments == {"code": "1+1"}:
                call = event.call
                break
        assert await turn.reached("waiting")
        if where == "here":
            await act(first)
        elif where == "elsewhere":
            async with runtime_with(tmp_path, [], tools=[browser], adopts=False) as other:
                await act(other)
            await turn.result()
    if where == "while nobody runs it":
        async with runtime_with(tmp_path, [], tools=[browser], adopts=False) as other:
            await act(other)
    async with runtime_with(tmp_path, [], tools=[browser]) as second:
        result = await second.turn(id).result()
        facts = [fact.type for fact in await second.turn(id).facts()]
    assert (result.state, facts.count("call_finished")) == ("cancelled", 2)
    state = CallState.COMPLETED if delivered_first else CallState.CANCELLED
    assert [one.state for one in calls_of(result.messages)] == [state, CallState.CANCELLED]
