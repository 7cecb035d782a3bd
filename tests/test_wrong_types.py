"""Check calls of the library with values of the wrong type: IDs and stored values are refused with a
message."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import (
    Answer,
    BadRequest,
    ConfigError,
    NotFound,
    Runtime,
    ToolSpec,
    allow_once,
    client_tool,
    reject,
)
from dragoman.messages.message import File, Text, ToolResult
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.runtimes import calls_of, runtime_with

Door = Callable[[Runtime, str, str], Awaitable[Any]]

find = client_tool("find", "Find a city.", {"type": "object", "properties": {"city": {"type": "string"}}})
wrong: Any = object()
five: Any = 5
nan: Any = float("nan")
letters: Any = b"letters"

DOORS: dict[str, Door] = {
    "list of somebody": lambda runtime, chat, message: runtime.conversations(user=nan),
    "by": lambda runtime, chat, message: runtime.spending(five),
    "fork": lambda runtime, chat, message: runtime.fork(chat, wrong),
    "user": lambda runtime, chat, message: runtime.conversation(user=letters),
    "id": lambda runtime, chat, message: runtime.conversation(wrong),
    "rename": lambda runtime, chat, message: _chat(runtime, chat, "rename", letters),
    "tags": lambda runtime, chat, message: _chat(runtime, chat, "label", tags=[5]),
    "one tag": lambda runtime, chat, message: _chat(runtime, chat, "label", tags="work"),
    "move_to": lambda runtime, chat, message: _chat(runtime, chat, "move_to", wrong),
    "parent": lambda runtime, chat, message: _chat(runtime, chat, "send", "x", parent=wrong),
    "disable": lambda runtime, chat, message: _chat(runtime, chat, "send", "x", disable=5),
    "client tools": lambda runtime, chat, message: _chat(runtime, chat, "send", "x", client_tools=["find"]),
    "tool": lambda runtime, chat, message: runtime.send("x", client_tools=[ToolSpec("a", five, {})]),
    "text": lambda runtime, chat, message: _chat(runtime, chat, "send", [Text(five)]),
    "file name": lambda runtime, chat, message: runtime.send([File("text/plain", url="data:,x", name=five)]),
    "empty file": lambda runtime, chat, message: runtime.send([File("text/plain")]),
    "edit": lambda runtime, chat, message: _chat(runtime, chat, "edit", wrong, "x"),
    "turn": lambda runtime, chat, message: runtime.turn(five).turn(),
    "send": lambda runtime, chat, message: runtime.send("x", five),
    "delete": lambda runtime, chat, message: runtime.delete(nan),
    "revoke": lambda runtime, chat, message: runtime.revoke(wrong),
    "answer": lambda runtime, chat, message: runtime.answer(five, reject()),
    "cancel": lambda runtime, chat, message: runtime.turn("x").cancel(wrong),
    "hunks": lambda runtime, chat, message: runtime.turn("x").arguments_for_hunks("x", five),
}


async def _chat(runtime: Runtime, id: str, method: str, *args: Any, **named: Any) -> None:
    await getattr(await runtime.conversation(id), method)(*args, **named)


async def test_what_is_of_the_wrong_kind_is_told_in_words(tmp_path: Path) -> None:
    """S1: and all is as it was."""
    async with runtime_with(tmp_path, [says("hello")], tools=[find]) as runtime:
        turn = await runtime.send("hi")
        await turn.result()
        (info,) = await runtime.conversations()
        before = await runtime.export(info.id)
        for name, door in DOORS.items():
            with pytest.raises(BadRequest):
                await door(runtime, info.id, str(info.leaf))
            assert [one.id for one in await runtime.conversations()] == [info.id], name
            assert await runtime.export(info.id) == before, name


async def test_a_file_that_is_not_stored_is_refused(tmp_path: Path) -> None:
    """It would be in every request of the conversation, and no request could be sent (S4 × M2)."""
    async with runtime_with(tmp_path, [says("hello")]) as runtime:
        with pytest.raises(NotFound, match="blob"):
            await runtime.send([Text("look"), File("text/plain", blob="0" * 64)])
        assert await runtime.conversations() == []


@pytest.mark.parametrize("output_type", [{"a": 5}, "", "not a type", 5])
async def test_what_is_no_type_of_an_answer_leaves_no_conversation(tmp_path: Path, output_type: Any) -> None:
    """R8"""
    async with runtime_with(tmp_path, [says("hello")]) as runtime:
        with pytest.raises(ConfigError, match="output_type"):
            await runtime.send("x", output_type=output_type)
        assert await runtime.conversations() == []


@pytest.mark.parametrize(
    "answer",
    [
        Answer("allow", scope=five),
        Answer("allow", scope="for ever"),  # type: ignore[arg-type]
        Answer(wrong),
        Answer("allow", by=five),
        Answer("allow", rules=five),
        allow_once(five),
        reject(five),
    ],
)
async def test_an_answer_that_could_not_be_read_again_is_refused(tmp_path: Path, answer: Answer) -> None:
    """Once stored, it made its approval request unreadable, and the turn could not even be cancelled (P6 ×
    S2)."""
    script = [calls("find", city="Oslo"), says("found")]
    async with runtime_with(tmp_path, script, tools=[find], allow=()) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        question = turn.question
        with pytest.raises(BadRequest):
            await turn.answer(question, answer)
        assert [one.id for one in await runtime.questions()] == [question]
        assert await turn.cancel()
        async with asyncio.timeout(PATIENCE):
            assert (await turn.result()).state == "cancelled"


@pytest.mark.parametrize(
    "result",
    [
        five,
        ToolResult(five),
        ToolResult("x", title=five),
        ToolResult("x", value=wrong),
        ToolResult("x", attachments=(wrong,)),
        ToolResult("x", attachments=(File("text/plain", url="file:///etc/passwd"),)),
    ],
)
async def test_a_result_that_could_not_be_read_again_is_refused(tmp_path: Path, result: ToolResult) -> None:
    """It made the turn fail instead of being refused to its sender (C2 × S2)."""
    script = [calls("find", city="Oslo"), says("found")]
    async with runtime_with(tmp_path, script, tools=[find]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        (call,) = calls_of((await turn.snapshot()).messages)
        with pytest.raises(BadRequest):
            await turn.deliver(call.id, result)
        await turn.deliver(call.id, "here")
        assert (await turn.result()).text == "found"
