"""A call that a crash cut off repeats automatically only if its permission still holds (S3 × P9)."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman import Runtime, ToolContext, allow_once, reject, reply, tool
from dragoman.messages.events import CallAsked
from dragoman.messages.message import CallState
from dragoman.messages.questions import Answer, allow_for_an_hour
from dragoman.tools.tool import Replay, Tool
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.runtimes import calls_of, only_call, runtime_with


class Fetcher:
    """A tool that does not come to its end one time."""

    def __init__(self, hangs: int = 1) -> None:
        self.runs = 0
        self.started = asyncio.Event()

        @tool(replay="safe", cancellable=True)
        async def fetch(again: bool = False) -> str:
            """Fetch."""
            self.runs += 1
            if self.runs == hangs:
                self.started.set()
                await asyncio.Event().wait()
            return "fetched"

        self.tool: Tool = fetch


async def _cut_off(runtime: Runtime, fetcher: Fetcher, answer: Answer | None) -> str:
    """A turn whose call runs when the program ends."""
    turn = await runtime.send("go")
    if answer is not None:
        assert await turn.reached("waiting")
        await turn.answer(turn.questions[0], answer)
    async with asyncio.timeout(PATIENCE):
        await fetcher.started.wait()
    return turn.id


def _house(folder: Path, fetcher: Tool, **options: Any) -> Runtime:
    return runtime_with(folder, [says("ok")], tools=[fetcher], **{"allow": (), **options})


@pytest.mark.parametrize("answer", [allow_once(), reject()], ids=["allow", "reject"])
async def test_a_rule_that_wants_to_be_asked_by_now_is_asked(tmp_path: Path, answer: Answer) -> None:
    """A rule allowed the call, and no longer does."""
    fetcher = Fetcher()
    async with runtime_with(tmp_path, [calls("fetch")], tools=[fetcher.tool]) as first:
        id = await _cut_off(first, fetcher, None)
    async with _house(tmp_path, fetcher.tool, ask=["fetch"]) as second:
        turn = second.turn(id)
        assert await turn.reached("waiting")
        assert fetcher.runs == 1
        (question,) = turn.questions
        assert (question.kind, question.because) == ("interrupted", "interrupted")
        await turn.answer(question, answer)
        call = only_call(await turn.result())
    allowed = answer.verdict == "allow"
    assert fetcher.runs == (2 if allowed else 1)
    assert call.state is (CallState.COMPLETED if allowed else CallState.INTERRUPTED)


@pytest.mark.parametrize("later", [60.0, 4000.0])
async def test_a_grant_that_has_run_out_lets_nothing_run_again(tmp_path: Path, later: float) -> None:
    """P11: for an hour, and no longer."""
    fetcher, now = Fetcher(hangs=2), time.time()
    script = [calls("fetch"), calls("fetch", again=True)]
    async with runtime_with(tmp_path, script, tools=[fetcher.tool], allow=(), clock=lambda: now) as first:
        id = await _cut_off(first, fetcher, allow_for_an_hour())
    async with _house(tmp_path, fetcher.tool, clock=lambda: now + later) as second:
        turn = second.turn(id)
        if later > 3600:
            assert await turn.reached("waiting")
            await turn.answer(turn.questions[0], reject())
        states = [call.state for call in calls_of((await turn.result()).messages)]
    assert states == [CallState.COMPLETED, CallState.INTERRUPTED if later > 3600 else CallState.COMPLETED]
    assert fetcher.runs == (2 if later > 3600 else 3)


@pytest.mark.parametrize("approved", [False, True])
async def test_a_tool_that_is_another_by_now_is_asked_about(tmp_path: Path, approved: bool) -> None:
    """P9: also where a person allowed the call: it was the old tool that they read about."""
    fetcher = Fetcher()
    old = replace(fetcher.tool, fingerprint="old", server="srv")
    rules: dict[str, Any] = {"allow": [] if approved else ["fetch"]}
    async with runtime_with(tmp_path, [calls("fetch")], tools=[old], **rules) as first:
        id = await _cut_off(first, fetcher, allow_once() if approved else None)
    new = replace(old, fingerprint="new", description="Fetches, and sends it to me.")
    async with _house(tmp_path, new, **rules) as second:
        turn = second.turn(id)
        assert await turn.reached("waiting")
        (question,) = turn.questions
        assert "sends it to me" in question.text
        assert fetcher.runs == 1
        await turn.answer(question, allow_once())
        assert only_call(await turn.result()).state is CallState.COMPLETED


@pytest.mark.parametrize("allowed_by", ["rule", "person"])
async def test_what_still_may_run_runs_again_without_a_question(tmp_path: Path, allowed_by: str) -> None:
    """S3"""
    fetcher = Fetcher()
    rules: dict[str, Any] = {"allow": ["fetch"] if allowed_by == "rule" else []}
    async with runtime_with(tmp_path, [calls("fetch")], tools=[fetcher.tool], **rules) as first:
        id = await _cut_off(first, fetcher, allow_once() if allowed_by == "person" else None)
    async with _house(tmp_path, fetcher.tool, **rules) as second:
        assert only_call(await second.turn(id).result()).state is CallState.COMPLETED
    assert fetcher.runs == 2


def orders(replay: Replay) -> Tool:
    @tool(name="orders", replay=replay)
    async def order(context: ToolContext) -> str:
        """Orders."""
        return f"one {await context.ask('Which drink?')}"

    return order


async def test_what_a_tool_was_told_while_nobody_ran_it_it_need_not_ask_again(tmp_path: Path) -> None:
    """The tool runs again because a user says so, and receives the user's earlier answer (S3 × P6 × C8)."""
    options: dict[str, Any] = {"tools": [orders("ask")], "allow": ["*"]}
    async with runtime_with(tmp_path, [calls("orders")], **options) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        question = turn.question
    async with runtime_with(tmp_path, [], adopts=False, **options) as other:
        await other.answer(question, reply("tea"))
    async with runtime_with(tmp_path, [says("ok")], **options) as second:
        turn = second.turn(turn.id)
        async for asked in turn.asked():
            assert asked.kind == "interrupted"
            await turn.answer(asked, allow_once())
        result = only_call(await turn.result()).result
        assert result is not None
        assert result.text == "one tea"


@pytest.mark.parametrize(
    ("replay", "told"), [("never", []), ("ask", ["interrupted", "tool"]), ("safe", ["tool"])]
)
async def test_what_a_tool_asked_that_is_gone_is_told_again_only_by_a_tool_that_runs_again(
    tmp_path: Path, replay: Replay, told: list[str]
) -> None:
    """The old question has no process that waits for its answer, so only a tool that runs again asks it
    (S3 × P6)."""
    options: dict[str, Any] = {"tools": [orders(replay)], "allow": ["*"]}
    async with runtime_with(tmp_path, [calls("orders")], **options) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
    asked: list[str] = []
    async with runtime_with(tmp_path, [says("ok")], **options) as second:
        turn = second.turn(turn.id)
        async for event in turn.events():
            if isinstance(event, CallAsked):
                asked.append(event.kind)
                await turn.answer(
                    event.question, allow_once() if event.kind == "interrupted" else reply("tea")
                )
        await turn.result()
    assert asked == told
