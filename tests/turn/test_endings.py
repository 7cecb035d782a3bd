"""A turn ends once, however often and from wherever a caller cancels it (T6, H2, H7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman import Plugin, Runtime, ToolContext, TurnView, reply, tool
from dragoman.errors import TurnInterrupted
from dragoman.messages.fold import Appending
from dragoman.messages.message import Message, ToolCall, ToolResult
from dragoman.messages.request import Request
from dragoman.turn.api.turn_handle import TurnHandle, TurnResult
from dragoman.turn.facts import TurnCancelled, TurnCompleted, TurnFailed
from dragoman.turn.plugin import Appender, PlannedCall, PlannedCalls
from dragoman.wire.scripted import calls, fails, says
from tests.patience import PATIENCE
from tests.runtimes import model_of, runtime_with

_LEFT_BEHIND = "does not stop; continuing without it"


@pytest.fixture(autouse=True)
def left_behind(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """Return the cleanups that did not stop and were abandoned: none, unless the test expects them."""
    expected: list[str] = []
    yield expected
    messages = [record.message for record in caplog.get_records("call")]
    assert [message for message in messages if _LEFT_BEHIND in message] == expected


class Counts(Plugin):
    """Counts starts, ends and cleanups of each turn."""

    def __init__(self) -> None:
        self.starts: list[str] = []
        self.ends: list[str] = []
        self.cleaned: list[str] = []

    async def on_turn_start(self, turn: TurnView) -> AsyncIterator[None]:
        self.starts.append(turn.id)
        yield
        self.cleaned.append(turn.id)

    async def on_turn_end(self, turn: TurnView) -> None:
        await asyncio.sleep(0)
        self.ends.append(turn.id)


class Hangs(Plugin):
    """One of its hooks never comes to an end."""

    def __init__(self, hook: str) -> None:
        self.hook = hook
        self.reached = asyncio.Event()

    async def _here(self, hook: str) -> None:
        if hook == self.hook:
            self.reached.set()
            await asyncio.Event().wait()

    async def on_turn_start(self, turn: TurnView) -> Callable[[], Any]:
        await self._here("on_turn_start")
        return lambda: self._here("cleanup")

    async def system_prompt(self, text: str, turn: TurnView) -> str:
        await self._here("system_prompt")
        return text

    async def on_before_request(self, request: Request, turn: TurnView) -> None:
        await self._here("on_before_request")

    async def on_message_append(self, appending: Appending, turn: TurnView) -> None:
        await self._here("on_message_append")

    async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
        await self._here("on_after_request")

    async def before_calls(self, calls: PlannedCalls, turn: TurnView) -> None:
        await self._here("before_calls")

    async def before_tool(self, call: PlannedCall, turn: TurnView) -> None:
        await self._here("before_tool")

    async def after_tool(self, call: ToolCall, result: ToolResult, turn: TurnView) -> ToolResult | None:
        await self._here("after_tool")
        return None

    async def on_turn_end(self, turn: TurnView) -> None:
        await self._here("on_turn_end")

    async def on_error(self, error: Exception, turn: TurnView) -> bool:
        await self._here("on_error")
        return False


@tool(cancellable=True)
async def look() -> str:
    """Look."""
    await asyncio.sleep(0)
    return "seen"


HOOKS = [
    "on_turn_start",
    "system_prompt",
    "on_before_request",
    "on_message_append",
    "on_after_request",
    "before_calls",
    "before_tool",
    "after_tool",
    "on_turn_end",
    "cleanup",
]


async def ended_once(runtime: Runtime, turn: TurnHandle) -> None:
    facts = [type(fact) for fact in await turn.facts()]
    assert sum(facts.count(last) for last in (TurnCancelled, TurnCompleted, TurnFailed)) == 1
    row = await runtime.store.turn(turn.id)
    assert (row.live, await runtime.store.signals(turn.id)) == (False, [])
    again = await runtime.conversation(row.conversation)
    names = {plugin.name for plugin in runtime.services.plugins}
    other = await again.send("is the branch free?", disable=sorted(names & {"hangs", "stubborn"}))
    assert await other.cancel() in (True, False)


@pytest.mark.parametrize("hook", HOOKS)
async def test_a_cancel_ends_a_turn_in_which_a_hook_hangs(tmp_path: Path, hook: str) -> None:
    """T6, H2, H7: soon, as cancelled, with one `on_turn_end` and the cleanups of the others."""
    counts, hangs = Counts(), Hangs(hook)
    script = [says("a ") + calls("look"), says("b"), says("c")]
    async with runtime_with(tmp_path, script, tools=[look], plugins=[counts, hangs]) as runtime:
        turn = await runtime.send("go")
        await asyncio.wait_for(hangs.reached.wait(), PATIENCE)
        assert await turn.cancel("enough")
        await turn.cancel("enough, I said")
        result = await asyncio.wait_for(turn.result(), PATIENCE)
        assert result.state == "cancelled"
        assert (counts.ends, counts.cleaned) == ([turn.id], [turn.id])
        await ended_once(runtime, turn)


async def test_a_cancel_ends_a_failing_turn_as_what_it_was(tmp_path: Path) -> None:
    """The error came first, so the caller receives the error and not a cancellation (T6, T8)."""
    hangs = Hangs("on_error")
    async with runtime_with(tmp_path, [fails(RuntimeError("boom")), says("x")], plugins=[hangs]) as runtime:
        turn = await runtime.send("go")
        await asyncio.wait_for(hangs.reached.wait(), PATIENCE)
        assert await turn.cancel()
        with pytest.raises(RuntimeError, match="boom"):
            await asyncio.wait_for(turn.result(), PATIENCE)
        await ended_once(runtime, turn)


async def test_a_cancel_ends_a_turn_that_waits_for_a_models_title(tmp_path: Path) -> None:
    """T6, T9"""
    script = [says("the answer"), says("a title", waits=60.0), says("x")]
    async with runtime_with(tmp_path, script, titles_by_model=True) as runtime:
        turn = await runtime.send("go")
        while len(model_of(runtime).requests) < 2:  # noqa: ASYNC110 - the model has no event to wait for
            await asyncio.sleep(0.01)
        assert await turn.cancel()
        result = await asyncio.wait_for(turn.result(), PATIENCE)
        assert (result.state, result.text) == ("cancelled", "the answer")
        await ended_once(runtime, turn)


@pytest.mark.slow
async def test_what_will_not_stop_is_left_behind(tmp_path: Path, left_behind: list[str]) -> None:
    """T6: also a hook that swallows its cancellation."""

    class Stubborn(Plugin):
        async def on_before_request(self, request: Request, turn: TurnView) -> None:
            reached.set()
            while not released.is_set():
                try:
                    await released.wait()
                except asyncio.CancelledError:
                    pass

    reached, released = asyncio.Event(), asyncio.Event()
    async with runtime_with(tmp_path, [says("x"), says("y")], plugins=[Stubborn()]) as runtime:
        turn = await runtime.send("go")
        await asyncio.wait_for(reached.wait(), PATIENCE)
        assert await turn.cancel()
        assert (await asyncio.wait_for(turn.result(), PATIENCE)).state == "cancelled"
        left_behind.append(f"turn {turn.id}: the flow of the turn {_LEFT_BEHIND}")
        released.set()
        await ended_once(runtime, turn)


@pytest.mark.parametrize("ticks", [*range(40), *range(40, 200, 8)])
async def test_a_cancel_at_any_moment_ends_a_turn_once(tmp_path: Path, ticks: int) -> None:
    """T6, H7: after so many turns of the event loop, twice."""
    counts = Counts()
    script = [says("a ") + calls("look"), says("b") + calls("look"), says("c"), says("d"), says("e")]
    async with runtime_with(
        tmp_path, script, tools=[look], plugins=[counts], titles_by_model=True
    ) as runtime:
        turn = await runtime.send("go")
        for _ in range(ticks):
            await asyncio.sleep(0)
        heard = await turn.cancel("enough")
        await turn.cancel("once more")
        result = await asyncio.wait_for(turn.result(), PATIENCE)
        assert result.state in ({"cancelled", "completed"} if heard else {"completed"})
        assert counts.ends == [turn.id]
        assert counts.cleaned == counts.starts
        await ended_once(runtime, turn)


@pytest.mark.parametrize("adopts", [True, False])
async def test_a_cancel_after_a_restart_ends_a_waiting_turn(tmp_path: Path, adopts: bool) -> None:
    """T6, S3: by the process that cancels, or by the one that opens the store after it."""
    counts = Counts()
    script = [calls("look"), says("x")]
    async with runtime_with(tmp_path, script, tools=[look], allow=()) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
    options: dict[str, Any] = {"tools": [look], "allow": (), "plugins": [counts]}
    async with runtime_with(tmp_path, [says("x")], adopts=adopts, **options) as second:
        assert await second.turn(turn.id).cancel("enough")
        if adopts:
            await asyncio.wait_for(second.turn(turn.id).result(), PATIENCE)
    async with runtime_with(tmp_path, [says("x")], **options) as third:
        result = await asyncio.wait_for(third.turn(turn.id).result(), PATIENCE)
        assert result.state == "cancelled"
        assert counts.ends == [turn.id]
        assert await third.questions() == []
        await ended_once(third, third.turn(turn.id))


async def test_a_cancel_from_another_process_reaches_a_running_turn(tmp_path: Path) -> None:
    """T6"""
    reached = asyncio.Event()

    @tool(cancellable=True)
    async def sleep() -> str:
        """Sleep."""
        reached.set()
        await asyncio.Event().wait()
        return ""

    async with runtime_with(tmp_path, [calls("sleep"), says("x")], tools=[sleep]) as owner:
        turn = await owner.send("go")
        await asyncio.wait_for(reached.wait(), PATIENCE)
        async with runtime_with(tmp_path, [], adopts=False) as other:
            assert await other.turn(turn.id).cancel()
        assert (await asyncio.wait_for(turn.result(), PATIENCE)).state == "cancelled"
        await ended_once(owner, turn)


async def test_a_program_that_stops_does_not_end_its_turns(tmp_path: Path) -> None:
    """A caller that waits for the result receives an error, and no task of the caller is cancelled (S3)."""
    reached = asyncio.Event()

    @tool(replay="safe", cancellable=True)
    async def sleep() -> str:
        """Sleep."""
        if not reached.is_set():
            reached.set()
            await asyncio.Event().wait()
        return "slept"

    waiting: asyncio.Task[TurnResult]
    async with runtime_with(tmp_path, [calls("sleep"), says("x")], tools=[sleep]) as first:
        turn = await first.send("go")
        waiting = asyncio.create_task(turn.result())
        completed = asyncio.create_task(turn.reached("completed"))
        await asyncio.wait_for(reached.wait(), PATIENCE)
    for either in (waiting, completed):
        with pytest.raises(TurnInterrupted, match="resumes when a process opens the store again"):
            await either
    async with runtime_with(tmp_path, [says("done")], tools=[sleep]) as second:
        assert (await second.turn(turn.id).result()).text == "done"


async def test_a_result_stays_what_it_was_when_the_conversation_goes_on(tmp_path: Path) -> None:
    """A result stays the same because the next turn has a separate path (T3)."""
    async with runtime_with(tmp_path, [says("first"), says("second")]) as runtime:
        chat = await runtime.conversation()
        first = await chat.send("a")
        before = await first.result()
        await (await chat.send("b")).result()
        assert await first.result() == before
        assert (await first.snapshot()).messages == before.messages
        assert await chat.turn(first.id).result() == before


# ── questions live as long as their call ──────────────────────────────────────────────────────────


async def test_a_question_nobody_waits_for_any_more_is_closed(tmp_path: Path) -> None:
    """`asyncio.wait_for` around an ask closes the question, and the tool can ask the same or another one
    (C8)."""

    @tool
    async def ask_fast(context: ToolContext) -> str:
        """Ask."""
        answers: list[str] = []
        for text in ("once?", "once?", "twice?"):
            asking = asyncio.ensure_future(context.ask(text))
            while len(await runtime.store.questions_of(context.turn)) == len(answers):  # noqa: ASYNC110 - by asking
                await asyncio.sleep(0.01)
            try:
                answers.append(str(await asyncio.wait_for(asking, 0.01)))
            except TimeoutError:
                answers.append("none")
        return " ".join(answers)

    async with runtime_with(tmp_path, [calls("ask_fast"), says("done")], tools=[ask_fast]) as runtime:
        turn = await runtime.send("go")
        result = await turn.result()
        assert [call.result.text for message in result.messages for call in message.calls if call.result] == [
            "none none none"
        ]
        assert await runtime.questions() == []
        questions = await runtime.store.questions_of(turn.id)
        assert len(questions) == 3
        assert {question.closed for question in questions} == {"the tool did not wait for the answer"}


async def test_a_tool_may_ask_several_things_at_once(tmp_path: Path) -> None:
    """A tool receives several answers in any order, and its time limit pauses while it waits (C8)."""

    @tool(timeout=1.0)
    async def survey(context: ToolContext) -> str:
        """Ask."""
        return " ".join(map(str, await asyncio.gather(*(context.ask(text) for text in ("a", "b", "c")))))

    async with runtime_with(tmp_path, [calls("survey"), says("done")], tools=[survey]) as runtime:
        turn = await runtime.send("go")
        asked: dict[str, str] = {}
        async for event in turn.events():
            if event.type == "call.asked":
                asked[event.text] = event.question
            if len(asked) == 3:
                break
        assert (await turn.snapshot()).state == "waiting"
        for text in ("c", "a", "b"):
            await asyncio.sleep(0.4)
            await turn.answer(asked[text], reply(text.upper()))
        result = await turn.result()
    texts = [call.result.text for message in result.messages for call in message.calls if call.result]
    assert texts == ["A B C"]
