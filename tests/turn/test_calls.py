"""Observable behavior of calls: which run, in which order, and which results they get (C1 to C8, C10,
C11)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from dragoman import (
    Group,
    ToolContext,
    ToolFailed,
    allow_once,
    release,
    reply,
    tool,
)
from dragoman.errors import BadRequest
from dragoman.messages.message import CallState, File, ToolCall, ToolResult
from dragoman.tools.tool import ToolOutput
from dragoman.turn.facts import CallStarted
from dragoman.wire.scripted import calls, calls_with, says
from tests.patience import PATIENCE, eventually
from tests.runtimes import add, calls_of, events_of, model_of, only_call, play, runtime_with


def _said(call: ToolCall) -> str:
    assert call.result is not None
    return call.result.text


async def test_each_change_of_a_call_is_stored_with_its_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has one line for the end of each, with how long it took (C1, O2)."""
    caplog.set_level(logging.INFO, "dragoman.turn")
    async with runtime_with(tmp_path, [calls("add", a=1, b=2), says("3")], tools=[add]) as runtime:
        turn = await runtime.send("go")
        await turn.result()
        facts = await turn.facts()
    of_call = [fact for fact in facts if getattr(fact, "call", None)]
    assert [fact.type for fact in of_call] == ["call_started", "call_finished"]
    assert all(fact.at > 0 for fact in facts)
    assert [fact.at for fact in facts] == sorted(fact.at for fact in facts)
    call, whole = (vars(record) for record in caplog.records if hasattr(record, "seconds"))
    assert (call["tool"], call["state"]) == ("add", "completed")
    assert call["seconds"] == pytest.approx(of_call[1].at - of_call[0].at, abs=0.01)
    assert (whole["state"], whole["steps"], whole["calls"]) == ("completed", 2, 1)
    assert whole["seconds"] == round(facts[-1].at - facts[0].at, 3)


async def test_results_stand_in_call_order_whichever_comes_first(tmp_path: Path) -> None:
    """C2, C3"""
    over: list[int] = []

    @tool
    async def nap(behind: int) -> int:
        """Ends after so many others."""
        await eventually(lambda: len(over) == behind)
        over.append(behind)
        return behind

    script = [calls("nap", behind=2) + calls("nap", behind=1) + calls("nap", behind=0), says("ok")]
    result = await play(tmp_path, script, tools=[nap])
    assert over == [0, 1, 2]
    assert [call.result.text for call in calls_of(result.messages) if call.result] == ["2", "1", "0"]


async def test_sequential_tools_run_one_after_another(tmp_path: Path) -> None:
    """C3"""
    running = most = 0

    @tool(sequential=True)
    async def alone(n: int) -> str:
        """Wants to be alone."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return "ok"

    await play(
        tmp_path,
        [calls("alone", n=1) + calls("alone", n=2) + calls("alone", n=3), says("ok")],
        tools=[alone],
    )
    assert most == 1


async def test_no_more_calls_run_at_once_than_allowed(tmp_path: Path) -> None:
    """C3"""
    running = most = 0

    @tool
    async def busy(n: int) -> str:
        """Is busy, until another one is, too."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await eventually(lambda: most > 1)
        await asyncio.sleep(0.01)
        running -= 1
        return "ok"

    line = calls("busy", n=0)
    for n in range(1, 6):
        line += calls("busy", n=n)
    await play(tmp_path, [line, says("ok")], tools=[busy], concurrency=2)
    assert most == 2


async def test_a_call_is_acted_on_whatever_the_finish_reason_says(tmp_path: Path) -> None:
    """C4"""
    script = [calls("add", a=1, b=2) + says("", finish="stop"), says("3")]
    assert only_call(await play(tmp_path, script, tools=[add])).state is CallState.COMPLETED


@pytest.mark.parametrize("raw", ['{"a": 1, "b": ', '{"a": 1} trailing', "[1, 2]", "nonsense"])
async def test_arguments_that_are_not_whole_never_run(tmp_path: Path, raw: str) -> None:
    """A call with incomplete arguments never runs, and the model receives an error so that it can retry
    (C4)."""
    async with runtime_with(
        tmp_path, [calls_with("add", raw), calls("add", a=1, b=2), says("3")], tools=[add]
    ) as runtime:
        result = await (await runtime.send("go")).result()
        first, second = calls_of(result.messages)
    assert (first.state, second.state) == (CallState.FAILED, CallState.COMPLETED)
    assert first.result is not None
    assert "not one complete JSON object" in first.result.text
    assert first.started is None


