"""G2, G6 in pairs: programs with forks, exports, reruns, replays, undo, agents and other clients."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from dragoman import Agent, Runtime, allow_once, tool
from dragoman.cli.acp.updates import TurnUpdates
from dragoman.evaluation import case_of_turn
from dragoman.messages import events as e
from dragoman.messages.message import CallState, Message, ToolCall
from dragoman.server.protocols.event_reader import Asked, EventReader
from dragoman.tools.tool import Tool
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.wire.scripted import calls, says
from tests.evaluation.again import asked_again
from tests.runtimes import calls_of, runtime_with

CODE = """\
import asyncio
x = await note(n=1)
y = await asyncio.gather(note(n=2), note(n=3))
[x, *y, await note(n=sum(y))]
"""


class Noted:
    def __init__(self) -> None:
        self.ran: list[int] = []

        @tool
        async def note(n: int) -> int:
            """Note a number."""
            self.ran.append(n)
            return n * 10

        self.tools: list[Tool | str] = [note, "programs"]

    def runtime(self, folder: Path, code: str = CODE, **options: Any) -> Runtime:
        def script(request: Any) -> Any:
            asked = request.messages[-1].role == "user" and request.messages[-1].parts[-1].type == "text"
            return calls("run_program", code=code) if asked else says("end")

        return runtime_with(folder, script, **{"tools": self.tools, **options})


async def _done(runtime: Runtime) -> tuple[TurnHandle, Message]:
    turn = await runtime.send("go")
    await turn.result()
    return turn, await _reply(turn)


async def _reply(turn: TurnHandle) -> Message:
    return next(one for one in (await turn.snapshot()).messages if one.calls)


def _summary(calls: tuple[ToolCall, ...]) -> list[tuple[Any, ...]]:
    return [(one.tool, one.arguments, one.result and one.result.value) for one in calls]


async def test_a_fork_has_the_calls_of_a_program(tmp_path: Path) -> None:
    async with Noted().runtime(tmp_path) as runtime:
        turn, reply = await _done(runtime)
        shot = await turn.snapshot()
        copy = await runtime.fork(shot.conversation, shot.messages[-1].id)
        [forked] = [one for one in await copy.messages() if one.calls]
    assert _summary(forked.inner) == _summary(reply.inner)
    assert {one.made_in.call for one in forked.inner if one.made_in} == {forked.calls[0].id}
    assert not {one.id for one in forked.all_calls} & {one.id for one in reply.all_calls}


async def test_an_export_is_imported_with_the_calls_of_a_program(tmp_path: Path) -> None:
    async with Noted().runtime(tmp_path) as runtime:
        turn, reply = await _done(runtime)
        id = (await turn.snapshot()).conversation
        markdown = await runtime.export_markdown(id)
        copy = await runtime.import_conversation(await runtime.export(id))
        [brought] = [one for one in await (await runtime.conversation(copy.id)).messages() if one.calls]
    assert _summary(brought.inner) == _summary(reply.inner)
    assert "line 3 of the program" in markdown


async def test_an_inner_call_is_rerun_with_another_result_and_its_program_goes_on_from_there(
    tmp_path: Path,
) -> None:
    house = Noted()
    async with house.runtime(tmp_path) as runtime:
        turn, reply = await _done(runtime)
        chat = await runtime.conversation((await turn.snapshot()).conversation)
        house.ran.clear()
        again = await chat.rerun_call(reply.inner[1].id, result="7")
        await again.result()
        anew = await _reply(again)
    assert anew.calls[0].state is CallState.COMPLETED, anew.calls[0].result
    assert house.ran[0] == 3  # earlier code does not run again
    assert [one.arguments for one in anew.inner][:3] == [{"n": 1}, {"n": 2}, {"n": 3}]


async def test_an_inner_call_is_rerun_with_other_arguments(tmp_path: Path) -> None:
    house = Noted()
    async with house.runtime(tmp_path, "x = await note(n=1)\ny = await note(n=2)\nx + y") as runtime:
        turn, reply = await _done(runtime)
        chat = await runtime.conversation((await turn.snapshot()).conversation)
        again = await chat.rerun_call(reply.inner[1].id, arguments={"n": 5})
        await again.result()
        anew = await _reply(again)
    assert house.ran == [1, 2, 5]
    assert anew.calls[0].result is not None
    assert anew.calls[0].result.text.endswith("60")


async def test_a_call_after_a_program_is_rerun_and_the_calls_of_the_program_are_in_the_facts(
    tmp_path: Path,
) -> None:
    """T10 × G2"""
    house = Noted()
    script = [calls("run_program", code="await note(n=1)"), calls("note", n=2), says("end"), says("anew")]
    async with runtime_with(tmp_path, script, tools=house.tools) as runtime:
        turn = await runtime.send("go")
        (_, call) = calls_of((await turn.result()).messages)
        chat = await runtime.conversation((await turn.snapshot()).conversation)
        again = await chat.rerun_call(call.id, result="7")
        assert (await again.result()).text == "anew"
        facts = [[(one.parent, one.state) for one in (await t.turn()).calls.values()] for t in (turn, again)]
    before, after = [[(parent is None, state) for parent, state in one] for one in facts]
    assert len(after) == 3
    assert after == before


async def test_an_evaluation_runs_the_program_over_its_recorded_results(tmp_path: Path) -> None:
    house = Noted()
    async with house.runtime(tmp_path) as runtime:
        turn, _ = await _done(runtime)
        ran = [*house.ran]
        case = await case_of_turn(runtime, turn.id)
        again = await asked_again(runtime, turn.id, "scripted/model")
    assert house.ran == ran  # no tool ran
    assert again.passed, again.reasons
    assert len(again.answered.calls) == 5
    assert case.recorded is not None
    assert again.answered.calls[0].result == case.recorded.calls[0].result


async def test_undo_takes_back_what_inner_calls_wrote(tmp_path: Path) -> None:
    """Undo restores each file of the inner calls, one call at a time or all together."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("before")
    code = (
        "await write_file(path='b.txt', text='new')\nfirst = await read_file(path='a.txt')\n"
        "await shell(command='echo after > a.txt')"
    )
    tools = ["files", "shell", "programs"]
    async with Noted().runtime(tmp_path, code, tools=tools, workspace=work) as runtime:
        turn, reply = await _done(runtime)
        assert reply.calls[0].state is CallState.COMPLETED, reply.calls[0].result
        assert {file.path for file in (await turn.diff()).files} == {"a.txt", "b.txt"}
        assert {file.path for file in (await turn.diff(reply.inner[0].id)).files} == {"b.txt"}
        await turn.revert(files_only=True)
    assert (work / "a.txt").read_text() == "before"
    assert not (work / "b.txt").exists()


