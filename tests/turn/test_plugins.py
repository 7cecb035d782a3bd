"""Plugins around calls, told of errors and events, replaced, left out and started again: H8, H9."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue

from dragoman import ConfigError, Plugin, ProviderError, TurnView
from dragoman.messages.events import Event
from dragoman.messages.message import CallState, Message, ToolCall, ToolResult
from dragoman.plugins.continuation import Length as BuiltInLength
from dragoman.turn.plugin import Appender, PlannedCall
from dragoman.wire.scripted import calls, fails, says
from tests.runtimes import add, model_of, only_call, play, runtime_with
from tests.turn.named import Named, Starts


class Around(Named):
    async def before_tool(self, call: PlannedCall, turn: TurnView) -> None:
        self.note("before")
        call.arguments = {**call.arguments, "b": 10}

    async def after_tool(self, call: ToolCall, result: ToolResult, turn: TurnView) -> ToolResult:
        self.note("after")
        return replace(result, text=f"{result.text} by {self.name}")

    async def system_prompt(self, text: str, turn: TurnView) -> str:
        return f"{text}\n{self.name} was here"

    async def request_params(self, options: dict[str, JsonValue], turn: TurnView) -> dict[str, JsonValue]:
        return {**options, self.name: True}


async def test_plugins_stand_around_every_call(tmp_path: Path) -> None:
    """H8: in order before it, in reverse after it."""
    diary: list[str] = []
    script = [calls("add", a=1, b=1), says("ok")]
    plugins = [Around("x", diary), Around("y", diary)]
    async with runtime_with(tmp_path, script, tools=[add], plugins=plugins, system="Be kind.") as runtime:
        call = only_call(await (await runtime.send("go")).result())
        request = model_of(runtime).requests[0]
    assert diary == ["x before", "y before", "y after", "x after"]
    assert call.arguments == {"a": 1, "b": 10}
    assert call.original == {"a": 1, "b": 1}
    assert call.result is not None
    assert call.result.text == "11 by y by x"
    assert request.system.endswith("Be kind.\nx was here\ny was here")
    assert request.options == {"x": True, "y": True}


async def test_a_plugin_sees_replies_with_calls_unless_it_says_no_of_its_own_hook(tmp_path: Path) -> None:
    """A plugin that replaces a built-in one is not bound by the built-in hook's declaration (H5 × H9)."""
    seen: list[bool] = []

    class Length(BuiltInLength):
        async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
            seen.append(bool(reply.calls))

    class Answers(Length):
        answers_only = True

    script = [calls("add", a=1, b=1), says("ok")]
    async with runtime_with(tmp_path, script, tools=[add], plugins=[Length(), Answers()]) as runtime:
        await (await runtime.send("go")).result()
    assert sorted(seen) == [False, False, True]


async def test_a_plugin_may_refuse_a_call(tmp_path: Path) -> None:
    """H8"""

    class Refuses(Plugin):
        async def before_tool(self, call: PlannedCall, turn: TurnView) -> None:
            call.refuse("not on a Sunday")

    call = only_call(
        await play(tmp_path, [calls("add", a=1, b=1), says("ok")], tools=[add], plugins=[Refuses()])
    )
    assert call.state is CallState.REJECTED
    assert call.result == ToolResult("not on a Sunday")


async def test_errors_are_told_to_plugins_which_may_mend_them(tmp_path: Path) -> None:
    """H8"""
    told: list[str] = []

    class Mends(Plugin):
        async def on_error(self, error: Exception, turn: TurnView) -> bool:
            told.append(str(error))
            return len(told) == 1

    script = [fails("hiccup", after="half"), says("whole"), fails("broken")]
    async with runtime_with(tmp_path, script, plugins=[Mends()]) as runtime:
        chat = await runtime.conversation()
        assert (await (await chat.send("go")).result()).text == "whole"
        with pytest.raises(ProviderError):
            await (await chat.send("again")).result()
    assert told == ["hiccup", "broken"]


@pytest.mark.parametrize("error", [RuntimeError("mine"), BaseException("panic"), asyncio.CancelledError()])
async def test_events_can_be_watched_and_a_broken_watcher_harms_nobody(
    tmp_path: Path, error: BaseException
) -> None:
    """A turn completes although its watcher raises, also a BaseException or CancelledError (H8)."""
    seen: list[str] = []

    class Watches(Plugin):
        def on_event(self, event: Event, turn: TurnView) -> None:
            seen.append(event.type)
            raise error

    assert (await play(tmp_path, [says("hi")], plugins=[Watches()])).text == "hi"
    assert "turn.state" in seen
    assert seen[-1] == "turn.end"


async def test_a_later_plugin_of_the_same_name_takes_the_place_of_the_earlier(tmp_path: Path) -> None:
    """H9"""
    diary: list[str] = []
    plugins = [Starts("a", []), Starts("b", diary), Starts("a", diary)]
    await play(tmp_path, [says("hi")], plugins=plugins)
    assert diary[:2] == ["a starts", "b starts"]


async def test_a_plugin_may_be_left_out_of_one_turn(tmp_path: Path) -> None:
    """H9"""
    diary: list[str] = []
    async with runtime_with(tmp_path, [says("hi"), says("hi")], plugins=[Starts("a", diary)]) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("go", disable=["a"])).result()
        assert diary == []
        await (await chat.send("go")).result()
        assert diary[0] == "a starts"


async def test_a_turn_that_goes_on_in_a_new_process_starts_its_plugins_again(tmp_path: Path) -> None:
    """H9"""
    resumed: list[bool] = []

    class Notes(Plugin):
        async def on_turn_start(self, turn: TurnView) -> None:
            resumed.append(turn.resumed)

    async with runtime_with(
        tmp_path, [calls("add", a=1, b=1)], tools=[add], allow=(), plugins=[Notes()]
    ) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        question = turn.question
    from dragoman import allow_once

    async with runtime_with(tmp_path, [says("2")], tools=[add], allow=(), plugins=[Notes()]) as second:
        await second.answer(question, allow_once())
        assert (await second.turn(turn.id).result()).text == "2"
    assert resumed == [False, True]


async def test_what_after_tool_returns_must_be_a_result(tmp_path: Path) -> None:
    class Text(Plugin):
        async def after_tool(self, call: ToolCall, result: ToolResult, turn: TurnView) -> ToolResult | None:
            return "three"  # type: ignore[return-value]

    async with runtime_with(tmp_path, [calls("add", a=1, b=2)], tools=[add], plugins=[Text()]) as runtime:
        with pytest.raises(
            ConfigError, match="Plugin 'text': after_tool must return a ToolResult, not 'three'"
        ):
            await (await runtime.send("go")).result()
