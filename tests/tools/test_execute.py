"""One call, run: C3, C6, C7, and the part of P6 that is the executor's."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dragoman import ToolContext, ToolFailed, tool
from dragoman.messages.message import CallState, ToolCall
from dragoman.tools.execute import Permit, execute
from dragoman.tools.tool import Tool
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE, eventually
from tests.runtimes import only_call, play
from tests.tools.bench import Bench, run, text_of


def raises(error: BaseException, *, in_thread: bool) -> Tool:
    def sync() -> str:
        raise error

    async def wait() -> str:
        raise error

    return tool(name="broken", description="Fails.")(sync if in_thread else wait)


# ── errors ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("in_thread", [True, False])
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("no luck"), "broken failed: ValueError: no luck"),
        (ValueError(), "broken failed: ValueError"),
        (ToolFailed("there is no such file"), "there is no such file"),
        (ToolFailed(), "broken failed"),
        (TimeoutError("the server is slow"), "broken failed: TimeoutError: the server is slow"),
        (ExceptionGroup("all", [ToolFailed("no such file")]), "no such file"),
        (StopIteration("x"), "broken failed: RuntimeError: "),
        (BaseException("panic"), "broken failed: BaseException: panic"),
        (BaseExceptionGroup("all", [BaseException("panic")]), "broken failed: BaseException: panic"),
        (SystemExit(1), "broken failed: it tried to end the program"),
        (OSError("caf\udce9"), "broken failed: OSError: caf?"),
    ],
)
async def test_an_exception_is_a_failed_result(error: BaseException, told: str, in_thread: bool) -> None:
    """C7"""
    outcome = await run(raises(error, in_thread=in_thread))
    assert outcome.state is CallState.FAILED
    assert outcome.result.text.startswith(told)


async def test_a_tool_that_cancels_itself_harms_only_itself(tmp_path: Path) -> None:
    """C7"""

    @tool
    async def gives_up() -> str:
        """Gives up."""
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(1)
        return "never"

    raising = [raises(asyncio.CancelledError(), in_thread=in_thread) for in_thread in (True, False)]
    for number, broken in enumerate([gives_up, *raising]):
        script = [calls(broken.name), says("Never mind.")]
        result = await play(tmp_path / str(number), script, tools=[broken])
        call = only_call(result)
        assert call.result is not None
        assert call.result.text == f"{broken.name} failed: it cancelled itself"
        assert result.text == "Never mind."


async def test_a_cancel_from_outside_stops_the_tool_and_is_no_result() -> None:
    """T6"""
    started, stopped = asyncio.Event(), asyncio.Event()

    @tool
    async def long() -> str:
        """Takes long."""
        started.set()
        try:
            await asyncio.sleep(30)
        finally:
            stopped.set()
        return "never"

    task = asyncio.create_task(run(long))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped.is_set()


async def test_a_generator_that_is_broken_off_cleans_up_before_its_result_is_there() -> None:
    """C7"""
    cleaned: list[str] = []

    @tool
    async def streams() -> AsyncIterator[Any]:
        """Yields what is no JSON."""
        try:
            yield object()
        finally:
            await asyncio.sleep(0)
            cleaned.append("async")

    @tool
    def steps() -> Iterator[Any]:
        """Yields what is no JSON."""
        try:
            yield object()
        finally:
            cleaned.append("sync")

    assert (await run(streams)).state is CallState.FAILED
    assert (await run(steps)).state is CallState.FAILED
    assert cleaned == ["async", "sync"]


# ── time ──────────────────────────────────────────────────────────────────────────────────────────


async def test_each_tool_has_a_timeout() -> None:
    """C7"""

    gate, over = threading.Event(), []

    async def sleep() -> str:
        await asyncio.sleep(PATIENCE)
        return "never"

    def block() -> str:
        gate.wait(PATIENCE)
        over.append("block")
        return "never"

    def steps() -> Iterator[int]:
        while True:
            yield 1
            time.sleep(0.05)

    for function in (sleep, block, steps):
        made = tool(name="slow", description="Slow.", timeout=0.05)(function)
        assert await text_of(made) == "slow failed: it took longer than 0.05 s"
    assert not over, "what cannot be stopped is not waited for"
    gate.set()


async def test_a_command_of_a_tool_has_a_timeout(tmp_path: Path) -> None:
    """C6"""

    @tool
    async def runs(context: ToolContext) -> str:
        """Run a command."""
        return str(await context.run(["sleep", "60"], timeout=0.2))

    outcome = await Bench(workspace=tmp_path).run(runs)
    assert outcome.state is CallState.FAILED
    assert outcome.result.text == "sleep took longer than 0.2 s and was ended"


async def test_a_tool_that_hangs_in_its_thread_holds_up_no_other() -> None:
    """C3, C7"""
    gate = threading.Event()

    @tool
    def hangs() -> str:
        """Hangs."""
        gate.wait(2 * PATIENCE)
        return "at last"

    @tool
    def quick() -> str:
        """Quick."""
        return "quick"

    hanging = [asyncio.create_task(run(hangs)) for _ in range(40)]
    assert await asyncio.wait_for(text_of(quick), PATIENCE) == "quick"
    gate.set()
    assert {outcome.result.text for outcome in await asyncio.gather(*hanging)} == {"at last"}


async def test_a_call_that_is_over_reports_nothing_more() -> None:
    """C7: its turn may have ended long ago."""
    going_on, gone_on = threading.Event(), threading.Event()

    @tool
    def late(context: ToolContext) -> str:
        """Too late."""
        context.progress("on time")
        going_on.wait(PATIENCE)
        context.progress("too late")
        gone_on.set()
        return "too late"

    bench = Bench()
    task = asyncio.create_task(bench.run(late))
    await eventually(lambda: bench.progress)
    await _cancelled(task)
    going_on.set()
    assert await asyncio.to_thread(gone_on.wait, PATIENCE)
    assert bench.progress == ["on time"]


@pytest.mark.parametrize("in_thread", [True, False])
async def test_the_time_a_person_takes_is_not_the_tools(in_thread: bool) -> None:
    """C7, C8"""

    async def asks(context: ToolContext) -> str:
        return str(await context.ask("Well?"))

    def asks_from_a_thread(context: ToolContext) -> str:
        return str(context.ask("Well?"))

    made = tool(name="asks", description="Asks.", timeout=1)(asks_from_a_thread if in_thread else asks)
    outcome = await Bench(answers=["well"], thinks_for=1.2).run(made)
    assert outcome.result.text == "well"


async def test_after_an_answer_the_clock_goes_on_where_it_stood() -> None:
    """C7, C8"""

    @tool(timeout=0.1)
    async def dawdles(context: ToolContext) -> str:
        """Asks, then dawdles."""
        await context.ask("Well?")
        await asyncio.sleep(30)
        return "never"

    outcome = await Bench(answers=["well"], thinks_for=0.05).run(dawdles)
    assert outcome.result.text == "dawdles failed: it took longer than 0.1 s"


async def test_a_question_ends_with_the_call_that_asked_it() -> None:
    """A thread that waits for an answer is released (T6, C8)."""
    bench, ended = Bench(thinks_for=PATIENCE), threading.Event()

    @tool
    def asks(context: ToolContext) -> str:
        """Asks for ever."""
        try:
            return str(context.ask("Well?"))
        finally:
            ended.set()

    task = asyncio.create_task(bench.run(asks))
    await eventually(lambda: bench.questions)
    await _cancelled(task)
    assert await asyncio.to_thread(ended.wait, PATIENCE)


async def test_a_call_that_is_over_asks_nothing_more(tmp_path: Path) -> None:
    """A thread that asks too late is released, too, and starts no program (T6, C8)."""
    bench, started, go_on, ended = Bench(), threading.Event(), threading.Event(), threading.Event()
    bench.workspace = tmp_path

    @tool
    def asks(context: ToolContext) -> str:
        """Asks late."""
        started.set()
        go_on.wait(PATIENCE)
        with suppress(CancelledError):
            context.ask("Well?")
        try:
            return str(context.run(["touch", "late"]))
        finally:
            ended.set()

    task = asyncio.create_task(bench.run(asks))
    await asyncio.to_thread(started.wait, PATIENCE)
    await _cancelled(task)
    go_on.set()
    assert await asyncio.to_thread(ended.wait, PATIENCE)
    assert bench.questions == []
    assert not (tmp_path / "late").exists()


async def _cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# ── leave, and what a tool finds around it ────────────────────────────────────────────────────────


async def test_a_permit_for_other_arguments_is_none() -> None:
    """The executor itself checks, independently of the calling flow (P6)."""
    ran: list[int] = []

    @tool
    def delete(n: int) -> str:
        """Delete."""
        ran.append(n)
        return "deleted"

    shown = ToolCall("call_1", "delete", {"n": 1})
    swapped = ToolCall("call_1", "delete", {"n": 2})
    outcome = await execute(delete, swapped, Permit(shown.hash, "person"), Bench().context())
    assert outcome.state is CallState.FAILED
    assert "it was permitted with other arguments" in outcome.result.text
    assert ran == []
    other_tool = ToolCall("call_1", "wipe", {"n": 1})
    assert (
        await execute(delete, other_tool, Permit(shown.hash, "person"), Bench().context())
    ).state == "failed"
    assert (
        await execute(delete, shown, Permit(shown.hash, "person"), Bench().context())
    ).state == "completed"
    assert ran == [1]


async def test_arguments_that_do_not_fit_never_reach_the_tool() -> None:
    """C4"""

    @tool
    def delete(n: int) -> str:
        """Delete."""
        raise AssertionError("it ran")

    assert "n: Input should be a valid integer" in await text_of(delete, n="1")


VOICE: contextvars.ContextVar[str] = contextvars.ContextVar("voice", default="silence")


@pytest.mark.parametrize("in_thread", [True, False])
async def test_a_tool_sees_the_context_variables_of_its_caller_and_keeps_its_own(in_thread: bool) -> None:
    """C6"""

    def sync() -> str:
        heard = VOICE.get()
        VOICE.set("mine")
        return heard

    async def wait() -> str:
        return sync()

    VOICE.set("yours")
    made = tool(name="hear", description="Hears.")(sync if in_thread else wait)
    assert await text_of(made) == "yours"
    assert VOICE.get() == "yours"
