"""Plugins, hook by hook: H1 to H9."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from dragoman import Plugin, ProviderError, Runtime, TurnView, tool
from dragoman.messages.events import Event
from dragoman.messages.fold import Draft
from dragoman.messages.message import Message
from dragoman.messages.parts import CallState, Text, ToolCall, ToolResult
from dragoman.messages.request import Request, RequestMessage
from dragoman.turn.plugin import Appender, Appending, Cleanup, Hooks, PlannedCall
from dragoman.wire.scripted import calls, fails, says
from tests.runtimes import calls_of, model_of, only_call, play, runtime_with


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Named(Plugin):
    """A plugin that writes down what happens to it."""

    def __init__(self, name: str, diary: list[str]) -> None:
        self._name = name
        self.diary = diary

    @property
    def name(self) -> str:
        return self._name

    def note(self, what: str) -> None:
        self.diary.append(f"{self.name} {what}")


class Starts(Named):
    """Leaves a cleanup, which may fail; or fails itself."""

    def __init__(
        self, name: str, diary: list[str], *, fails: bool = False, cleanup_fails: bool = False
    ) -> None:
        super().__init__(name, diary)
        self.fails = fails
        self.cleanup_fails = cleanup_fails

    async def on_turn_start(self, turn: TurnView) -> Cleanup | None:
        self.note("starts")
        if self.fails:
            raise RuntimeError(f"{self.name} fails")

        async def cleanup() -> None:
            self.note("cleans up")
            if self.cleanup_fails:
                raise ValueError(f"{self.name} cleanup fails")

        return cleanup

    async def on_turn_end(self, turn: TurnView) -> None:
        self.note("ends")


async def test_plugins_start_in_order_and_clean_up_in_reverse(tmp_path: Path) -> None:
    """H1, H2, H7"""
    diary: list[str] = []
    script = [calls("add", a=1, b=1), says("2")]
    await play(tmp_path, script, tools=[add], plugins=[Starts("a", diary), Starts("b", diary)])
    assert diary == ["a starts", "b starts", "a ends", "b ends", "b cleans up", "a cleans up"]


async def test_a_plugin_may_clean_up_after_a_yield(tmp_path: Path) -> None:
    """H1"""
    diary: list[str] = []

    class Yields(Named):
        async def on_turn_start(self, turn: TurnView) -> AsyncIterator[None]:
            self.note("starts")
            try:
                yield
            finally:
                self.note("cleans up")

    await play(tmp_path, [says("hi")], plugins=[Yields("a", diary)])
    assert diary == ["a starts", "a cleans up"]


async def test_an_error_at_the_start_ends_the_turn_and_cleans_up_what_had_started(tmp_path: Path) -> None:
    """H1, H2, H7: nobody after it starts, and `on_turn_end` is for turns that did not fail."""
    diary: list[str] = []
    plugins = [Starts("a", diary), Starts("b", diary, fails=True), Starts("c", diary)]
    async with runtime_with(tmp_path, [says("never")], plugins=plugins) as runtime:
        turn = await runtime.send("go")
        with pytest.raises(RuntimeError, match="b fails"):
            await turn.result()
        assert (await turn.turn()).state == "error"
        assert model_of(runtime).requests == []
    assert diary == ["a starts", "b starts", "a cleans up"]


async def test_two_failing_cleanups_stop_nobody_and_are_raised_together(tmp_path: Path) -> None:
    """H2: the main error comes first in the group."""
    diary: list[str] = []
    plugins = [
        Starts("a", diary, cleanup_fails=True),
        Starts("b", diary),
        Starts("c", diary, cleanup_fails=True),
    ]
    async with runtime_with(tmp_path, [fails("model is down")], plugins=plugins) as runtime:
        turn = await runtime.send("go")
        with pytest.raises(ExceptionGroup) as caught:
            await turn.result()
    assert [str(error) for error in caught.value.exceptions] == [
        "model is down",
        "c cleanup fails",
        "a cleanup fails",
    ]
    assert diary[3:] == ["c cleans up", "b cleans up", "a cleans up"]


async def test_one_failing_cleanup_is_raised_as_it_is(tmp_path: Path) -> None:
    """H2"""
    async with runtime_with(tmp_path, [says("hi")], plugins=[Starts("a", [], cleanup_fails=True)]) as runtime:
        turn = await runtime.send("go")
        with pytest.raises(ValueError, match="a cleanup fails"):
            await turn.result()
        failed = await turn.turn()
    assert failed.state == "error"
    assert failed.error is not None
    assert failed.error.error == "ValueError: a cleanup fails"


async def test_on_turn_end_runs_after_a_cancel(tmp_path: Path) -> None:
    """H7"""
    diary: list[str] = []
    async with runtime_with(tmp_path, [says("x" * 400, waits=0.01)], plugins=[Starts("a", diary)]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("streaming")
        await turn.cancel()
        assert (await turn.result()).state == "cancelled"
    assert diary == ["a starts", "a ends", "a cleans up"]


async def test_a_request_may_be_changed_before_every_step(tmp_path: Path) -> None:
    """H3"""
    diary: list[str] = []

    class Changes(Named):
        async def on_before_request(self, request: Request, turn: TurnView) -> None:
            self.note(f"step {turn.turn.step + 1}")
            request.options["seed"] = self.name
            extra = Message(
                "msg_x", "conv_x", None, "user", (Text(f"hello from {self.name}"),), metadata={"x": 1}
            )
            request.set_messages([*request.messages, extra])

    script = [calls("add", a=1, b=1), says("2")]
    async with runtime_with(
        tmp_path, script, tools=[add], plugins=[Changes("a", diary), Changes("b", diary)]
    ) as runtime:
        await (await runtime.send("go")).result()
        requests = model_of(runtime).requests
    assert diary == ["a step 1", "b step 1", "a step 2", "b step 2"]
    assert requests[0].options["seed"] == "b"
    assert requests[0].messages[-2:] == (
        RequestMessage("user", (Text("hello from a"),)),
        RequestMessage("user", (Text("hello from b"),)),
    )


@pytest.mark.parametrize(
    "hook", ["on_before_request", "on_after_request", "on_message_append", "on_turn_end"]
)
async def test_an_error_in_a_hook_ends_the_turn(tmp_path: Path, hook: str) -> None:
    """H3, H5, H6, H7"""

    async def broken(*_: Any) -> None:
        raise RuntimeError(f"{hook} is broken")

    plugin = type("Broken", (Plugin,), {hook: broken})()
    async with runtime_with(tmp_path, [says("hi")], plugins=[plugin]) as runtime:
        turn = await runtime.send("go")
        with pytest.raises(RuntimeError, match=f"{hook} is broken"):
            await turn.result()
        assert (await turn.turn()).state == "error"


async def test_every_piece_is_seen_after_it_became_part_of_the_draft(tmp_path: Path) -> None:
    """H4"""
    seen: list[str] = []

    class Watches(Plugin):
        def on_stream_data(self, event: Event, draft: Draft, turn: TurnView) -> None:
            if event.type == "text.delta":
                seen.append(draft.message.text)

    await play(tmp_path, [says("one two three")], plugins=[Watches()])
    assert seen == ["one two ", "one two three"]


async def test_a_plugin_without_the_hook_is_not_asked_about_pieces(tmp_path: Path) -> None:
    """H4: it costs nothing per chunk, because it is not called."""
    async with runtime_with(tmp_path, [says("hi")], plugins=[Starts("a", [])]) as runtime:
        assert Hooks(runtime.services.plugins).stream_data == []


# ── H5: appending ─────────────────────────────────────────────────────────────────────────────────


class Appends(Named):
    """After the first reply, does what it is told."""

    def __init__(self, name: str, act: Callable[[Appender], Awaitable[None]]) -> None:
        super().__init__(name, [])
        self.act = act

    async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
        if turn.turn.step == 1:
            await self.act(append)


async def _texts(runtime: Runtime, said: str = "go") -> list[str]:
    chat = await runtime.conversation()
    await (await chat.send(said)).result()
    return [message.text for message in await chat.messages()]


async def test_deferred_messages_come_by_priority_then_registration_then_order(tmp_path: Path) -> None:
    """H5"""

    async def a(append: Appender) -> None:
        await append("a late", deferred=True)
        await append("a early", deferred=True, priority=5)
        await append("a late too", deferred=True)

    async def b(append: Appender) -> None:
        await append("b late", deferred=True)
        await append("b first", deferred=True, priority=9)
        await append("b at once", priority=-100)

    plugins = [Appends("a", a), Appends("b", b)]
    async with runtime_with(tmp_path, [says("hi")], plugins=plugins) as runtime:
        texts = await _texts(runtime)
    assert texts == ["go", "hi", "b at once", "b first", "a early", "a late", "a late too", "b late"]


async def test_an_appended_message_may_ask_for_another_step(tmp_path: Path) -> None:
    """H5: which begins at `on_before_request`, not at `on_turn_start`."""
    diary: list[str] = []

    async def asks(append: Appender) -> None:
        await append.and_request("are you sure?", deferred=True)

    plugins = [Appends("a", asks), Starts("s", diary)]
    async with runtime_with(tmp_path, [says("yes"), says("very")], plugins=plugins) as runtime:
        assert await _texts(runtime) == ["go", "yes", "are you sure?", "very"]
    assert diary.count("s starts") == 1


async def test_hooks_run_while_the_calls_do(tmp_path: Path) -> None:
    """H5: a tool that waits for the hook, and a hook that waits for the tool's start, both get there."""
    import asyncio

    started, hooked = asyncio.Event(), asyncio.Event()

    @tool
    async def meets() -> str:
        """Meets the hook half-way."""
        started.set()
        await asyncio.wait_for(hooked.wait(), 2)
        return "met"

    async def hook(_: Appender) -> None:
        await asyncio.wait_for(started.wait(), 2)
        hooked.set()

    result = await play(tmp_path, [calls("meets"), says("ok")], tools=[meets], plugins=[Appends("a", hook)])
    assert only_call(result).state is CallState.COMPLETED