async def test_a_name_is_mended_where_only_one_tool_can_be_meant(tmp_path: Path) -> None:
    """C5"""
    call = only_call(await play(tmp_path, [calls("functions.ADD", a=1, b=2), says("3")], tools=[add]))
    assert (call.tool, call.state) == ("add", CallState.COMPLETED)


async def test_an_unknown_tool_is_answered_with_the_names_there_are(tmp_path: Path) -> None:
    """C5"""
    call = only_call(await play(tmp_path, [calls("subtract", a=1), says("sorry")], tools=[add]))
    assert call.state is CallState.FAILED
    assert call.result == ToolResult("Unknown tool 'subtract'. The tools are: add, read_output.")


async def test_arguments_that_do_not_fit_are_answered_with_the_path(tmp_path: Path) -> None:
    """C5"""
    call = only_call(await play(tmp_path, [calls("add", a="one", b=2), says("sorry")], tools=[add]))
    assert call.state is CallState.FAILED
    assert call.result is not None
    assert 'a: Input should be a valid integer, got "one"' in call.result.text


async def test_generators_report_progress(tmp_path: Path) -> None:
    """C6"""

    @tool
    def counts() -> Generator[int, None, str]:
        """Counts in a thread."""
        yield 1
        yield 2
        return "counted"

    @tool
    async def streams() -> AsyncIterator[str]:
        """Streams."""
        yield "half"
        yield "all"

    script = [calls("counts") + calls("streams"), says("ok")]
    async with runtime_with(tmp_path, script, tools=[counts, streams]) as runtime:
        turn = await runtime.send("go")
        events = await events_of(turn)
        result = await turn.result()
    ids = {call.id: call.tool for call in calls_of(result.messages)}
    progress = [(ids[event.call], event.value) for event in events if event.type == "call.progress"]
    assert sorted(progress, key=str) == [
        ("counts", 1),
        ("counts", 2),
        ("streams", "all"),
        ("streams", "half"),
    ]
    assert [_said(call) for call in calls_of(result.messages)] == [
        "counted",
        "all",
    ]


async def test_a_result_may_have_a_title_and_attachments(tmp_path: Path) -> None:
    """C6"""
    picture = File("image/png", url="https://example.org/plot.png")

    @tool
    def plot() -> ToolOutput:
        """Plot."""
        return ToolOutput({"points": 3}, title="Three points", attachments=(picture,))

    result = only_call(await play(tmp_path, [calls("plot"), says("ok")], tools=[plot])).result
    assert result == ToolResult('{"points": 3}', {"points": 3}, "Three points", attachments=(picture,))


async def test_a_tool_that_takes_too_long_fails(tmp_path: Path) -> None:
    """C7"""

    @tool(timeout=0.05)
    async def hangs() -> str:
        """Hangs."""
        await asyncio.sleep(60)
        return ""

    call = only_call(await play(tmp_path, [calls("hangs"), says("ok")], tools=[hangs]))
    assert call.result == ToolResult("hangs failed: it took longer than 0.05 s")


async def test_a_tool_knows_where_it_runs(tmp_path: Path) -> None:
    """C8"""
    seen: list[ToolContext] = []

    @tool
    async def looks(context: ToolContext, path: str) -> str:
        """Looks around."""
        seen.append(context)
        return str(context.inside_workspace(path).name)

    script = [calls("looks", path="a.txt") + calls("looks", path="../a.txt"), says("ok")]
    result = await play(tmp_path, script, tools=[looks], workspace=tmp_path)
    good, bad = calls_of(result.messages)
    assert (good.state, bad.state) == (CallState.COMPLETED, CallState.FAILED)
    assert _said(bad) == "../a.txt leads out of the workspace"
    assert seen[0].call == good.id
    assert (seen[0].turn, seen[0].message) == (result.id, result.messages[1].id)
    assert (seen[0].conversation, seen[0].user) == (result.messages[1].conversation, "local")
    assert seen[0].idempotency_key == f"{result.id}:{good.id}"


