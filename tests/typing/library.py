"""Checked by mypy, never run: the types a caller meets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import assert_type

from dragoman import (
    OpenAICompatible,
    Output,
    Plugin,
    Question,
    Runtime,
    ScriptedModel,
    ToolContext,
    TurnView,
    allow_once,
    run_sync,
    tool,
)
from dragoman.evaluation import Case, Report, case_of_turn, cases, run
from dragoman.evaluation.expected import Answered
from dragoman.messages.message import Message
from dragoman.tools.tool import Tool
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.turn.api.turn_handle import TurnHandle, TurnResult
from dragoman.turn.plugin import Cleanup


@tool
def plain(a: int) -> int:
    return a


@tool(replay="safe", timeout=3)
async def with_options(a: int) -> int:
    return a


assert_type(plain, Tool)
assert_type(with_options, Tool)

tool(replay="sometimes")  # type: ignore[call-overload]


class Returns(Plugin):
    async def on_turn_start(self, turn: TurnView) -> Cleanup | None:
        return None


class ReturnsNothing(Plugin):
    async def on_turn_start(self, turn: TurnView) -> None:
        return None


class Yields(Plugin):
    async def on_turn_start(self, turn: TurnView) -> AsyncIterator[None]:
        yield


async def use() -> None:
    async with Runtime("chat.db", model=ScriptedModel([]), tools=[plain], plugins=[Returns()]) as runtime:
        assert_type(runtime, Runtime)
        chat = await runtime.conversation()
        assert_type(chat, ConversationHandle)
        turn = await chat.send("hi", queue=True)
        assert_type(turn, TurnHandle)
        async for event in turn.events():
            if event.type == "call.asked":
                assert_type(event.question, str)
                assert_type(await turn.answer(event.question, allow_once()), Question)
            if event.type == "text.delta":
                assert_type(event.text, str)
        result = await turn.result()
        assert_type(result, TurnResult)
        assert_type(result.messages, tuple[Message, ...])
    assert_type(run_sync("hi", model=ScriptedModel([])), TurnResult)


@dataclass
class City:
    name: str


@tool
def where(context: ToolContext[City]) -> str:
    assert_type(context.deps, City)
    return context.deps.name


async def use_types() -> None:
    async with Runtime("chat.db", model=["ollama/qwen3", OpenAICompatible("http://x/v1", "y")]) as runtime:
        turn = await runtime.send("hi", output_type=list[City], deps=City("Rome"))
        assert_type((await turn.result()).output, list[City])
        async for city in (
            await runtime.send("hi", output_type=Output(City, checks=[_known]))
        ).partial_outputs():
            assert_type(city, City)
        assert_type((await (await runtime.send("hi")).result()).output, str)
        assert_type((await runtime.turn("turn_1", City).result()).output, City)
    assert_type(run_sync("hi", model="ollama/qwen3", output_type=int).output, int)
    await runtime.send("hi", max_rounds="many")  # type: ignore[call-overload]
    run_sync("hi", model=3)  # type: ignore[call-overload]


def _known(city: City) -> None: ...


async def evaluates(runtime: Runtime, model: ScriptedModel) -> None:
    made = await case_of_turn(runtime, "turn_1")
    assert_type(made, Case)
    assert_type(cases("evals"), list[Case])
    report = await run([made], models={"one": model}, like=runtime, checks={"short": short})
    assert_type(report, Report)
    assert_type(report.meets(0.9), bool)


def short(case: Case, answered: Answered) -> str | None:
    return None if len(answered.text) < 100 else f"{case.id} is too long"