async def test_an_error_in_a_hook_gives_the_running_calls_their_result(tmp_path: Path) -> None:
    """H5, C2"""
    import asyncio

    @tool
    async def forever() -> str:
        """Never ends."""
        await asyncio.sleep(60)
        return ""

    async def breaks(_: Appender) -> None:
        raise RuntimeError("hook broke")

    plugins = [Appends("a", breaks)]
    async with runtime_with(tmp_path, [calls("forever")], tools=[forever], plugins=plugins) as runtime:
        chat = await runtime.conversation()
        with pytest.raises(RuntimeError, match="hook broke"):
            await (await chat.send("go")).result()
        (call,) = calls_of(await chat.messages())
    assert call.state is CallState.CANCELLED


# ── H6: messages on their way in ──────────────────────────────────────────────────────────────────


async def test_replies_and_appended_messages_may_be_changed_but_not_what_a_person_says(
    tmp_path: Path,
) -> None:
    """H6"""

    class Shouts(Plugin):
        async def on_message_append(self, appending: Appending, turn: TurnView) -> None:
            text = appending.message.text.upper()
            appending.message = replace(appending.message, parts=(Text(text),))

    async def appends(append: Appender) -> None:
        await append("by the way")

    async with runtime_with(tmp_path, [says("hi")], plugins=[Appends("a", appends), Shouts()]) as runtime:
        assert await _texts(runtime) == ["go", "HI", "BY THE WAY"]


