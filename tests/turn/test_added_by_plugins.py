"""Plugins add tools, messages, watchers and cleanups to a turn (H1, H3, H5, H6, H8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pydantic import JsonValue

from dragoman import BadRequest, ConfigError, Plugin, Runtime, ScriptedModel, TurnView, tool
from dragoman.messages.events import Event
from dragoman.messages.fold import Appending
from dragoman.messages.message import CallState, Message, Text
from dragoman.messages.request import Request
from dragoman.turn.plugin import Appender
from dragoman.wire.scripted import calls, fails, says
from tests.runtimes import events_of, model_of, only_call, play, runtime_with


@tool
def ping() -> str:
    """Say pong."""
    return "pong"


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_a_tool_that_a_plugin_adds_is_offered_and_runs(tmp_path: Path) -> None:
    """A tool that a plugin adds works in that turn like any other tool (H3)."""

    class Brings(Plugin):
        async def on_before_request(self, request: Request, turn: TurnView) -> None:
            turn.add_tool(ping)

    async with runtime_with(tmp_path, [calls("ping"), says("done")], plugins=[Brings()]) as runtime:
        call = only_call(await (await runtime.send("go")).result())
        (first, second) = model_of(runtime).requests
    assert [spec.name for spec in first.tools] == [spec.name for spec in second.tools] == ["ping"]
    assert first.tool_choice == "auto"
    assert call.result is not None
    assert (call.state, call.result.text) == (CallState.COMPLETED, "pong")


async def test_a_tool_that_is_switched_off_may_be_put_back_by_its_description(tmp_path: Path) -> None:
    """A plugin can offer a disabled tool again by its description. A tool without a runner is an error
    (H3)."""

    class PutsBack(Plugin):
        async def on_before_request(self, request: Request, turn: TurnView) -> None:
            request.tools = (*request.tools, add.spec())

    script = [calls("add", a=1, b=2), says("3")]
    async with runtime_with(tmp_path, script, tools=[add], plugins=[PutsBack()]) as runtime:
        chat = await runtime.conversation(tools={"tools": False})
        assert only_call(await (await chat.send("go")).result()).state is CallState.COMPLETED
    async with runtime_with(tmp_path, [says("x")], plugins=[PutsBack()]) as runtime:
        with pytest.raises(
            ConfigError, match=r"offers the tool 'add', but no code runs it. Use turn\.add_tool"
        ):
            await (await runtime.send("go")).result()


async def test_no_helper_is_offered_where_every_group_is_off(tmp_path: Path) -> None:
    """Helper tools and a tool choice appear in a request only if the model has something to choose (R1,
    C11)."""
    async with runtime_with(tmp_path, [says("x")], tools=[add]) as runtime:
        chat = await runtime.conversation(tools={"tools": False})
        await (await chat.send("go")).result()
        (request,) = model_of(runtime).requests
    assert (request.tools, request.tool_choice) == ((), None)


async def test_several_texts_may_be_appended_at_once(tmp_path: Path) -> None:
    """H5"""

    class Appends(Plugin):
        async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
            if reply.text == "one":
                await append.and_request(["two", "three"])

    result = await play(tmp_path, [says("one"), says("four")], plugins=[Appends()])
    assert [message.text for message in result.messages] == ["go", "one", "two", "three", "four"]


async def test_a_message_that_is_kept_back_asks_for_nothing(tmp_path: Path) -> None:
    """H5, H6: a prevented `append_and_request` makes no request."""

    class Appends(Plugin):
        async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
            await append.and_request("once more")

    class Prevents(Plugin):
        async def on_message_append(self, appending: Appending, turn: TurnView) -> None:
            if appending.message.author == "appends":
                appending.prevent()

    async with runtime_with(tmp_path, [says("one")], plugins=[Appends(), Prevents()]) as runtime:
        assert (await (await runtime.send("go")).result()).text == "one"
        assert len(model_of(runtime).requests) == 1


@pytest.mark.parametrize("way", ["cancelled", "error"])
async def test_what_is_kept_of_a_reply_that_broke_off_is_seen_before_it_is_added(
    tmp_path: Path, way: str
) -> None:
    """H6"""

    class Marks(Plugin):
        async def on_message_append(self, appending: Appending, turn: TurnView) -> None:
            message = appending.message
            appending.message = Message(
                message.id,
                message.conversation,
                message.parent,
                message.role,
                (*message.parts, Text("[kept]")),
                turn=message.turn,
            )

    line = (
        fails(RuntimeError("boom"), after="so far ") if way == "error" else says("so far " * 99, waits=0.01)
    )
    async with runtime_with(tmp_path, [line], plugins=[Marks()]) as runtime:
        turn = await runtime.send("go")
        async for event in turn.events():
            if event.type == "text.delta" and way == "cancelled":
                await turn.cancel()
        stored, _ = await runtime.store.messages((await runtime.store.turn(turn.id)).conversation)
    assert stored[-1].text.startswith("so far")
    assert stored[-1].text.endswith("[kept]")


async def test_a_watcher_hears_the_start_too(tmp_path: Path) -> None:
    """H8, E1: every event, from the first to the last."""
    seen: list[str] = []

    class Watches(Plugin):
        def on_event(self, event: Event, turn: TurnView) -> None:
            seen.append(event.type)

    async with runtime_with(tmp_path, [says("hi")], plugins=[Watches()]) as runtime:
        turn = await runtime.send("go")
        assert [event.type for event in await events_of(turn)] == seen
    assert (seen[0], seen[-1]) == ("turn.start", "turn.end")


async def test_a_start_may_be_a_plain_function_that_returns_its_cleanup(tmp_path: Path) -> None:
    """H1"""
    cleaned: list[str] = []

    class Plain(Plugin):
        def on_turn_start(self, turn: TurnView) -> Callable[[], None]:
            return lambda: cleaned.append(turn.id)

    result = await play(tmp_path, [says("hi")], plugins=[Plain()])
    assert cleaned == [result.id]


class Strict(ScriptedModel):
    """A model that knows one option."""

    def check_options(self, options: Mapping[str, JsonValue]) -> None:
        if unknown := set(options) - {"temperature"}:
            raise BadRequest(f"unknown option {', '.join(unknown)}")


async def test_an_option_nobody_understands_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    """R9, T4"""
    async with Runtime(tmp_path / "chat.db", model=Strict([says("x")])) as runtime:
        with pytest.raises(BadRequest, match="unknown option temprature"):
            await runtime.send("go", options={"temprature": 1})
        assert await runtime.conversations() == []
        chat = await runtime.conversation()
        with pytest.raises(BadRequest, match="unknown option temprature"):
            await chat.send("go", options={"temprature": 1})
        assert await chat.messages() == []
        assert (await (await chat.send("go", options={"temperature": 1})).result()).text == "x"


async def test_half_a_character_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    """T4"""
    async with runtime_with(tmp_path, [says("x")]) as runtime:
        with pytest.raises(BadRequest, match="half a character"):
            await runtime.send("a \ud83d")
        assert await runtime.conversations() == []


async def test_whole_floats_are_taken_for_whole_numbers(tmp_path: Path) -> None:
    """C5: to JSON they are the same."""
    call = only_call(await play(tmp_path, [calls("add", a=17.0, b=1), says("18")], tools=[add]))
    assert call.result is not None
    assert (call.state, call.result.text) == (CallState.COMPLETED, "18")
