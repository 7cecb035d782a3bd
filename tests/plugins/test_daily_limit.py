"""Check a user's daily limit: it holds across turns, users, deletions and attempts to avoid it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman import ProviderError, Runtime
from dragoman.errors import BadRequest, ConfigError
from dragoman.messages.message import CallState
from dragoman.messages.request import Request
from dragoman.messages.usage import Usage
from dragoman.wire.scripted import Line, calls, says
from tests.runtimes import add, calls_of, runtime_with

DAY = 86_400.0


class Clock:
    def __init__(self) -> None:
        self.now = 20_000 * DAY

    def __call__(self) -> float:
        return self.now


def _runtime(folder: Path, script: Any = None, clock: Clock | None = None, **limits: Any) -> Runtime:
    lines = script or (lambda request: says("hi", usage=Usage(60, 40, cost=0.6)))
    return runtime_with(folder, lines, tools=[add], clock=clock or Clock(), **limits)


async def _say(runtime: Runtime, person: str) -> str:
    conversation = await runtime.conversation(user=person)
    return (await (await conversation.send("go")).result()).text


async def test_at_the_limit_no_turn_of_that_person_begins_until_the_next_day(tmp_path: Path) -> None:
    """Other users are not affected (T7, O3)."""
    clock = Clock()
    async with _runtime(tmp_path, clock=clock, max_daily_cost=1.0) as runtime:
        assert await _say(runtime, "ada") == "hi"
        assert await _say(runtime, "ada") == "hi"
        with pytest.raises(ProviderError, match=r"\$1 a day"):
            await _say(runtime, "ada")
        assert await _say(runtime, "bob") == "hi"
        clock.now += DAY
        assert await _say(runtime, "ada") == "hi"


async def test_a_turn_that_reaches_it_ends_with_an_answer(tmp_path: Path) -> None:
    """Its further calls are skipped, and the model is asked for an answer (T7)."""
    many = Line(calls=calls("add", a=1, b=2).calls, usage=Usage(100, 0))
    async with _runtime(tmp_path, [many, many, says("that is all")], max_daily_tokens=150) as runtime:
        result = await (await runtime.send("go")).result()
        assert [call.state for call in calls_of(result.messages)] == [CallState.COMPLETED, CallState.SKIPPED]
        assert result.text == "that is all"


async def test_what_was_deleted_was_used_all_the_same(tmp_path: Path) -> None:
    """O3 × S9: deleting makes no room, neither here nor after a restart."""
    clock = Clock()
    async with _runtime(tmp_path, clock=clock, max_daily_tokens=250) as runtime:
        for _ in range(3):
            await _say(runtime, "ada")
        with pytest.raises(ProviderError, match="250 tokens a day"):
            await _say(runtime, "ada")
        for conversation in await runtime.conversations(user="ada"):
            await runtime.delete(conversation.id)
        with pytest.raises(ProviderError, match="250 tokens a day"):
            await _say(runtime, "ada")
    async with _runtime(tmp_path, clock=clock, max_daily_tokens=250) as again:
        with pytest.raises(ProviderError, match="250 tokens a day"):
            await _say(again, "ada")


async def test_a_restart_forgets_nothing_that_is_stored(tmp_path: Path) -> None:
    """O3 × T3"""
    clock = Clock()
    async with _runtime(tmp_path, clock=clock, max_daily_tokens=100) as first:
        await _say(first, "ada")
    async with _runtime(tmp_path, clock=clock, max_daily_tokens=100) as second:
        with pytest.raises(ProviderError):
            await _say(second, "ada")


async def test_nobody_leaves_it_out(tmp_path: Path) -> None:
    """O3, H1: a send may leave plugins out, and not this one."""
    async with _runtime(tmp_path, max_daily_tokens=100) as runtime:
        with pytest.raises(BadRequest, match="cannot leave out daily_limit"):
            await runtime.send("go", disable=["daily_limit"])


async def test_an_unknown_price_counts_as_nothing_and_tokens_count_all_the_same(tmp_path: Path) -> None:
    """T11"""

    def unpriced(request: Request) -> Line:
        return says("hi", usage=Usage(60, 40))

    async with _runtime(tmp_path, unpriced, max_daily_cost=0.01, max_daily_tokens=150) as runtime:
        assert await _say(runtime, "ada") == "hi"
        assert await _say(runtime, "ada") == "hi"
        with pytest.raises(ProviderError, match="150 tokens"):
            await _say(runtime, "ada")


@pytest.mark.parametrize("wrong", [{"max_daily_tokens": 0}, {"max_daily_cost": -1.0}])
def test_a_limit_that_is_none_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        _runtime(tmp_path, **wrong)
