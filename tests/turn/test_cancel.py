"""Cancel, in every state: T6."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from dragoman import (
    BadRequest,
    ToolContext,
    ToolFailed,
    allow_once,
    reply,
    tool,
)
from dragoman.messages.message import CallState
from dragoman.messages.request import Request
from dragoman.wire.scripted import Line, calls, fails, says, thinks
from tests.patience import PATIENCE, eventually
from tests.runtimes import add, calls_of, model_of, only_call, runtime_with


async def test_cancel_keeps_what_was_said_so_far(tmp_path: Path) -> None:
    """T6"""
    async with runtime_with(tmp_path, [thinks("let me think") + says("x" * 800, waits=0.005)]) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("go")
        async for event in turn.events():
            if event.type == "text.delta":
                assert await turn.cancel("enough")
                break
        result = await turn.result()
        assert result.state == "cancelled"
        assert result.text.startswith("xxxxxxxx")
        kept = (await chat.messages())[-1]
        assert (kept.finish, kept.reasoning) == ("cancelled", "let me think")


async def test_cancel_while_a_tool_runs_marks_the_call_and_leaves_the_tool_alone(tmp_path: Path) -> None:
    """A cancel ends the flow immediately. The tool's work continues, and its exceptions harm nothing (T6)."""
    released, ended = asyncio.Event(), asyncio.Event()

    @tool
    async def stubborn() -> str:
        """Does not let itself be stopped."""
        await released.wait()
        ended.set()
        raise RuntimeError("too late")

    async with runtime_with(
        tmp_path, [calls("stubborn") + calls("add", a=1, b=1)], tools=[stubborn, add]
    ) as runtime:
        turn = await runtime.send("go")
        async for event in turn.events():
            if event.type == "call.end":
                break
        await turn.cancel()
        result = await asyncio.wait_for(turn.result(), PATIENCE)
        assert result.state == "cancelled"
        assert [(call.tool, call.state) for call in calls_of(result.messages)] == [
            ("stubborn", CallState.CANCELLED),
            ("add", CallState.COMPLETED),
        ]
        released.set()
        await asyncio.wait_for(ended.wait(), PATIENCE)
        await asyncio.sleep(0)


async def test_a_tool_that_may_be_stopped_is_stopped(tmp_path: Path) -> None:
    """T6"""
    stopped = asyncio.Event()

    @tool(cancellable=True)
    async def polite(context: ToolContext) -> str:
        """Lets itself be stopped."""
        try:
            await asyncio.sleep(30)
        finally:
            assert context.cancelled()
            stopped.set()
        return "never"

    async with runtime_with(tmp_path, [calls("polite")], tools=[polite]) as runtime:
        turn = await runtime.send("go")
        async for event in turn.events():
            if event.type == "call.start":
                await turn.cancel()
        assert stopped.is_set()
        assert only_call(await turn.result()).state is CallState.CANCELLED


async def test_cancel_releases_an_open_question(tmp_path: Path) -> None:
    """T6, P6: and an answer after that comes too late."""
    async with runtime_with(tmp_path, [calls("add", a=1, b=2)], tools=[add], allow=()) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        question = turn.question
        await turn.cancel()
        assert (await turn.result()).state == "cancelled"
        assert await runtime.questions() == []
        with pytest.raises(BadRequest, match="already has an answer: the turn ended"):
            await runtime.answer(question, allow_once())