async def test_a_message_may_be_kept_from_being_added(tmp_path: Path) -> None:
    """H6: `prevent`; the calls of a reply that is not there are not run."""

    class Drops(Plugin):
        async def on_message_append(self, appending: Appending, turn: TurnView) -> None:
            appending.prevent()

    async with runtime_with(
        tmp_path, [says("hm") + calls("add", a=1, b=1)], tools=[add], plugins=[Drops()]
    ) as runtime:
        assert await _texts(runtime) == ["go"]


async def test_a_message_may_be_placed_elsewhere(tmp_path: Path) -> None:
    """H6"""

    class Moves(Plugin):
        async def on_message_append(self, appending: Appending, turn: TurnView) -> None:
            appending.prevent()
            appending.place(replace(appending.message, parts=(Text("moved"),), metadata={"moved": True}))

    async with runtime_with(tmp_path, [says("hi")], plugins=[Moves()]) as runtime:
        assert await _texts(runtime) == ["go", "moved"]


# ── H8, H9 ────────────────────────────────────────────────────────────────────────────────────────


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


async def test_events_can_be_watched_and_a_broken_watcher_harms_nobody(tmp_path: Path) -> None:
    """H8"""
    seen: list[str] = []

    class Watches(Plugin):
        def on_event(self, event: Event, turn: TurnView) -> None:
            seen.append(event.type)
            raise RuntimeError("mine")

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


def test_every_hook_says_when_it_runs_and_what_its_errors_do() -> None:
    hooks = [
        member
        for name, member in inspect.getmembers(Plugin, inspect.isfunction)
        if name.startswith(("on_", "before_", "after_")) or name in ("system_prompt", "request_params")
    ]
    assert len(hooks) == 14
    for hook in hooks:
        text = inspect.getdoc(hook) or ""
        assert len(text) > 60, hook.__name__
        assert "rror" in text, f"{hook.__name__} does not say what an error does"