async def test_a_tool_may_ask_the_person(tmp_path: Path) -> None:
    """C8: the turn waits meanwhile."""

    @tool
    async def orders(context: ToolContext) -> str:
        """Orders."""
        return f"one {await context.ask('Which drink?', ['tea', 'coffee'])}"

    async with runtime_with(tmp_path, [calls("orders"), says("ok")], tools=[orders]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        (question,) = turn.questions
        assert (question.kind, question.text, question.choices) == ("tool", "Which drink?", ("tea", "coffee"))
        with pytest.raises(Exception, match="Choose one of: tea, coffee"):
            await turn.answer(question, reply("gin"))
        await turn.answer(question, reply("tea"))
        call = only_call(await turn.result())
    assert call.result == ToolResult("one tea")


async def test_a_reply_fits_the_schema_of_the_question(tmp_path: Path) -> None:
    """In a reply to a tool's question, a missing field gets its default or stays empty (C8)."""
    fields: dict[str, JsonValue] = {
        "rows": {"type": "integer"},
        "title": {"type": "string", "default": "Sums"},
        "note": {"type": "string", "default": None},
    }

    @tool
    async def export(context: ToolContext) -> str:
        """Export a table."""
        schema = {"type": "object", "properties": fields, "required": ["rows", "title"]}
        return str(await context.ask("What shall it be?", schema=schema))

    async with runtime_with(tmp_path, [calls("export"), says("done")], tools=[export]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        wrong: list[JsonValue] = ["two", {}, {"rows": "two"}, {"rows": 2, "title": None}]
        for value in wrong:
            with pytest.raises(BadRequest, match=r"rows|title"):
                await turn.answer(turn.question, reply(value))
        await turn.answer(turn.question, reply({"rows": 2}))
        assert only_call(await turn.result()).state is CallState.COMPLETED


async def test_who_waits_for_a_person_keeps_no_place_from_others(tmp_path: Path) -> None:
    """With one slot, one call works at a time. Calls that wait for answers free their slot, also when one
    asks twice in parallel. A call that has its answers resumes when a slot is free (C3 × C8)."""
    working = most = 0

    async def work() -> None:
        nonlocal working, most
        working += 1
        most = max(most, working)
        await asyncio.sleep(0.01)
        working -= 1

    @tool
    async def asks(n: int, context: ToolContext) -> str:
        """Asks."""
        await work()
        said = await asyncio.gather(context.ask(f"{n}, first?"), context.ask(f"{n}, second?"))
        await work()
        return " ".join(map(str, said))

    @tool(sequential=True)
    async def alone(context: ToolContext) -> str:
        """Asks alone."""
        said = await context.ask("Alone?")
        await work()
        return str(said)

    @tool
    async def gives_up(context: ToolContext) -> str:
        """Asks, and does not wait."""
        with suppress(TimeoutError):
            await asyncio.wait_for(context.ask("Soon?"), 0.01)
        return "gave up"

    first = calls("asks", n=1) + calls("alone") + calls("asks", n=2)
    script = [first + calls("gives_up") + calls("add", a=1, b=2)]
    tools = [asks, alone, gives_up, add]
    async with runtime_with(tmp_path, [*script, says("ok")], tools=tools, concurrency=1) as runtime:
        turn = await runtime.send("go")
        asked = ["1, first?", "1, second?", "2, first?", "2, second?", "Alone?"]
        await eventually(lambda: sorted(question.text for question in turn.questions) == asked)
        for question in turn.questions:
            await turn.answer(question, reply("yes"))
        said = [_said(call) for call in calls_of((await turn.result()).messages)]
    assert said == ["yes yes", "yes", "yes yes", "gave up", "3"]
    assert most == 1


@pytest.mark.parametrize(
    ("review", "why"),
    [("never", "the call is completed"), ("always", "the tool did not wait for the answer")],
)
async def test_a_question_that_its_tool_did_not_wait_for_is_closed(
    tmp_path: Path, review: Any, why: str
) -> None:
    """C8 × P5"""
    gate = asyncio.Event()
    asking: list[asyncio.Future[JsonValue]] = []

    @tool
    async def asks_aside(context: ToolContext) -> str:
        """Ask, and return."""
        asking.append(asyncio.ensure_future(context.ask("Well?")))
        await gate.wait()
        return "done"

    script = [calls("asks_aside"), says("ok")]
    async with runtime_with(tmp_path, script, tools=[asks_aside], review=review) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        id = turn.question
        gate.set()
        async for question in turn.asked():
            if question.kind == "review":
                await turn.answer(question, release())
        assert _said(only_call(await turn.result())) == "done"
        question = await runtime.store.question(id)
        assert (question.open, question.closed) == (False, why)
        with pytest.raises(ToolFailed, match="the call is over"):
            await asking[0]


async def test_who_asks_again_while_it_waits_for_a_place_takes_one(tmp_path: Path) -> None:
    """One part of a tool has its answer and waits for a slot when another part asks and gets an answer. The
    whole call takes one slot and releases it (C3 × C8)."""
    begun, asks_again, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @tool
    async def asks(context: ToolContext) -> str:
        """Asks."""

        async def second() -> str:
            await asks_again.wait()
            return str(await context.ask("Second?"))

        return " ".join(map(str, await asyncio.gather(context.ask("First?"), second())))

    @tool
    async def busy() -> str:
        """Keeps the place."""
        begun.set()
        await done.wait()
        return "done"

    first = calls("asks") + calls("busy") + calls("add", a=1, b=2)
    async with runtime_with(tmp_path, [first, says("ok")], tools=[asks, busy, add], concurrency=1) as runtime:
        turn = await runtime.send("go")
        async with asyncio.timeout(PATIENCE):
            await begun.wait()
            for said in ("one", "two"):
                await eventually(lambda: turn.questions)
                await turn.answer(turn.question, reply(said))
                while await runtime.store.signals(turn.id):
                    pass  # until the tool has it
                asks_again.set()
            done.set()
            results = [_said(call) for call in calls_of((await turn.result()).messages)]
    assert results == ["one two", "done", "3"]


async def test_a_cancel_reaches_who_has_its_answer_and_no_place_yet(tmp_path: Path) -> None:
    """T6 × C3: the one that has the place, and the one that waits for it, end as cancelled."""
    begun, went_on = asyncio.Event(), list[str]()

    @tool(cancellable=True)
    async def asks(context: ToolContext) -> str:
        """Asks."""
        went_on.append(str(await context.ask("Well?")))
        return "no"

    @tool(cancellable=True)
    async def busy() -> str:
        """Never ends."""
        begun.set()
        await asyncio.Event().wait()
        return "no"

    script = [calls("asks") + calls("busy")]
    async with runtime_with(tmp_path, script, tools=[asks, busy], concurrency=1) as runtime:
        turn = await runtime.send("go")
        async with asyncio.timeout(PATIENCE):
            await begun.wait()
        await turn.answer(turn.questions[0], reply("yes"))
        await eventually(lambda: not turn.questions)
        await turn.cancel()
        result = await turn.result()
    assert (result.state, went_on) == ("cancelled", [])
    assert {call.state for call in calls_of(result.messages)} == {CallState.CANCELLED}


# ── C10: the loop guard ───────────────────────────────────────────────────────────────────────────


async def test_the_third_same_call_of_a_turn_asks_the_person(tmp_path: Path) -> None:
    """C10: across steps, with text and other calls between."""
    script = [
        calls("add", a=1, b=2),
        says("hm ") + calls("add", a=5, b=5) + calls("add", a=1, b=2),
        says("once more ") + calls("add", b=2, a=1),
        says("3"),
    ]
    async with runtime_with(tmp_path, script, tools=[add]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        (question,) = turn.questions
        assert question.kind == "loop"
        assert "called add 2 times" in question.text
        await turn.answer(question, allow_once())
        assert (await turn.result()).text == "3"


# ── C11: groups ───────────────────────────────────────────────────────────────────────────────────


async def test_groups_bring_their_rules_and_can_be_switched_off(tmp_path: Path) -> None:
    """C11"""

    @tool(name="add")
    def other_add(a: str, b: str) -> str:
        """Join two texts."""
        return a + b

    sums = Group("sums", (add,), rules="Always add.")
    texts = Group("texts", (other_add,), rules="Join with care.")
    async with runtime_with(tmp_path, lambda _: says("ok"), tools=[sums, texts]) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("one")).result()
        off = await runtime.conversation(tools={"sums": False, "output": False})
        await (await off.send("two")).result()
        both, one = model_of(runtime).requests
    assert [spec.name for spec in both.tools] == ["add", "texts_add", "read_output"]
    assert both.system.endswith("Always add.\n\nJoin with care.")
    assert [(spec.name, spec.description) for spec in one.tools] == [("add", "Join two texts.")]
    assert one.system.endswith("Join with care.")


async def test_call_started_is_stored_before_the_tool_runs(tmp_path: Path) -> None:
    """S3: a second connection sees the fact while the tool is at work."""
    from dragoman.store.sqlite import SqliteStore
    from dragoman.turn.facts import FACT

    seen: list[object] = []

    @tool
    async def peeks(context: ToolContext) -> str:
        """Looks at its own record."""
        store = SqliteStore(tmp_path / "chat.db")
        await store.open()
        seen.extend(FACT.load(body) for body in await store.facts(context.turn))
        await store.close()
        return "ok"

    await play(tmp_path, [calls("peeks"), says("ok")], tools=[peeks])
    assert isinstance(seen[-1], CallStarted)


async def test_what_a_tool_says_to_the_model_is_its_own_word(tmp_path: Path) -> None:
    """C7"""

    @tool
    def refuses() -> str:
        """Refuses."""
        raise ToolFailed("the moon is not full: try again tomorrow")

    call = only_call(await play(tmp_path, [calls("refuses"), says("ok")], tools=[refuses]))
    assert call.result == ToolResult("the moon is not full: try again tomorrow")
