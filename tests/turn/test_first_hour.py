"""Typical first steps with the library, and the error texts for those that cannot work."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from dragoman import Agent, OpenAICompatible, Runtime, ScriptedModel, allow_once, client_tool, tool
from dragoman.errors import BadRequest, ConfigError, NotFound
from dragoman.messages.events import Notice
from dragoman.providers.models import Models
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.source import McpSource
from dragoman.wire.scripted import calls, fails, says
from tests.loopback import loopback
from tests.runtimes import add, runtime_with


async def test_questions_of_tasks_are_asked_in_one_place(tmp_path: Path) -> None:
    """A client that follows a turn sees the questions of its tasks and can answer them (P6)."""
    script = [
        calls("task", agent="clerk", request="add 1 and 2"),
        calls("add", a=1, b=2),
        says("three"),
        says("It is three."),
    ]
    agents = [Agent(name="clerk", description="adds")]
    async with runtime_with(tmp_path, script, tools=[add], agents=agents, allow=["task"]) as runtime:
        turn = await runtime.send("What is 1 + 2?")
        asked = []
        async for question in turn.asked():
            asked.append(question.tool)
            await turn.answer(question, allow_once())
        assert (await turn.result()).text == "It is three."
    assert asked == ["add"]


async def test_one_question_after_the_other_is_answered_without_waiting_for_anything(tmp_path: Path) -> None:
    """A turn handle never returns a question that it has already answered (P3)."""
    script = [calls("add", a=1, b=2) + calls("add", a=3, b=4), says("done")]
    async with runtime_with(tmp_path, script, tools=[add], allow=[]) as runtime:
        turn = await runtime.send("go")
        for _ in range(2):
            assert await turn.reached("waiting")
            await turn.answer(turn.question, allow_once())
        assert (await turn.result()).text == "done"


async def test_a_result_names_the_limit_that_was_reached(tmp_path: Path) -> None:
    """T7"""
    script = [calls("add", a=1, b=2), calls("add", a=1, b=3), says("enough")]
    async with runtime_with(tmp_path, script, tools=[add], max_rounds=1) as runtime:
        result = await (await runtime.send("go")).result()
    assert "1" in result.limit
    async with runtime_with(tmp_path, [says("hi")]) as runtime:
        assert (await (await runtime.send("go")).result()).limit == ""


async def test_turns_that_are_not_over_are_found_after_a_restart(tmp_path: Path) -> None:
    """A restart finds unfinished turns, also those without an open question (S3)."""
    async with runtime_with(tmp_path, [calls("add", a=1, b=2)], tools=[add], allow=[]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
    async with runtime_with(tmp_path, [says("done")], tools=[add], allow=[]) as runtime:
        (found,) = await runtime.turns()
        assert found.id == turn.id
        assert await runtime.turns(user="bob") == []
        (spent,) = await runtime.spending("model")
        assert spent.replies == 1


async def test_a_mistake_in_a_tool_can_be_found(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A caller finds the traceback only on request, because it can contain private text (O2)."""

    @tool
    def divide(a: int) -> float:
        """Divide by nothing."""
        return a / 0

    with caplog.at_level(logging.DEBUG, logger="dragoman.tools"):
        async with runtime_with(tmp_path, [calls("divide", a=1), says("no")], tools=[divide]) as runtime:
            await (await runtime.send("go")).result()
    (record,) = [one for one in caplog.records if one.name == "dragoman.tools"]
    assert record.exc_info is not None
    assert "return a / 0" in caplog.text


@pytest.mark.slow
async def test_a_server_that_takes_its_time_is_told_of(tmp_path: Path) -> None:
    """The model will report an unknown tool, so the user learns the reason (C10)."""
    server = McpServer(command=sys.executable, args=("-c", "import time; time.sleep(60)"))
    slow = McpSource("slow", server, workspace=tmp_path, patience=0.1)
    async with runtime_with(tmp_path, [says("hi"), says("hi")], tools=[slow]) as runtime:
        chat = await runtime.conversation()
        turns = [await chat.send("go"), await chat.send("go", queue=True)]  # the second one does not tell
        notices = [event for turn in turns async for event in turn.events() if isinstance(event, Notice)]
    (told,) = [one.text for one in notices if one.kind == "source"]
    assert told == "the tools of slow are missing: it is still starting, and its tools follow"


class Nothing(BaseModel):
    """No parameters."""


MISTAKES: list[tuple[Any, str]] = [
    (lambda: Agent(name="a", limits={"max_rounds": 2}), "limits must be Limits"),  # type: ignore[arg-type]
    (lambda: Agent(name="a", model=ScriptedModel([])), "its model must be a name"),  # type: ignore[arg-type]
    (lambda: Agent(name="a", rules=("deny x",)), "rules must be Rule"),  # type: ignore[arg-type]
    (lambda: Models(OpenAICompatible("http://localhost:1/v1", model="m")), "Name a model here"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "match"), MISTAKES)
def test_wrong_values_are_told_where_they_are_given(make: Any, match: str) -> None:
    """R9"""
    with pytest.raises(ConfigError, match=match):
        make()


async def test_what_is_no_tool_and_no_chain_is_told(tmp_path: Path) -> None:
    """R9"""
    with pytest.raises(ConfigError, match="3 is not a tool"):
        Runtime(tmp_path / "a.db", model=ScriptedModel([]), tools=[3])  # type: ignore[list-item]
    wrong: Any = [ScriptedModel([fails("down")]), ScriptedModel([says("x")])]
    with pytest.raises(ConfigError, match="A chain takes names"):
        Runtime(tmp_path / "a.db", model=wrong)


async def test_one_of_several_addresses_is_meant_by_its_name(tmp_path: Path) -> None:
    """A send selects one of several addresses by name. The error for a wrong `model` value says how
    (R9, W2)."""
    async with loopback(says("one"), says("two")) as server:
        near, far = (OpenAICompatible(server.url, model="m", name=name) for name in ("near", "far"))
        find: Any = {"near/m": near}.get
        given: Any = far
        async with Runtime(tmp_path / "a.db", model=find) as runtime:
            with pytest.raises(
                ConfigError,
                match=r"which is not a model\. To choose between models by name, pass a list to Runtime",
            ):
                await runtime.send("Hi", model="near/m")
            with pytest.raises(NotFound, match="Unknown model 'far/m'"):
                await runtime.send("Hi", model="far/m")
        async with Runtime(tmp_path / "a.db", model=[near, far]) as runtime:
            with pytest.raises(BadRequest, match=r"Runtime\(model=…\) takes a list of addresses"):
                await runtime.send("Hi", model=given)
            replies = [await (await runtime.send("Hi", model=name)).result() for name in ("far/m", "near/m")]
    assert [reply.messages[-1].model for reply in replies] == ["far/m", "near/m"]


def test_a_tool_can_be_called_as_the_function_it_was_made_from() -> None:
    """C1: for a test of it."""
    assert add(1, b=2) == 3
    server_side = client_tool("here", "Where the client is.", Nothing)
    with pytest.raises(TypeError, match="not made from a function"):
        server_side()
