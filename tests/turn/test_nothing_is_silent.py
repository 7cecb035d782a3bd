"""A library's caller learns of a tool that did not run, and of an approval request that waits."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from dragoman import (
    Agent,
    BadRequest,
    Runtime,
    ScriptedModel,
    SyncRuntime,
    Unanswered,
    allow_once,
    run_sync,
    tool,
)
from dragoman.wire.scripted import calls, says
from tests.patience import eventually


@tool(permission="weather.read")
def weather(city: str) -> str:
    """The weather in a city."""
    return "sunny"


def script() -> ScriptedModel:
    return ScriptedModel([calls("weather", city="Graz"), says("I do not know.")])


def test_run_sync_warns_of_a_tool_that_no_rule_allows_and_raises_by_choice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert run_sync("Graz?", model=script(), tools=[weather], store=":memory:").text == "I do not know."
    assert "weather did not run: no rule allows it" in caplog.text
    assert "allow=['weather.read']" in caplog.text
    with pytest.raises(Unanswered, match="weather did not run"):
        run_sync("Graz?", model=script(), tools=[weather], store=":memory:", strict=True)
    caplog.clear()
    run_sync("Graz?", model=script(), tools=[weather], store=":memory:", allow=["weather.read"], strict=True)
    assert caplog.text == ""


async def test_a_result_that_waits_for_a_person_says_how_to_answer(caplog: pytest.LogCaptureFixture) -> None:
    async with Runtime(":memory:", model=script(), tools=[weather]) as runtime:
        turn = await runtime.send("Graz?")
        waiting = asyncio.create_task(turn.result())
        with caplog.at_level(logging.WARNING, "dragoman.turn"):
            assert await turn.reached("waiting")
            questions = await runtime.questions()
            await eventually(lambda: "waits for approval" in caplog.text)
        assert f"runtime.answer('{questions[0].id}', allow_once())" in caplog.text
        with pytest.raises(Unanswered, match="waits for approval"):
            await turn.result(strict=True)
        await runtime.answer(questions[0].id, allow_once())
        assert (await waiting).text == "I do not know."


async def test_an_agent_takes_allow_as_a_runtime_does() -> None:
    agent = Agent(name="guide", allow=["weather.read"], deny=["shell"])
    assert [(rule.permission, rule.action) for rule in agent.rules] == [
        ("weather.read", "allow"),
        ("shell", "deny"),
    ]
    async with Runtime(":memory:", model=script(), tools=[weather], agents=[agent]) as runtime:
        chat = await runtime.conversation(agent="guide")
        result = await (await chat.send("Graz?")).result(strict=True)
    assert [call.state for message in result.messages for call in message.calls] == ["completed"]


def test_a_store_in_memory_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with SyncRuntime(":memory:", model=ScriptedModel([says("Hi.")])) as runtime:
        assert runtime.send("Hello").result().text == "Hi."
        place = runtime.runtime.store
        assert len(runtime.conversations()) == 1
    assert list(tmp_path.iterdir()) == []
    assert not Path(str(getattr(place, "path", tmp_path / "gone"))).exists()


async def test_a_conversation_begins_with_messages_of_the_callers_own() -> None:
    model = ScriptedModel([says("You are Ann.")])
    history = [
        {"role": "user", "content": "I am Ann."},
        {"role": "assistant", "content": "Hello, Ann."},
    ]
    async with Runtime(":memory:", model=model) as runtime:
        chat = await runtime.conversation(messages=history)
        await (await chat.send("Who am I?")).result()
        said = [(one.role, one.text) for one in await chat.messages()]
        with pytest.raises(BadRequest, match="not a message of a history"):
            await runtime.conversation(messages=[{"role": "system", "content": "Be nice."}])
    assert said == [
        ("user", "I am Ann."),
        ("assistant", "Hello, Ann."),
        ("user", "Who am I?"),
        ("assistant", "You are Ann."),
    ]
