"""P5: a person looks at a result before the model does."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import (
    release,
    tool,
    withhold,
)
from dragoman.messages.parts import CallState, ToolResult
from dragoman.messages.questions import Answer
from dragoman.wire.scripted import calls, says
from tests.runtimes import calls_of, model_of, only_call, runtime_with

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@tool(review="always")
def report() -> str:
    """Report."""
    ran.append("report")
    return "salary: 5000"


@tool(review="on_error")
def risky(fail: bool) -> str:
    """May fail."""
    if fail:
        raise ValueError("password hunter2 is wrong")
    return "fine"


async def _review(tmp_path: Path, answer: Answer) -> tuple[ToolResult, CallState, str]:
    async with runtime_with(tmp_path, [calls("report"), says("ok")], tools=[report]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        (question,) = turn.questions
        assert question.kind == "review"
        assert question.result is not None
        assert question.result.text == "salary: 5000"
        await turn.answer(question, answer)
        call = only_call(await turn.result())
        assert call.result is not None
        return call.result, call.state, repr(model_of(runtime).requests[-1])


async def test_a_result_may_be_passed_on(tmp_path: Path) -> None:
    """P5"""
    result, state, sent = await _review(tmp_path, release())
    assert (result.text, state) == ("salary: 5000", CallState.COMPLETED)
    assert "salary: 5000" in sent


async def test_a_result_may_be_edited(tmp_path: Path) -> None:
    """P5"""
    result, state, sent = await _review(tmp_path, release("salary: [removed]"))
    assert (result.text, state) == ("salary: [removed]", CallState.COMPLETED)
    assert result.note == "A person edited this result."
    assert "5000" not in sent


async def test_a_result_may_be_withheld(tmp_path: Path) -> None:
    """P5"""
    result, state, sent = await _review(tmp_path, withhold("not for you"))
    assert state is CallState.WITHHELD
    assert result.text.endswith("They said: not for you")
    assert "5000" not in sent


async def test_only_failures_are_reviewed_where_the_tool_says_so(tmp_path: Path) -> None:
    """P5"""
    script = [calls("risky", fail=False) + calls("risky", fail=True), says("ok")]
    async with runtime_with(tmp_path, script, tools=[risky]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        (question,) = turn.questions
        assert question.arguments == {"fail": True}
        await turn.answer(question, release("it failed"))
        fine, bad = calls_of((await turn.result()).messages)
    assert (fine.state, bad.state) == (CallState.COMPLETED, CallState.FAILED)


async def test_a_review_survives_a_restart_and_the_tool_does_not_run_again(tmp_path: Path) -> None:
    """P5, P6, S3"""
    async with runtime_with(tmp_path, [calls("report")], tools=[report]) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        question = turn.question
    async with runtime_with(tmp_path, [says("ok")], tools=[report]) as second:
        await second.answer(question, release())
        call = only_call(await second.turn(turn.id).result())
    assert call.result == ToolResult("salary: 5000")
    assert ran == ["report"]
