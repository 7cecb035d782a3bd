"""What becomes of a call between the model's reply and its tool: plugins, edits, waits and refusals."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import Plugin, ProviderError, Runtime, ScriptedModel, TurnView, allow_once, tool
from dragoman.messages.events import Notice
from dragoman.messages.message import CallState
from dragoman.turn.facts import FACT, TurnCompleted, renewed
from dragoman.turn.plugin import PlannedCall
from dragoman.turn.steps.calls import NOT_RUN
from dragoman.turn.steps.stream import MOST_CALLS
from dragoman.wire.scripted import Line, ScriptedCall, calls, fails, says
from tests.runtimes import add, calls_of, events_of, model_of, only_call, play, runtime_with

RAN: list[str] = []


@tool(pattern="path")
def delete(path: str) -> str:
    """Delete a file."""
    RAN.append(path)
    return f"deleted {path}"


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


class Plans(Plugin):
    """Does this to each call."""

    def __init__(self, plan: Callable[[PlannedCall], None]) -> None:
        self.plan = plan

    async def before_tool(self, call: PlannedCall, turn: TurnView) -> None:
        self.plan(call)


@pytest.mark.parametrize(
    ("plan", "state", "text", "limit"),
    [
        (lambda call: call.skip("enough"), CallState.SKIPPED, "enough", "enough"),
        (lambda call: call.refuse("not that"), CallState.REJECTED, "not that", ""),
        (lambda call: call.arguments.update(path="b"), CallState.COMPLETED, "deleted b", ""),
        (lambda call: call.arguments.update(path=5), CallState.FAILED, "path: Input should be", ""),
    ],
)
async def test_a_plugin_decides_about_a_call(
    tmp_path: Path, plan: Callable[[PlannedCall], None], state: CallState, text: str, limit: str
) -> None:
    """H5"""
    script = [calls("delete", path="a"), says("ok")]
    result = await play(tmp_path, script, tools=[delete], plugins=[Plans(plan)])
    call = only_call(result)
    assert call.result is not None
    assert (call.state, result.limit, result.text) == (state, limit, "ok")
    assert text in call.result.text
    assert len(RAN) == (state is CallState.COMPLETED)


@pytest.mark.parametrize(("path", "runs"), [("c", ["c"]), (5, [])])
async def test_what_a_plugin_makes_of_edited_arguments_is_asked_about(
    tmp_path: Path, path: Any, runs: list[str]
) -> None:
    """The user sees them before the call runs, or it fails (P3 × H5)."""

    def plan(call: PlannedCall) -> None:
        if call.arguments == {"path": "b"}:
            call.arguments = {"path": path}

    script = [calls("delete", path="a"), says("ok")]
    async with runtime_with(tmp_path, script, tools=[delete], allow=(), plugins=[Plans(plan)]) as runtime:
        turn = await runtime.send("go")
        asked = []
        async for question in turn.asked():
            asked.append(question.arguments)
            await turn.answer(question, allow_once({"path": "b"} if len(asked) == 1 else None))
        call = only_call(await turn.result())
    assert asked == [{"path": "a"}, *({"path": one} for one in runs)]
    assert (RAN, call.state) == (runs, CallState.COMPLETED if runs else CallState.FAILED)


async def test_a_call_whose_patterns_cannot_be_told_does_not_run(tmp_path: Path) -> None:
    """P1"""

    def fails_here(_: object) -> list[str]:
        raise OSError("no such disk")

    @tool(pattern=fails_here)
    def wipe(disk: str) -> str:
        """Wipe a disk."""
        raise AssertionError("it does not run")

    call = only_call(await play(tmp_path, [calls("wipe", disk="a"), says("ok")], tools=[wipe]))
    assert call.state is CallState.REJECTED
    assert "cannot be told (no such disk)" in str(call.result)


async def test_calls_that_were_allowed_run_one_after_another(tmp_path: Path) -> None:
    """An allowed call that waited for another one needs no second answer (C3 × P3)."""
    gate = asyncio.Event()

    @tool(sequential=True)
    async def alone(n: int) -> str:
        """Wait alone."""
        await gate.wait()
        return str(n)

    script = [calls("alone", n=1) + calls("alone", n=2), says("ok")]
    async with runtime_with(tmp_path, script, tools=[alone], allow=()) as runtime:
        turn, asked = await runtime.send("go"), 0
        async for question in turn.asked():
            asked += 1
            await turn.answer(question, allow_once())
            if asked == 2:
                gate.set()
        made = calls_of((await turn.result()).messages)
    assert [call.result.text for call in made if call.result] == ["1", "2"]
    assert asked == 2


@pytest.mark.parametrize("finish", ["refusal", "filter"])
async def test_calls_of_a_refused_reply_do_not_run(tmp_path: Path, finish: str) -> None:
    """T8"""
    line = Line("no", calls=(ScriptedCall("delete", {"path": "a"}),), finish=finish)
    call = only_call(await play(tmp_path, [line], tools=[delete]))
    assert call.result is not None
    assert (RAN, call.state, call.result.text) == ([], CallState.CANCELLED, NOT_RUN)


async def test_a_reply_with_too_many_calls_fails_the_turn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No call of it runs, and the log names the kind of the error (C2, O2)."""
    caplog.set_level(logging.INFO, "dragoman.turn")
    line = Line(calls=(ScriptedCall("delete", {"path": "a"}),) * (MOST_CALLS + 1))
    with pytest.raises(ProviderError) as raised:
        await play(tmp_path, [line], tools=[delete])
    assert (raised.value.kind, RAN) == ("too_many_calls", [])
    (ended,) = (vars(record) for record in caplog.records if hasattr(record, "error_kind"))
    assert (ended["state"], ended["error_kind"], ended["limit"]) == ("error", "too_many_calls", None)


