"""A user sends messages to a running turn (T13)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from dragoman import Plugin, TurnEnded, TurnView, tool
from dragoman.messages.message import Error, Message, Text
from dragoman.messages.request import Request
from dragoman.store.codecs import MESSAGE
from dragoman.turn.facts import FACT, Steered, TurnCancelled
from dragoman.turn.machine import State
from dragoman.wire.scripted import calls, says
from tests.runtimes import model_of, runtime_with


async def test_a_steering_message_is_in_the_next_request(tmp_path: Path) -> None:
    """T13"""
    gate = asyncio.Event()

    @tool
    async def wait() -> str:
        """Waits."""
        await gate.wait()
        return "done"

    async with runtime_with(tmp_path, [calls("wait"), says("ok, in French")], tools=[wait]) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("go")
        async for event in turn.events():
            if event.type == "call.start":
                await turn.steer("in French, please")
                gate.set()
        requests = model_of(runtime).requests
        assert requests[1].messages[-1].parts == (Text("in French, please"),)
        assert [m.text for m in await chat.messages()] == ["go", "", "in French, please", "ok, in French"]
        with pytest.raises(TurnEnded):
            await turn.steer("too late")


async def test_steering_at_the_last_moment_asks_for_another_step(tmp_path: Path) -> None:
    """T13"""
    async with runtime_with(tmp_path, [says("done " * 40, waits=0.02), says("also that")]) as runtime:
        turn = await runtime.send("go")
        async for event in turn.events():
            if event.type == "text.start" and len(model_of(runtime).requests) == 1:
                await turn.steer("also that, please")
        assert (await turn.result()).text == "also that"


async def test_a_reply_is_stored_although_its_step_cannot_end_yet(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The reply and the end of its step come at one moment, and the store refuses only the end (T13)."""

    class SaysMore(Plugin):
        async def on_before_request(self, request: Request, turn: TurnView) -> None:
            if len(turn.messages) == 1:
                message = Message(f"msg_{turn.id}", turn.conversation.id, None, "user", (Text("wait"),))
                await runtime.store.post(turn.id, "steer", {"message": MESSAGE.to_json(message)})

    async with runtime_with(tmp_path, [says("one"), says("two")] * 4, plugins=[SaysMore()]) as runtime:
        chat = await runtime.conversation()
        for _ in range(4):
            await (await chat.send("go")).result()
        assert [message.text for message in await chat.messages()] == ["go", "one", "wait", "two"] * 4
    assert "broke off" not in caplog.text


async def test_a_turn_does_not_end_before_what_was_said_to_it_last(tmp_path: Path) -> None:
    """A message sent after the cancel comes first in the tree, and the facts keep the order of time (T6 ×
    T13)."""

    class SaysMore(Plugin):
        async def on_turn_end(self, turn: TurnView) -> None:
            message = Message("msg_late", turn.conversation.id, None, "user", (Text("wait"),))
            await runtime.store.post(turn.id, "steer", {"message": MESSAGE.to_json(message)})

    ticks = itertools.count(1_800_000_000.0)
    script = [says("done " * 40, waits=0.02)]
    async with runtime_with(tmp_path, script, plugins=[SaysMore()], clock=lambda: next(ticks)) as runtime:
        turn = await runtime.send("go")
        async for event in turn.events():
            if event.type == "text.start":
                await turn.cancel()
        facts = [FACT.load(text) for text in await runtime.store.facts(turn.id)]
        times = [fact.at for fact in facts]
        assert [type(fact) for fact in facts[-2:]] == [Steered, TurnCancelled]
        assert times == sorted(times)


async def test_plugins_see_at_the_end_what_was_said_to_a_cancelled_turn(tmp_path: Path) -> None:
    """T6 × T13 × H7"""
    seen: list[str] = []

    class Sees(Plugin):
        async def on_turn_end(self, turn: TurnView) -> None:
            seen.extend(message.text for message in turn.messages)

    async with runtime_with(tmp_path, [says("done " * 40, waits=0.02)], plugins=[Sees()]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("streaming")
        await turn.steer("wait")
        await turn.cancel()
        await turn.result()
    assert seen[-1] == "wait"


async def test_an_end_that_the_store_refuses_leaves_no_trace(tmp_path: Path) -> None:
    """A user sends a message between the error and its write. Clients see one end, and the error follows the
    message (T8 × T13)."""

    class SaysMore(Plugin):
        async def on_turn_start(self, turn: TurnView) -> Callable[[], Awaitable[None]]:
            async def say() -> None:
                message = Message("msg_late", turn.conversation.id, None, "user", (Text("wait"),))
                await runtime.store.post(turn.id, "steer", {"message": MESSAGE.to_json(message)})

            return say

        async def on_before_request(self, request: Request, turn: TurnView) -> None:
            raise ValueError("no")

    async with runtime_with(tmp_path, [says("x")], plugins=[SaysMore()]) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("go")
        shown: list[State] = []
        turn.subscribe(lambda now: shown.append(now.turn.state))
        events = [event async for event in turn.events()]
        with pytest.raises(ValueError, match="no"):
            await turn.result()
        messages = await chat.messages()
        assert [message.text for message in messages] == ["go", "wait", ""]
        assert [message.parent for message in messages] == [None, *(one.id for one in messages[:2])]
        assert isinstance(messages[-1].parts[0], Error)
        states = [event.state for event in events if event.type == "turn.state"]
        assert [states.count("error"), shown.count(State.ERROR)] == [1, 1]
