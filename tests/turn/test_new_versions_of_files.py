"""B2 × T10: a new version of an answer, a message or a call begins with the files as they were before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from dragoman import Runtime, ScriptedModel
from dragoman.errors import BadRequest, NotFound, RevertConflict, TurnBusy
from dragoman.messages.message import Arguments, CallState
from dragoman.sync import SyncRuntime
from dragoman.tools.builtin import BUILTIN
from dragoman.wire.scripted import Line, calls, says
from tests.runtimes import calls_of, runtime_with

WRITES = [calls("write_file", path="a.txt", text="first\n"), says("written")]
AGAIN = [calls("write_file", path="a.txt", text="second\n"), says("again")]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def opened(work: Path, script: list[Line], allow: Sequence[str] = ("*",)) -> Runtime:
    return runtime_with(work.parent, script, tools=[BUILTIN["files"]()], allow=allow, workspace=work)


async def test_a_call_is_made_anew_as_if_it_had_not_been_made(work: Path) -> None:
    """Without the revert, the tool refuses to overwrite a file that the model has not read."""
    async with opened(work, [*WRITES, says("refused"), says("done")]) as runtime:
        chat = await runtime.conversation()
        (call,) = calls_of((await (await chat.send("go")).result()).messages)
        other: Arguments = {"path": "a.txt", "text": "other\n"}
        left = await (await chat.rerun_call(call.id, arguments=other)).result()
        assert [one.state for one in calls_of(left.messages)] == [CallState.FAILED]
        done = await (await chat.rerun_call(call.id, arguments=other, revert_files=True)).result()
        assert [one.state for one in calls_of(done.messages)] == [CallState.COMPLETED]
    assert (work / "a.txt").read_text() == "other\n"


@pytest.mark.parametrize("how", ["answer", "question", "edit"])
async def test_an_answer_is_made_anew_as_if_there_had_been_none(work: Path, how: str) -> None:
    async with opened(work, [*WRITES, *AGAIN]) as runtime:
        chat = await runtime.conversation()
        first = await (await chat.send("go")).result()
        question = (await chat.tree()).question_of(first.messages[-1].id)
        if how == "edit":
            turn = await chat.edit(question.id, "once more", revert_files=True)
        else:
            wanted = question.id if how == "question" else first.messages[-1].id
            turn = await chat.rerun(wanted, revert_files=True)
        assert [one.state for one in calls_of((await turn.result()).messages)] == [CallState.COMPLETED]
        assert (await turn.diff()).text.count("+second") == 1
    assert (work / "a.txt").read_text() == "second\n"


async def test_what_does_not_begin_leaves_the_files_as_they_were(work: Path) -> None:
    async with opened(work, WRITES) as runtime:
        chat = await runtime.conversation()
        (call,) = calls_of((await (await chat.send("go")).result()).messages)
        with pytest.raises(BadRequest):
            await chat.rerun_call(call.id, arguments={"path": 3}, result="both", revert_files=True)
        with pytest.raises(NotFound):
            await chat.rerun_call("call_unknown", revert_files=True)
    assert (work / "a.txt").read_text() == "first\n"


async def test_what_a_person_made_of_it_since_keeps_it_from_beginning(work: Path) -> None:
    """The user's changes stay, and no turn starts (B2)."""
    async with opened(work, WRITES) as runtime:
        chat = await runtime.conversation()
        (call,) = calls_of((await (await chat.send("go")).result()).messages)
        (work / "a.txt").write_text("mine\n")
        with pytest.raises(RevertConflict, match=r"a\.txt"):
            await chat.rerun_call(call.id, revert_files=True)
        assert await runtime.store.live_turns(chat.id) == []
    assert (work / "a.txt").read_text() == "mine\n"


async def test_what_runs_is_not_taken_back_under_its_feet(work: Path) -> None:
    """A call of a running turn cannot run again, so its files stay unchanged (T13)."""
    script = [*WRITES[:1], calls("read_file", path="a.txt")]
    async with opened(work, script, allow=["files.write"]) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("go")
        assert await turn.reached("waiting")
        call = calls_of((await turn.snapshot()).messages)[0]
        with pytest.raises(TurnBusy):
            await chat.rerun_call(call.id, revert_files=True)
    assert (work / "a.txt").read_text() == "first\n"


def test_and_without_await(work: Path) -> None:
    model = ScriptedModel([*WRITES, *AGAIN])
    with SyncRuntime(
        work.parent / "chat.db", model=model, tools=[BUILTIN["files"]()], allow=["*"], workspace=work
    ) as runtime:
        chat = runtime.conversation()
        answer = chat.send("go").result().messages[-1]
        assert chat.rerun(answer.id, revert_files=True).result().text == "again"
    assert (work / "a.txt").read_text() == "second\n"
