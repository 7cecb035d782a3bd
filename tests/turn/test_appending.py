"""Plugins append messages and see incoming messages (H5, H6)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman import Plugin, Runtime, TurnView, tool
from dragoman.messages.fold import Appending
from dragoman.messages.message import CallState, Message, Text
from dragoman.turn.plugin import Appender
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.runtimes import add, calls_of, only_call, play, runtime_with
from tests.turn.named import Named, Starts

# ── H5: appending ─────────────────────────────────────────────────────────────────────────────────


class Appends(Named):
    """Runs the given action after the first reply."""

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
        await asyncio.wait_for(hooked.wait(), PATIENCE)
        return "met"

    async def hook(_: Appender) -> None:
        await asyncio.wait_for(started.wait(), PATIENCE)
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
    """`prevent` keeps a reply out of the conversation, and the reply's calls do not run (H6)."""

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


class Withholds(Named):
    async def on_message_append(self, appending: Appending, turn: TurnView) -> None:
        if appending.message.role == "assistant":
            appending.prevent()


class Spoils(Named):
    """Turns a message into one that the store refuses, and then fails if asked."""

    def __init__(self, name: str, *, fails: bool) -> None:
        super().__init__(name, [])
        self.fails = fails

    async def on_message_append(self, appending: Appending, turn: TurnView) -> None:
        appending.place(replace(appending.message, metadata={"x": float("nan")}))
        appending.message.metadata["x"] = float("nan")
        if self.fails:
            raise ValueError("oh")


@pytest.mark.parametrize("fails", [False, True])
async def test_what_cannot_be_stored_ends_the_turn_and_undoes_no_other_plugin(
    tmp_path: Path, fails: bool
) -> None:
    """A reply that one plugin withheld stays unstored when another plugin fails (S1, H6)."""
    plugins = [Withholds("withholds", []), Spoils("spoils", fails=fails)]
    async with runtime_with(tmp_path, [says("secret")], plugins=plugins) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("go")
        with pytest.raises(Exception, match="oh" if fails else "plugin spoils"):
            await turn.result()
        assert (await turn.turn()).state == "error"
        assert "secret" not in str(await chat.messages())