async def test_a_tool_may_be_offered_in_one_request_only(tmp_path: Path) -> None:
    """H3"""

    class Brings(Plugin):
        async def on_turn_start(self, turn: TurnView) -> None:
            turn.add_tool(add)
            turn.add_tool(delete, once=True)

    script = [calls("delete", path="a"), says("ok")]
    async with runtime_with(tmp_path, script, plugins=[Brings()]) as runtime:
        await (await runtime.send("go")).result()
        offered = [[spec.name for spec in request.tools] for request in model_of(runtime).requests]
    assert offered == [["add", "delete"], ["add"]]


async def test_a_step_is_asked_again_three_times_at_most(tmp_path: Path) -> None:
    """H6: however often a plugin says that it removed the cause."""

    class Repairs(Plugin):
        async def on_error(self, error: Exception, turn: TurnView) -> bool:
            return True

    async with runtime_with(tmp_path, lambda _: fails("down"), plugins=[Repairs()]) as runtime:
        turn = await runtime.send("go")
        with pytest.raises(ProviderError, match="down"):
            await turn.result()
        assert len(model_of(runtime).requests) == 4


@pytest.mark.parametrize(("error", "told"), [(OSError("no disk"), "no disk"), (OSError(), "OSError")])
async def test_an_error_after_a_cancel_is_told_and_changes_nothing(
    tmp_path: Path, error: Exception, told: str
) -> None:
    """T6 × H7"""

    class Breaks(Plugin):
        async def on_turn_end(self, turn: TurnView) -> None:
            raise error

    async with runtime_with(tmp_path, [says("done " * 40, waits=0.02)], plugins=[Breaks()]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("streaming")
        await turn.cancel()
        notices = [event for event in await events_of(turn) if isinstance(event, Notice)]
        assert (await turn.result()).state == "cancelled"
    assert [one.text for one in notices if one.kind == "error_after_cancel"] == [told]


async def test_a_turn_that_goes_on_keeps_its_model(tmp_path: Path) -> None:
    """Another model is the default by then (T14 × S3)."""

    def runtime(default: str, script: list[Line]) -> Runtime:
        models = {name: ScriptedModel(script, name=name) for name in ("one", "two")}
        return Runtime(tmp_path / "chat.db", model=lambda name: models[name or default], tools=[add])

    async with runtime("one", [calls("add", a=1, b=2)]) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        question = turn.question
    async with runtime("two", [says("3")]) as second:
        await second.answer(question, allow_once())
        result = await second.turn(turn.id).result()
    assert [message.model for message in result.messages if message.role == "assistant"] == ["one", "one"]


def test_only_the_start_of_a_queued_turn_is_renewed() -> None:
    fact = FACT.dump(TurnCompleted(at=1.0))
    assert renewed(fact, {"mode": "off"}) == fact
