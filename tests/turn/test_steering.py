"""T13: what a person says while a turn runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dragoman import (
    TurnEnded,
    tool,
)
from dragoman.messages.parts import Text
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
