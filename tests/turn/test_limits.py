"""Limits that end a turn with an answer: T7 and T12."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman import (
    ConfigError,
    ContextOverflow,
    OpenAICompatible,
    Plugin,
    ProviderError,
    Runtime,
    ToolContext,
    TurnView,
    allow_once,
    release,
    stop,
    tool,
)
from dragoman.messages.events import Event, TurnEnd
from dragoman.messages.message import Message, Text
from dragoman.messages.request import LostReply, Request, RequestMessage
from dragoman.messages.usage import Usage
from dragoman.plugins.compaction import Compaction
from dragoman.plugins.limits import RoundLimit
from dragoman.turn.plugin import Appender
from dragoman.wire.scripted import Line, ScriptedModel, calls, fails, says
from tests.loopback import Answer, loopback
from tests.runtimes import add, calls_of, events_of, model_of, only_call, play, runtime_with


@tool(review="always")
def report() -> str:
    """Report."""
    return "salary: 5000"


async def test_a_batch_over_the_limit_is_skipped_and_the_answer_asked_for(tmp_path: Path) -> None:
    """T7"""
    script = [
        calls("add", a=1, b=1),
        calls("add", a=2, b=2) + calls("add", a=3, b=3),
        says("that is all I know"),
    ]
    async with runtime_with(tmp_path, script, tools=[add], max_rounds=1) as runtime:
        turn = await runtime.send("go")
        result = await turn.result()
        assert [call.state for call in calls_of(result.messages)] == ["completed", "skipped", "skipped"]
        assert result.text == "that is all I know"
        requests = model_of(runtime).requests
    assert [bool(request.tools) for request in requests] == [True, True, False]
    assert requests[-1].tool_choice is None


async def test_a_model_that_calls_on_without_tools_is_not_asked_for_ever(tmp_path: Path) -> None:
    """T7"""
    async with runtime_with(tmp_path, lambda _: calls("add", a=1, b=1), tools=[add], max_rounds=1) as runtime:
        turn = await runtime.send("go")
        notices = [event.kind for event in await events_of(turn) if event.type == "notice"]
        result = await turn.result()
    assert result.state == "completed"
    assert [call.state for call in calls_of(result.messages)] == ["completed", "skipped", "skipped"]
    assert "no_answer" in notices


async def test_no_rounds_means_no_tools(tmp_path: Path) -> None:
    """T7"""
    async with runtime_with(tmp_path, [says("fine")], tools=[add], max_rounds=0) as runtime:
        await (await runtime.send("go")).result()
        assert model_of(runtime).requests[0].tools == ()


async def test_the_count_starts_anew_with_each_turn(tmp_path: Path) -> None:
    """T7"""
    script = [calls("add", a=1, b=1), says("a"), calls("add", a=1, b=1), says("b")]
    async with runtime_with(tmp_path, script, tools=[add], max_rounds=1) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("one")).result()
        result = await (await chat.send("two")).result()
    assert [call.state for call in calls_of(result.messages)] == ["completed"]


@pytest.mark.parametrize("wrong", [-1, 1.5, float("nan"), True, "3"])
def test_a_limit_that_is_no_whole_number_is_refused(wrong: int) -> None:
    """T7"""
    with pytest.raises(ConfigError, match="max_rounds"):
        RoundLimit(wrong)


@pytest.mark.parametrize(
    ("limit", "value"), [("max_tokens", 15), ("max_cost", 0.5), ("max_seconds", 1e-9), ("max_calls", 1)]
)
async def test_a_budget_ends_a_turn_with_an_answer(tmp_path: Path, limit: str, value: float) -> None:
    """T12"""
    usage = Usage(input=10, output=5, cost=0.5)
    line = Line(calls=calls("add", a=1, b=1).calls * 2, usage=usage)
    options: dict[str, Any] = {limit: value}
    result = await play(tmp_path, [line, says("enough")], tools=[add], **options)
    states = [call.state for call in calls_of(result.messages)]
    assert states == (["completed", "skipped"] if limit == "max_calls" else ["skipped", "skipped"])
    assert result.text == "enough"


@pytest.mark.parametrize(("limit", "value"), [("max_tokens", 15), ("max_cost", 0.5), ("max_seconds", 1e-9)])
@pytest.mark.parametrize("asks", ["length", "plugin"])
async def test_a_budget_comes_before_a_step_that_a_plugin_asks_for(
    tmp_path: Path, limit: str, value: float, asks: str
) -> None:
    """The budget stops a cut reply that would continue, and a plugin that always asks for another step (T12 ×
    H5)."""
    line = says("and so on", finish="length" if asks == "length" else None)
    line = replace(line, usage=Usage(input=10, output=5, cost=0.5))
    plugins = [_Insatiable()] if asks == "plugin" else []
    options: dict[str, Any] = {limit: value, "plugins": plugins}
    async with runtime_with(tmp_path, lambda _: line, **options) as runtime:
        turn = await runtime.send("go")
        ended = (await events_of(turn))[-1]
        assert (await turn.result()).text == "and so on"
        assert len(model_of(runtime).requests) == 1
    assert isinstance(ended, TurnEnd)
    assert ended.limit


async def test_a_person_comes_before_a_budget(tmp_path: Path) -> None:
    """The model answers a user's message to a turn that is at its limit (T12 × T13)."""

    class Interrupts(Plugin):
        async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
            if turn.turn.step == 1:
                await runtime.turn(turn.id).steer("and now?")

    async with runtime_with(
        tmp_path, [says("one"), says("two")], max_tokens=1, plugins=[Interrupts()]
    ) as runtime:
        assert (await (await runtime.send("go")).result()).text == "two"