async def test_an_agent_with_programs_works_in_a_task(tmp_path: Path) -> None:
    house = Noted()

    def script(request: Any) -> Any:
        last = request.messages[-1].parts[-1]
        if last.type == "call":
            return says("end")
        tools = {spec.name for spec in request.tools}
        return (
            calls("run_program", code="await note(n=4)")
            if "run_program" in tools
            else calls("task", agent="coder", request="do it")
        )

    agents = [Agent(name="coder", description="codes", tools=("tools", "programs"))]
    async with runtime_with(tmp_path, script, tools=house.tools[:1], agents=agents) as runtime:
        await (await runtime.send("go")).result()
    assert house.ran == [4]


async def test_a_program_gives_a_task_and_a_cancel_ends_it(tmp_path: Path) -> None:
    started = asyncio.Event()

    @tool(cancellable=True)
    async def forever() -> str:
        """Never end."""
        started.set()
        await asyncio.Event().wait()
        return ""

    def script(request: Any) -> Any:
        text = request.messages[0].parts[0].text
        return (
            calls("forever")
            if text == "do it"
            else calls("run_program", code="await task(agent='coder', request='do it')")
        )

    agents = [Agent(name="coder", description="codes", tools=("tools",))]
    async with runtime_with(tmp_path, script, tools=[forever, "programs"], agents=agents) as runtime:
        turn = await runtime.send("go")
        await started.wait()
        await turn.cancel()
        assert await turn.reached("cancelled")
        await asyncio.sleep(0.1)
        assert not await runtime.store.live_turns()


async def test_g6_other_clients_see_one_call_with_progress(tmp_path: Path) -> None:
    """AI SDK, AG-UI and editors use one reader, and none of them receives an inner call's ID."""
    async with Noted().runtime(tmp_path, "await note(n=1)\nawait note(n=2)", allow=[]) as runtime:
        turn = await runtime.send("go")
        events: list[e.Event] = []
        async for event in turn.events():
            events.append(event)
            if isinstance(event, e.CallAsked):
                await turn.answer(event.question, allow_once())
        reply = await _reply(turn)
    program, inner = reply.calls[0].id, {one.id for one in reply.inner}
    reader, updates = EventReader(), TurnUpdates(tmp_path, lambda name: name)
    values = [value for event in events for value in reader.read(event)]
    asked = [value for value in values if isinstance(value, Asked)]
    assert [value.call for value in asked] == [program, program]
    told = [value for value in values if not isinstance(value, Asked)]
    assert not {getattr(value, "call", "") for value in told} & inner
    progress = [value.value for value in values if isinstance(value, e.CallProgress)]
    assert progress == ['line 1: note {"n":1}', 'line 2: note {"n":2}']
    shown = [update for event in events for update in updates.updates(event)]
    assert {update["toolCallId"] for update in shown if "toolCallId" in update} == {program}
