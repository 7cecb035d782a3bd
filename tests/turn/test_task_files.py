"""Reverting the turns and calls that gave tasks also reports and undoes the files of those tasks (B1–B3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import Agent, Runtime, TurnBusy, allow_once
from dragoman.messages.request import Request
from dragoman.tools.builtin import files_group
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.wire.scripted import Line, calls, says
from tests.runtimes import calls_of, runtime_with
from tests.turn.test_task_pairs import _answered, _question, _said

CLERK = Agent(name="clerk")


def writes_in_a_task(request: Request) -> Line:
    if "inner" in _said(request):
        return calls("write_file", path="a.txt", text="new\n") if not _answered(request) else says("done")
    return calls("task", agent="clerk", request="inner") if not _answered(request) else says("all done")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "mine.txt").write_text("as it was\n")
    return folder


def house(work: Path) -> Runtime:
    return runtime_with(
        work.parent,
        writes_in_a_task,
        tools=[files_group()],
        agents=[CLERK],
        allow=["task"],
        workspace=work,
    )


async def _with_a_task(runtime: Runtime, work: Path) -> tuple[TurnHandle, TurnHandle]:
    """Return a turn that gave a task, and the task's turn. The user edits a file while the task waits."""
    outer = await runtime.send("outer")
    question = await _question(runtime)
    (work / "mine.txt").write_text("what I made of it\n")
    with pytest.raises(TurnBusy):
        await outer.revert(files_only=True)
    await runtime.answer(question.id, allow_once())
    await outer.result()
    return outer, runtime.turn(question.turn)


async def test_what_a_person_did_while_a_task_asked_them_is_theirs(work: Path) -> None:
    async with house(work) as runtime:
        outer, inner = await _with_a_task(runtime, work)
        (call,) = calls_of((await outer.result()).messages)
        (diff,) = (await outer.diff()).files
        assert diff.path == "a.txt"
        assert call.result is not None
        assert call.result.metadata["diff"] == diff.text == (await inner.diff()).text
        await outer.revert(files_only=True)
        assert not (work / "a.txt").exists()
        assert (work / "mine.txt").read_text() == "what I made of it\n"


async def test_a_call_beside_a_task_changed_only_its_own_file(work: Path) -> None:
    """B3"""

    def script(request: Request) -> Line:
        beside = () if "inner" in _said(request) or _answered(request) else ("b.txt",)
        writes = [calls("write_file", path=path, text="new\n") for path in beside]
        return sum(writes, writes_in_a_task(request))

    async with runtime_with(
        work.parent, script, tools=[files_group()], agents=[CLERK], workspace=work
    ) as runtime:
        turn = await runtime.send("outer")
        made = calls_of((await turn.result()).messages)
        changed = {call.tool: [file.path for file in (await turn.diff(call.id)).files] for call in made}
    assert changed == {"task": ["a.txt"], "write_file": ["b.txt"]}


async def test_what_was_taken_back_in_one_of_them_is_taken_back_in_the_other(work: Path) -> None:
    async with house(work) as runtime:
        outer, inner = await _with_a_task(runtime, work)
        above = await runtime.conversation((await runtime.store.turn(outer.id)).conversation)
        below = await runtime.conversation((await runtime.store.turn(inner.id)).conversation)
        await outer.revert(files_only=True)
        assert (await inner.diff()).undone
        assert (await below.diff()).files == (await above.diff()).files == []
        await above.redo()
        assert (work / "a.txt").exists()
        assert [len((await chat.diff()).files) for chat in (above, below)] == [1, 1]
        await inner.revert(files_only=True)
        assert (await outer.diff()).undone
        assert (await above.diff()).files == []
        assert (await outer.revert(files_only=True)).paths == []
        again = await below.rerun((await below.messages())[0].id)
        assert await again.reached("waiting")
        with pytest.raises(TurnBusy, match=again.id):
            await outer.revert(files_only=True)


async def test_a_task_is_given_anew_with_the_files_as_they_were_before_it(work: Path) -> None:
    """T10 x B3"""
    async with house(work) as runtime:
        outer, _ = await _with_a_task(runtime, work)
        (call,) = calls_of((await outer.result()).messages)
        chat = await runtime.conversation((await runtime.store.turn(outer.id)).conversation)
        again = await chat.rerun_call(call.id, arguments=call.arguments, revert_files=True)
        question = await _question(runtime)
        assert not (work / "a.txt").exists()
        await runtime.answer(question.id, allow_once())
        await again.result()
        assert (work / "a.txt").exists()
