"""Tasks end with the turn that gave them, count toward its cost, and meet other rules."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Plugin, Runtime, ScriptedModel, ToolContext, TurnView, allow_once, tool, withhold
from dragoman.errors import TurnQuarantined
from dragoman.messages.message import CallState, Message, Text
from dragoman.messages.questions import Question, Rule
from dragoman.messages.request import Request, RequestMessage
from dragoman.messages.usage import Usage
from dragoman.turn.plugin import Appender
from dragoman.wire.scripted import Line, calls, says
from tests.patience import PATIENCE
from tests.runtimes import calls_of, model_of, only_call, runtime_with
from tests.turn.test_kept_settings import damage

CLERK = Agent(name="clerk", description="writes notes")


@tool
def note(text: str) -> str:
    """Write a note."""
    return f"noted {text}"


def gives_a_task(request: Request) -> Line:
    """Have the outer turn give a task whose turn needs approval."""
    if "inner" in _said(request):
        return calls("note", text="x") if not _answered(request) else says("noted")
    return calls("task", agent="clerk", request="inner") if not _answered(request) else says("all done")


def _said(request: Request) -> list[str]:
    return [part.text for one in request.messages for part in one.parts if isinstance(part, Text)]


def _answered(request: Request) -> int:
    return sum(one.role == "assistant" for one in request.messages)


def house(folder: Path, script: Callable[[Request], Line] = gives_a_task, **options: Any) -> Runtime:
    return runtime_with(folder, script, tools=[note], agents=[CLERK], **{"allow": ["task"], **options})


async def _question(runtime: Runtime) -> Question:
    """Return the question of the inner turn."""
    async with asyncio.timeout(PATIENCE):
        while not (open := await runtime.questions()):  # noqa: ASYNC110 - the inner turn runs by itself
            await asyncio.sleep(0.01)
    return open[0]


async def _nothing_is_left(runtime: Runtime, inner: str) -> None:
    assert await runtime.turn(inner).reached("cancelled")
    assert await runtime.questions() == []
    assert await runtime.turns() == []


async def test_what_a_task_of_a_task_asks_is_asked_by_the_turn_at_the_top(tmp_path: Path) -> None:
    """A client that follows the top turn need not know how deep the tasks go. A progress report of any
    other tool does not count as a question (P6 × docs/guide/agents.md)."""

    @tool
    def reports(context: ToolContext) -> str:
        """Report."""
        context.progress({"asks": "Who knows?"})
        return "reported"

    def script(request: Request) -> Line:
        if _answered(request):
            return says("done")
        said = _said(request)[0]
        work = calls("note", text="x") + calls("reports")
        return work if said == "ggg" else calls("task", agent="clerk", request=f"{said}g")

    options: dict[str, Any] = {"tools": [note, reports], "allow": ["task", "reports"]}
    async with runtime_with(tmp_path, script, agents=[CLERK], **options) as runtime:
        turn = await runtime.send("g")
        asked = []
        async with asyncio.timeout(PATIENCE):
            async for question in turn.asked():
                asked.append(question.tool)
                await turn.answer(question, allow_once())
        assert (await turn.result()).text == "done"
    assert asked == ["note"]


async def test_a_turn_that_fails_ends_its_tasks(tmp_path: Path) -> None:
    """A failing turn ends its tasks, because nothing waits for them (T8 × docs/guide/agents.md)."""
    asked = asyncio.Event()

    class Fails(Plugin):
        async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
            if turn.conversation.parent is None:
                await asked.wait()
                raise RuntimeError("no more")

    async with house(tmp_path, plugins=[Fails()]) as runtime:
        turn = await runtime.send("outer")
        inner = (await _question(runtime)).turn
        asked.set()
        with pytest.raises(RuntimeError, match="no more"):
            await turn.result()
        await _nothing_is_left(runtime, inner)


async def test_a_cancel_that_is_read_after_a_restart_ends_the_tasks(tmp_path: Path) -> None:
    """The call that gave the task does not run again only to be stopped (T6 × S3)."""
    async with house(tmp_path) as first:
        outer = (await first.send("outer")).id
        inner = (await _question(first)).turn
    async with house(tmp_path, adopts=False) as looks:
        assert await looks.turn(outer).cancel()
    async with house(tmp_path) as second:
        assert await second.turn(outer).reached("cancelled")
        await _nothing_is_left(second, inner)


@pytest.mark.parametrize("damaged", [False, True], ids=["another model", "damaged"])
async def test_a_cancel_of_a_turn_that_cannot_go_on_here_ends_its_tasks(
    tmp_path: Path, damaged: bool
) -> None:
    """A cancel ends the tasks, whichever parts of the turn are missing or unreadable (T6 × T14)."""
    script = ScriptedModel(gives_a_task, name="old/model")
    tools: dict[str, Any] = {"tools": [note], "agents": [CLERK], "allow": ["task"]}
    async with Runtime(tmp_path / "chat.db", model=script, **tools) as first:
        outer = (await first.send("outer")).id
        inner = (await _question(first)).turn
    if damaged:
        damage(tmp_path / "chat.db", outer)
    name = "old/model" if damaged else "new/model"
    async with Runtime(tmp_path / "chat.db", model=ScriptedModel([], name=name), **tools) as second:
        assert await second.turn(outer).cancel("enough")
        async with asyncio.timeout(PATIENCE):
            assert await second.turn(outer).reached("cancelled")
            await _nothing_is_left(second, inner)


async def test_a_turn_that_cannot_go_on_here_ends_as_any_other_that_is_cancelled(tmp_path: Path) -> None:
    """Every call gets a result, and a client that waits for the turn sees its end (T6 × T14 × C2)."""
    script = ScriptedModel([calls("note", text="x")], name="old/model")
    async with Runtime(tmp_path / "chat.db", model=script, tools=[note]) as first:
        id = (await first.send("go")).id
        assert await first.turn(id).reached("waiting")
    new = ScriptedModel([], name="new/model")
    async with Runtime(tmp_path / "chat.db", model=new, tools=[note]) as second:
        turn = second.turn(id)
        with pytest.raises(TurnQuarantined):
            await turn.result()
        assert await turn.cancel()
        result = await turn.result()
        assert (result.state, calls_of(result.messages)[0].state) == ("cancelled", CallState.CANCELLED)
        assert (await turn.turn()).state == "cancelled"
        assert not await turn.cancel()


async def test_what_a_person_says_in_the_conversation_of_a_task_goes_on(tmp_path: Path) -> None:
    """T6: it is theirs, and not the turn's that gave the task."""
    async with house(tmp_path) as runtime:
        outer = await runtime.send("outer")
        first = await _question(runtime)
        own = await (await runtime.conversation(first.conversation)).send("and mine", queue=True)
        await outer.cancel()
        await outer.result()
        assert await runtime.turn(first.turn).reached("cancelled")
        assert (await own.result()).text == "noted"


