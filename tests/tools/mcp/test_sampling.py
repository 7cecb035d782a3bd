"""A server that asks the model: only where the settings let it, and each time only if a person does."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dragoman import ScriptedModel, reply
from dragoman.config.build import build_runtime
from dragoman.config.settings import load
from dragoman.messages.message import CallState, Message
from dragoman.messages.request import Request
from dragoman.tools.mcp.elicitation import DO_NOT, LET
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.tools.bench import Bench
from tests.tools.mcp.rig import call, everything, source

pytestmark = pytest.mark.slow

ASKS = "trigger-sampling-request"


async def test_the_model_answers_where_everybody_agrees() -> None:
    """And a person may say no."""
    bench = Bench(answers=[LET])
    with everything(sampling=True) as settings:
        async with source(settings) as server:
            result = (await call(server, ASKS, bench, prompt="Hello?", maxTokens=7)).result
            refused = await call(server, ASKS, Bench(answers=[DO_NOT]), prompt="Hello?")
    assert (
        "it wants to ask the model:\nsystem: You are a helpful test server.\n\n"
        "user: Resource trigger-sampling-request context: Hello?" in (bench.questions[0][0])
    )
    assert "Hello?', at most 7" in result.text
    assert refused.state is CallState.FAILED
    assert "did not let the server ask" in refused.result.text


@dataclass
class Thinking(Bench):
    """With a model that never comes to an end."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def _complete(self, request: Request) -> Message:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()
        raise AssertionError


async def test_the_model_is_asked_no_longer_than_the_call_runs() -> None:
    """A user who stops the turn does not pay for the server's remaining requests (T6)."""
    bench = Thinking(answers=[LET])
    with everything(sampling=True) as settings:
        async with source(settings) as server, asyncio.timeout(PATIENCE):
            calling = asyncio.create_task(call(server, ASKS, bench, prompt="Hello?"))
            await bench.asked.wait()
            calling.cancel()
            await bench.ended.wait()


async def test_a_server_does_not_even_know_of_it_otherwise() -> None:
    with everything(sampling=False) as settings:
        async with source(settings) as server:
            assert not any(ASKS in tool.name for tool in server.group().tools)


async def test_the_model_of_the_turn_answers_and_sees_nothing_private(tmp_path: Path) -> None:
    """The test covers the whole path from the settings, and private data is masked there, too (R3)."""
    with everything(sampling=True) as settings:
        env = ", ".join(f"{name} = {json.dumps(value)}" for name, value in settings.env.items())
        lines = [
            'allow = ["mcp.*"]',
            "tools = []",
            'private = { phone = "0660 1234" }',
            "[mcp.it]",
            f"command = {json.dumps(settings.command)}",
            f"args = {json.dumps(settings.args)}",
            f"env = {{ {env} }}",
            "sampling = true",
        ]
        (tmp_path / "dragoman.toml").write_text("\n".join(lines), "utf-8")
        script = [calls(f"it_{ASKS}", prompt="Call 0660 1234?"), says("from the model"), says("done")]
        model = ScriptedModel(script)
        built = build_runtime(
            load(tmp_path / "dragoman.toml", environment={}), model=model, store=tmp_path / "chat.db"
        )
        async with built.runtime as runtime:
            turn = await runtime.send("go")
            async for event in turn.events():
                if event.type == "call.asked":
                    await turn.answer(event.question, reply(LET))
            result = await turn.result()
    (made,) = [one for message in result.messages for one in message.calls]
    assert made.result is not None
    assert "from the model" in made.result.text
    asked = str(model.requests[1].messages)
    assert "[[phone]]" in asked
    assert "0660" not in asked