async def test_cancel_during_a_review_keeps_the_result_from_the_model(tmp_path: Path) -> None:
    """T6, P5"""
    secret = tool(name="secret", description="A secret.", review="always")(lambda: "42")
    async with runtime_with(tmp_path, [calls("secret")], tools=[secret]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        await turn.cancel()
        call = only_call(await turn.result())
    assert call.state is CallState.CANCELLED
    assert call.result is not None
    assert "42" not in call.result.text


async def test_an_error_while_the_cancel_is_on_its_way_counts_as_the_cancel(tmp_path: Path) -> None:
    """T6"""

    def script(_: Request) -> Line:
        live = runtime.bus.here(turn.id)
        assert live is not None
        live.log.cancelled = "stop"  # simulates a signal that arrives while the request is out
        return fails(RuntimeError("socket closed"), after="so far")

    async with runtime_with(tmp_path, script) as runtime:
        turn = await runtime.send("go")
        result = await turn.result()
    assert (result.state, result.text) == ("cancelled", "so far")


async def test_cancel_of_a_turn_that_is_over_changes_nothing(tmp_path: Path) -> None:
    """T6"""
    async with runtime_with(tmp_path, [says("hi")]) as runtime:
        turn = await runtime.send("go")
        await turn.result()
        assert not await turn.cancel()
        assert (await turn.turn()).state == "completed"


async def test_a_turn_cancelled_while_nobody_ran_it_asks_the_model_nothing(tmp_path: Path) -> None:
    """The process that adopts a cancelled turn ends it and does nothing else for it (T6, S3)."""
    async with runtime_with(tmp_path, [says("x" * 800, waits=0.05)]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("streaming")
    async with runtime_with(tmp_path, [], adopts=False) as visitor:
        assert await visitor.turn(turn.id).cancel("enough")
    async with runtime_with(tmp_path, [says("too late")]) as heir:
        assert (await heir.turn(turn.id).result()).state == "cancelled"
        assert not model_of(heir).requests


async def test_a_queued_turn_can_be_looked_at_and_called_off(tmp_path: Path) -> None:
    """T4, T6: it has not begun, and never will."""
    async with runtime_with(tmp_path, [says("x" * 800, waits=0.05)]) as runtime:
        chat = await runtime.conversation()
        running = await chat.send("one")
        queued = await chat.send("two", queue=True)
        seen = await queued.snapshot()
        assert (seen.state, [message.text for message in seen.messages]) == ("idle", ["two"])
        assert await queued.cancel()
        assert await running.cancel()
        await running.result()
        assert await runtime.store.queued() == []
        assert [row.id for row in await runtime.store.turns(chat.id)] == [running.id]


async def test_what_is_queued_does_not_begin_while_its_conversation_is_deleted(tmp_path: Path) -> None:
    """A queued turn starts neither after the turn that is cancelled first nor after another one (T13, U4)."""
    async with runtime_with(tmp_path, lambda _: says("word " * 1000, waits=0.05)) as runtime:
        chat = await runtime.conversation()
        await chat.send("one")
        await chat.send("two", queue=True)
        message = (await chat.messages())[0]
        await runtime.commands.edit(message.id, "three")
        while len(model_of(runtime).requests) < 2:  # noqa: ASYNC110 - the model has no event to wait for
            await asyncio.sleep(0.01)
        await runtime.delete(chat.id)
        said = [str(request.messages) for request in model_of(runtime).requests]
        assert not any("two" in text for text in said)


@pytest.mark.parametrize("threaded", [False, True])
async def test_a_tool_that_waits_for_an_answer_is_told_that_its_turn_is_cancelled(
    tmp_path: Path, threaded: bool
) -> None:
    """A tool in a thread cannot be stopped and gets no answer, so without this signal it waits forever (T6 ×
    C8)."""
    told: list[str] = []
    over = threading.Event()

    @tool
    def asks_in_a_thread(context: ToolContext) -> str:
        """Ask."""
        try:
            return str(context.ask("Well?"))
        except ToolFailed as error:
            told.append(str(error))
            over.set()
            raise

    @tool
    async def asks(context: ToolContext) -> str:
        """Ask."""
        try:
            return str(await context.ask("Well?"))
        except ToolFailed as error:
            told.append(str(error))
            over.set()
            raise

    name = "asks_in_a_thread" if threaded else "asks"
    async with runtime_with(tmp_path, [calls(name)], tools=[asks, asks_in_a_thread]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        await turn.cancel()
        assert (await turn.result()).state == "cancelled"
        await eventually(over.is_set)
        assert told == ["the call is over: it can no longer ask"]


async def test_a_tool_that_asks_does_not_wait_on_when_its_runtime_is_closed(tmp_path: Path) -> None:
    """A tool that asks stops waiting when its runtime closes, and asks again where the turn resumes (T6 ×
    S3)."""
    over = asyncio.Event()

    @tool(replay="safe")
    async def asks(context: ToolContext) -> str:
        """Ask."""
        try:
            return str(await context.ask("Well?"))
        finally:
            over.set()

    async with runtime_with(tmp_path, [calls("asks")], tools=[asks]) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        question = turn.question
    await asyncio.wait_for(over.wait(), PATIENCE)
    async with runtime_with(tmp_path, [says("done")], tools=[asks]) as second:
        await second.answer(question, reply("yes"))
        call = only_call(await second.turn(turn.id).result())
        assert call.result is not None
        assert (call.state, call.result.text) == (CallState.COMPLETED, "yes")


async def test_a_tool_that_runs_on_after_a_cancel_can_ask_nobody_and_no_model(tmp_path: Path) -> None:
    """A tool that runs on after a cancel has no limit that covers its costs, so it can ask nothing (T6 ×
    T12)."""
    cancelled, over = asyncio.Event(), asyncio.Event()
    told: list[str] = []

    @tool
    async def stubborn(context: ToolContext) -> str:
        """Run on."""
        await cancelled.wait()
        for ask in (lambda: context.ask("Well?"), lambda: context.complete(Request("", ()))):
            try:
                await ask()
            except ToolFailed as error:
                told.append(str(error))
        over.set()
        return ""

    async with runtime_with(tmp_path, [calls("stubborn")], tools=[stubborn]) as runtime:
        turn = await runtime.send("go")
        async for event in turn.events():
            if event.type == "call.start":
                await turn.cancel()
        cancelled.set()
        async with asyncio.timeout(PATIENCE):
            await over.wait()
        assert len(told) == 2
        assert len(model_of(runtime).requests) == 1
        assert await runtime.questions() == []