async def test_the_conversation_of_a_task_goes_on_after_an_import(tmp_path: Path) -> None:
    """No turn of the import gave the task. Its conversation has the permissions of the settings, as before
    (S1)."""
    free = replace(CLERK, rules=(Rule("note", "*", "allow"),))
    async with runtime_with(
        tmp_path, gives_a_task, tools=[note], agents=[free], allow=["task"], deny=["note"]
    ) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("outer")).result()
        copy = await runtime.import_conversation(await runtime.export(chat.id))
        for whole in (chat.id, copy.id):
            inner = await runtime.conversation((await runtime.store.within(whole))[0])
            first, *_ = await inner.messages()
            result = await (await inner.rerun(first.id, agent="clerk")).result()
            assert result.text == "noted"
            assert only_call(result).state is CallState.REJECTED


# ── what they cost ────────────────────────────────────────────────────────────────────────────────


def gives_tasks_for_ever(inner: Line) -> Callable[[Request], Line]:
    def line(request: Request) -> Line:
        if not request.tools:
            return says("enough")
        if any(text.startswith("inner") for text in _said(request)):
            return replace(inner, usage=Usage(5000, 5000))
        return calls("task", agent="clerk", request=f"inner {_answered(request)}")

    return line


async def test_a_task_that_failed_has_cost_what_it_cost(tmp_path: Path) -> None:
    """T12 x C7"""
    script = gives_tasks_for_ever(says("", finish="refusal"))
    async with house(tmp_path, script, max_tokens=1000) as runtime:
        result = await (await runtime.send("outer")).result()
    states = [call.state for call in calls_of(result.messages)]
    assert states == [CallState.FAILED, CallState.SKIPPED]


async def test_a_task_whose_result_is_withheld_has_cost_what_it_cost(tmp_path: Path) -> None:
    """T12 x P5"""
    async with house(tmp_path, gives_tasks_for_ever(says("secret")), max_tokens=1000) as runtime:
        turn = await (await runtime.conversation(review={"task": "always"})).send("outer")
        async for question in turn.asked():
            await turn.answer(question, withhold())
        result = await turn.result()
    states = [call.state for call in calls_of(result.messages)]
    assert states == [CallState.WITHHELD, CallState.SKIPPED]


async def test_a_task_of_a_task_costs_who_gave_the_first(tmp_path: Path) -> None:
    """T12"""

    def line(request: Request) -> Line:
        if not request.tools:
            return says("enough")
        if "innermost" in _said(request):
            return replace(says("done"), usage=Usage(5000, 5000))
        if "inner" in _said(request) and _answered(request):
            return says("done")
        return calls("task", agent="clerk", request="innermost" if "inner" in _said(request) else "inner")

    async with house(tmp_path, line, max_tokens=1000) as runtime:
        result = await (await runtime.send("outer")).result()
    states = [call.state for call in calls_of(result.messages)]
    assert states == [CallState.COMPLETED, CallState.SKIPPED]


async def test_what_a_tool_asks_of_the_model_is_what_the_turn_used(tmp_path: Path) -> None:
    """T11, T12: as a server does that samples."""

    @tool
    async def think(about: int, context: ToolContext) -> str:
        """Ask the model."""
        question = Request("", (RequestMessage("user", (Text("aside"),)),))
        return (await context.complete(question)).text

    def line(request: Request) -> Line:
        if _said(request) == ["aside"]:
            return says("hm", usage=Usage(5000, 5000))
        return calls("think", about=_answered(request)) if request.tools else says("enough")

    async with runtime_with(tmp_path, line, tools=[think], max_tokens=1000) as runtime:
        chat = await runtime.conversation()
        result = await (await chat.send("go")).result()
        assert [call.state for call in calls_of(result.messages)] == [CallState.COMPLETED, CallState.SKIPPED]
        assert result.usage.total == 10_000 + 3 * 15
        assert (await chat.info()).usage == result.usage
        assert len(model_of(runtime).requests) == 4
