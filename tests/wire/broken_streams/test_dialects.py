"""A call written as text runs once or gets an explanation, and no markup is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import OpenAICompatible, Runtime
from tests.loopback import (
    Answer,
    Reply,
    delta,
    loopback,
    stream,
)
from tests.runtimes import add, with_tables
from tests.wire.broken_streams.played import ANSWER, WRITTEN, play, text

pytestmark = pytest.mark.slow


async def test_d1_a_model_without_tools_calls_them_in_its_text(tmp_path: Path) -> None:
    played = await play(tmp_path, text(*WRITTEN), ANSWER, dialect="xml_tag")
    assert played.ran == [("add", {"a": 1, "b": 2})]
    assert (played.text, played.shown) == ("It is 3.", "Let me see.It is 3.")
    first, second = played.server.bodies
    assert "tools" not in first
    assert "add" in first["messages"][0]["content"]
    assert '"tool_call_result"' in second["messages"][-1]["content"]


async def test_d3_a_malformed_call_in_the_text_is_explained_and_tried_again(tmp_path: Path) -> None:
    broken = text('<tool_code>{"name": "add", "arguments": {"a": 1,}</tool_code>')
    played = await play(tmp_path, broken, text(WRITTEN), ANSWER, dialect="xml_tag")
    assert played.ran == [("add", {"a": 1, "b": 2})]
    explained = played.server.messages(1)[-1]["content"]
    assert "<tool_code>" in explained  # the expected syntax
    assert played.text == "It is 3."


async def test_d3_a_call_that_names_no_tool_is_explained_too(tmp_path: Path) -> None:
    nameless = text('<tool_code>{"arguments": {"a": 1, "b": 2}}</tool_code>')
    played = await play(tmp_path, nameless, text(WRITTEN), ANSWER, dialect="xml_tag")
    assert played.ran == [("add", {"a": 1, "b": 2})]
    assert "invalid_call" not in played.server.messages(1)[-1]["content"]


async def test_d2_a_written_call_after_thoughts_with_a_lone_end_tag_runs(tmp_path: Path) -> None:
    played = await play(tmp_path, text(*f"I could add.</think>{WRITTEN}"), ANSWER, dialect="xml_tag")
    assert played.ran == [("add", {"a": 1, "b": 2})]
    assert played.messages[1].reasoning == "I could add."
    assert played.text == "It is 3."


async def test_d1_a_server_that_refuses_tools_is_asked_in_a_dialect_and_remembered(tmp_path: Path) -> None:
    def serve(body: dict[str, Any]) -> Reply:
        if "tools" in body:
            return Answer(400, {"error": {"message": "registry.ollama.ai/library/m does not support tools"}})
        return ANSWER if "tool_call_result" in json.dumps(body) else text(WRITTEN)

    played = await play(tmp_path, serve)
    assert played.ran == [("add", {"a": 1, "b": 2})]
    assert played.text == "It is 3."
    assert ["tools" in body for body in played.server.bodies] == [True, False, False]


async def test_d2_a_model_that_keeps_writing_calls_shows_no_markup_when_it_must_answer(
    tmp_path: Path,
) -> None:
    played = await play(tmp_path, text(WRITTEN), dialect="xml_tag", max_rounds=1)
    assert played.state == "completed"
    assert len(played.ran) == 1
    assert "tool_code" not in played.shown


async def test_d6_a_model_whose_server_refuses_tools_may_write_in_the_format_of_its_family(
    tmp_path: Path,
) -> None:
    own = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'

    def serve(body: dict[str, Any]) -> Reply:
        if "tools" in body:
            return Answer(400, {"error": {"message": "registry.ollama.ai/library/m does not support tools"}})
        return ANSWER if "tool_call_result" in json.dumps(body) else text("Let me see.\n\n", *own)

    played = await play(tmp_path, serve, model="acme/qwen3-8b")
    assert played.ran == [("add", {"a": 1, "b": 2})]
    assert (played.text, played.shown) == ("It is 3.", "Let me see.It is 3.")


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        ("I look. <tool_c", "I look. <tool_c"),
        ("1 <", "1 <"),
        ("I look.\nTool: a", "I look.\nTool: a"),
        ('I look. <tool_call>{"name": "add", "arg', 'I look. <tool_call>{"name": "add", "arg'),
    ],
)
async def test_t6_a_cancel_keeps_words_that_might_have_begun_a_call(
    tmp_path: Path, reply: str, kept: str
) -> None:
    """The text was received before the cancel, and could still have been the start of a call."""
    script = stream(delta(content=reply), finish=None, done=False, then="stalls")
    async with (
        loopback(script) as server,
        Runtime(
            with_tables(tmp_path / "chat.db"), model=OpenAICompatible(server.url, model="m"), tools=[add]
        ) as runtime,
    ):
        turn = await runtime.send("1 + 2?")
        async for event in turn.events():
            if event.type == "text.delta":
                await turn.cancel()
        result = await turn.result()
    assert (result.state, result.messages[-1].text) == ("cancelled", kept)
    assert result.messages[-1].calls == ()
