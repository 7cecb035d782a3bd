"""What happens when a conversation no longer fits: R7."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import (
    tool,
)
from dragoman.errors import ContextOverflow
from dragoman.messages.parts import Text, ToolCall
from dragoman.wire.scripted import calls, fails, says
from tests.runtimes import calls_of, events_of, model_of, runtime_with


async def test_a_full_context_is_summed_up_and_the_original_stays(tmp_path: Path) -> None:
    """R7"""
    script = [says("word " * 400), says("ok"), says("SUMMARY"), says("answer")]
    async with runtime_with(tmp_path, script, context=1100) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("start " * 100)).result()
        await (await chat.send("middle " * 100)).result()
        turn = await chat.send("end " * 60)
        states = [event.state for event in await events_of(turn) if event.type == "turn.state"]
        assert (await turn.result()).text == "answer"
        assert states[:2] == ["compacting", "streaming"]
        sent = model_of(runtime).requests[-1].messages
        assert sent[0].parts[0].text == "SUMMARY"  # type: ignore[union-attr]
        assert sent[-1].parts == (Text("end " * 60),)
        assert (await chat.messages())[1].text == "word " * 400


async def test_a_providers_overflow_is_met_once_by_summing_up(tmp_path: Path) -> None:
    """R7"""
    overflow = fails(ContextOverflow("too long"))
    script = [says("one"), overflow, says("SUMMARY"), says("answer"), overflow, says("SUMMARY 2"), overflow]
    async with runtime_with(tmp_path, script) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("first")).result()
        assert (await (await chat.send("second")).result()).text == "answer"
        with pytest.raises(ContextOverflow):
            await (await chat.send("third")).result()


async def test_old_outputs_are_cleared_before_anything_is_summed_up(tmp_path: Path) -> None:
    """R7"""

    @tool
    def much() -> str:
        """Says much."""
        return "data " * 400

    script = [calls("much"), says("a"), says("b"), says("c")]
    async with runtime_with(tmp_path, script, tools=[much], context=900) as runtime:
        chat = await runtime.conversation()
        for said in ("one", "two", "three " * 80):
            await (await chat.send(said)).result()
        first = model_of(runtime).requests[-1].messages[1].parts[0]
        assert isinstance(first, ToolCall)
        assert first.result is not None
        assert "cleared" in first.result.text
        (kept,) = calls_of(await chat.messages())
        assert kept.result is not None
        assert kept.result.text.startswith("data data")