async def test_a_budget_of_calls_is_none_of_steps(tmp_path: Path) -> None:
    """A cut answer after the last allowed call can continue (T12 × H5)."""
    script = [calls("add", a=1, b=1), says("cut ", finish="length"), says("off")]
    result = await play(tmp_path, script, tools=[add], max_calls=1)
    assert result.text == "cut off"
    script = [calls("add", a=1, b=1), calls("add", a=2, b=2), says("enough")]
    assert (await play(tmp_path / "again", script, tools=[add], max_calls=1)).limit == "1 call"


class _Insatiable(Plugin):
    async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
        await append.and_request("More!")


@pytest.mark.parametrize("limited", [False, True], ids=["a user's stop", "a limit"])
async def test_a_turn_that_is_closed_asks_for_its_answer_also_after_a_restart(
    tmp_path: Path, limited: bool
) -> None:
    """Some calls of a reply had ended and another waited for a user when the program stopped (T7, P10 ×
    S3)."""
    made = calls("add", a=1, b=1) + calls("report")
    options: dict[str, Any] = {"tools": [report, add], "allow": ["report"]}
    if limited:
        made, options["max_calls"] = calls("report") + calls("add", a=1, b=1), 1
    async with runtime_with(tmp_path, [made], **options) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        questions = {question.kind: question.id for question in turn.questions}
        if not limited:
            await turn.answer(questions["approve"], stop())
        async for event in turn.events():
            if event.type == "call.end":
                break
    async with runtime_with(tmp_path, [says("that is all")], **options) as second:
        turn = second.turn(turn.id)
        await second.answer(questions["review"], release())
        result = await turn.result()
        assert result.text == "that is all"
        assert result.limit
        assert model_of(second).requests[0].tools == ()


async def test_calls_that_were_summed_up_count_also_after_a_restart(tmp_path: Path) -> None:
    """T12 × R7 × S3: and they are in the turn's result."""
    options: dict[str, Any] = {"tools": [report, add], "max_calls": 3}
    script = [calls("add", a=1, b=1), calls("add", a=1, b=2), fails(ContextOverflow("too long"))]
    async with runtime_with(tmp_path, [*script, says("SUMMARY"), calls("report")], **options) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        question = turn.question
    async with runtime_with(tmp_path, [calls("add", a=1, b=3), says("that is all")], **options) as second:
        await second.answer(question, release())
        result = await second.turn(turn.id).result()
        assert (result.text, result.limit) == ("that is all", "3 calls")
        assert [call.state for call in calls_of(result.messages)] == ["completed"] * 3 + ["skipped"]


class _Lossy(ScriptedModel):
    """Each request loses a first attempt that has a price, and its reply has no price."""

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        request.lost.append(LostReply(self.name, Usage(9, 1, cost=1.0)))
        async for events in super().stream(request, reply):
            yield events


async def test_what_was_lost_counts_in_the_limit_of_cost_beside_what_has_no_price(tmp_path: Path) -> None:
    """T12 x R6"""
    model = _Lossy([calls("add", a=1, b=1), says("enough")])
    async with Runtime(tmp_path / "chat.db", model=model, tools=[add], allow=["*"], max_cost=0.5) as runtime:
        result = await (await runtime.send("go")).result()
    assert (result.text, result.limit) == ("enough", "$0.5")


BUSY = Answer(429, {"error": {"message": "we are busy"}}, headers={"Retry-After": "50"})


async def test_a_provider_is_not_waited_for_beyond_the_limit_of_time(tmp_path: Path) -> None:
    """A wait for the provider counts, and a wait that would end after the limit does not start (T12 × R6)."""
    async with loopback(BUSY, says("too late")) as server:
        model = OpenAICompatible(server.url, model="a", name="one")
        async with Runtime(tmp_path / "chat.db", model=model, max_seconds=40) as runtime:
            with pytest.raises(
                ProviderError, match=r"we are busy.* would pass the turn's limit of time"
            ) as told:
                await (await runtime.send("go")).result()
    assert told.value.retryable
    assert len(server.bodies) == 1


async def test_nor_for_what_a_tool_asks_of_a_model(tmp_path: Path) -> None:
    """T12 x R6"""

    @tool
    async def think(context: ToolContext) -> str:
        request = Request("one", (RequestMessage("user", (Text("what now?"),)),))
        return (await context.complete(request)).text

    async with loopback(calls("think"), BUSY, says("enough")) as server:
        model = OpenAICompatible(server.url, model="a", name="one")
        options: dict[str, Any] = {"tools": [think], "allow": ["*"], "max_seconds": 40}
        async with Runtime(tmp_path / "chat.db", model=model, **options) as runtime:
            result = await (await runtime.send("go")).result()
    told = only_call(result).result
    assert told is not None
    assert "would pass the turn's limit of time" in told.text


async def test_nor_for_a_summary(tmp_path: Path) -> None:
    """T12 x R6 x R7"""
    compaction = Compaction()
    async with loopback(says("one"), BUSY, says("too late")) as server:
        model = OpenAICompatible(server.url, model="a", name="one")
        async with Runtime(
            tmp_path / "chat.db", model=model, max_seconds=40, plugins=[compaction]
        ) as runtime:
            chat = await runtime.conversation()
            await (await chat.send("first")).result()
            with pytest.raises(ProviderError, match="would pass the turn's limit of time"):
                await (await chat.send("second", compact=True)).result()


async def test_another_model_is_asked_where_there_is_no_time_to_wait_for_the_first(tmp_path: Path) -> None:
    """T12 x R6"""
    async with loopback(BUSY) as one, loopback(says("here")) as two:
        models = [
            OpenAICompatible(one.url, model="a", name="one"),
            OpenAICompatible(two.url, model="b", name="two"),
        ]
        async with Runtime(tmp_path / "chat.db", model=models, max_seconds=40) as runtime:
            turn = await runtime.send("go")
            assert (await turn.result()).text == "here"
            requests = (await turn.trace()).steps[0].requests
    assert [(request.wait, request.error is None) for request in requests] == [(0.0, False), (0.0, True)]
    assert len(one.bodies) == 1


async def test_the_answer_after_a_limit_of_time_is_asked_for_again(tmp_path: Path) -> None:
    """The turn ends with an answer although no time is left (T7 × R6)."""
    busy = replace(BUSY, headers={"Retry-After": "0"})
    async with loopback(calls("add", a=1, b=1), busy, says("enough")) as server:
        model = OpenAICompatible(server.url, model="a", name="one")
        options: dict[str, Any] = {"tools": [add], "allow": ["*"], "max_seconds": 1e-9}
        async with Runtime(tmp_path / "chat.db", model=model, **options) as runtime:
            assert (await (await runtime.send("go")).result()).text == "enough"


async def test_the_answer_is_asked_for_again_where_a_person_took_all_the_time(tmp_path: Path) -> None:
    """The turn passed its limit before the restart and before the provider was busy (T12 × R6 × S3)."""
    busy = replace(BUSY, headers={"Retry-After": "0"})
    async with loopback(calls("add", a=1, b=1), busy, says("two")) as server:

        def house(now: float) -> Runtime:
            model = OpenAICompatible(server.url, model="a", name="one")
            return Runtime(tmp_path / "chat.db", model=model, tools=[add], max_seconds=40, clock=lambda: now)

        async with house(1_000_000.0) as runtime:
            turn = await runtime.send("go")
            assert await turn.reached("waiting")
            [question] = turn.questions
        async with house(1_003_600.0) as runtime:
            await runtime.answer(question.id, allow_once())
            assert (await runtime.turn(turn.id).result()).text == "two"
