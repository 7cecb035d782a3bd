"""A file that a turn found stays recorded until the turn ends, even if ignore files change meanwhile (B4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import Agent, Runtime, allow_once
from dragoman.messages.request import Request
from dragoman.tools.builtin import files_group, shell_group
from dragoman.tools.builtin.read_write import version_of
from dragoman.wire.scripted import Line, Script, calls, says
from dragoman.workspace.states import SnapshotLimits
from tests.runtimes import runtime_with
from tests.turn.deploying import waiting
from tests.turn.test_task_pairs import _answered, _said

ONLY = "KEY=the only copy\n"
HIDE = calls("write_file", path=".gitignore", text=".env\n")
DESTROY = {
    "write_file": calls("write_file", path=".env", text="KEY=\n", version=version_of(ONLY.encode())),
    "shell": calls("shell", command="rm .env"),
}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / ".env").write_text(ONLY)
    return folder


def opened(work: Path, script: Script, *, allow: str = "*", largest: int = 10_000_000) -> Runtime:
    return runtime_with(
        work.parent,
        script,
        tools=[files_group(), shell_group()],
        agents=[Agent(name="clerk")],
        allow=[allow],
        workspace=work,
        snapshots=SnapshotLimits(file_bytes=largest),
    )


@pytest.mark.parametrize("destroy", DESTROY)
async def test_what_a_call_hides_and_the_next_destroys_is_told_and_comes_back(
    work: Path, destroy: str
) -> None:
    async with opened(work, [HIDE, DESTROY[destroy], says("done")]) as runtime:
        turn = await runtime.send("tidy up")
        await turn.result()
        assert [file.path for file in (await turn.diff()).files] == [".env", ".gitignore"]
        done = await turn.revert(files_only=True)
    assert sorted(done.paths) == [".env", ".gitignore"]
    assert (work / ".env").read_text() == ONLY
    assert not (work / ".gitignore").exists()


@pytest.mark.parametrize("destroy", DESTROY)
async def test_also_where_another_process_goes_on_with_the_turn(work: Path, destroy: str) -> None:
    """B4 × S3: the question about the second call outlives the process."""
    script = [HIDE, DESTROY[destroy], says("done")]
    async with opened(work, script, allow="files.write:.gitignore") as runtime:
        turn = await waiting(runtime)
    async with opened(work, [says("done")], allow="files.write:.gitignore") as runtime:
        (question,) = await runtime.questions()
        await runtime.answer(question.id, allow_once())
        turn = runtime.turn(turn.id)
        await turn.result()
        assert [file.path for file in (await turn.diff()).files] == [".env", ".gitignore"]
        await turn.revert(files_only=True)
    assert (work / ".env").read_text() == ONLY


async def test_also_where_a_task_of_the_turn_destroys_it(work: Path) -> None:
    """Files that the outer turn found also count as recorded in its tasks (B4 × tasks)."""

    def script(request: Request) -> Line:
        if "inner" in _said(request):
            return says("done") if _answered(request) else DESTROY["shell"]
        done = len([call for message in request.messages for call in message.calls])
        return [HIDE, calls("task", agent="clerk", request="inner"), says("all done")][done]

    async with opened(work, script) as runtime:
        turn = await runtime.send("outer")
        await turn.result()
        assert not (work / ".env").exists()
        await turn.revert(files_only=True)
    assert (work / ".env").read_text() == ONLY


async def test_the_next_turn_follows_what_the_ignore_file_says_by_then(work: Path) -> None:
    """B1: and a revert names what it leaves as it is."""
    script = [HIDE, says("1"), DESTROY["write_file"], calls("write_file", path="b", text="x"), says("2")]
    async with opened(work, script) as runtime:
        await (await runtime.send("hide it")).result()
        turn = await runtime.send("change it")
        await turn.result()
        done = await turn.revert(files_only=True)
    assert done.paths == ["b"]
    assert done.notes == [".env: it is ignored, and not recorded"]
    assert (work / ".env").read_text() == "KEY=\n"


async def test_what_a_turn_hid_is_told_before_the_next_destroys_it_and_after(work: Path) -> None:
    """B4 × a call that may write anything: in a notice, with the diff, and by a revert of both turns."""
    hide = calls("shell", command="echo .env > .gitignore")  # scans every file, so `.env` is recorded
    async with opened(work, [hide, says("1"), DESTROY["shell"], says("2")]) as runtime:
        chat = await runtime.conversation()
        first = await chat.send("hide it")
        await first.result()
        second = await chat.send("remove it")
        told = [event async for event in second.events()]
        notes = (await second.diff()).notes
        done = await first.revert(files_only=True)
    assert notes == done.notes == ["ignored by now, and no longer recorded: .env"]
    notice = next(place for place, one in enumerate(told) if one.type == "notice" and one.text in notes)
    assert notice < [one.type for one in told].index("call.end")
    assert done.paths == [".gitignore"]


async def test_a_file_that_is_too_large_is_told_before_it_is_destroyed_and_after(work: Path) -> None:
    """B1, B4: in a notice, with the diff, and by the revert."""
    (work / "big.bin").write_bytes(b"x" * 2_000_000)
    async with opened(
        work, [calls("shell", command="rm big.bin"), says("done")], largest=1_000_000
    ) as runtime:
        turn = await runtime.send("go")
        told = [(event.type, getattr(event, "text", "")) async for event in turn.events()]
        notes = (await turn.diff()).notes
        done = await turn.revert(files_only=True)
    notices = [place for place, (kind, text) in enumerate(told) if kind == "notice" and "big.bin" in text]
    assert "big.bin (2.0 MB)" in told[notices[0]][1]
    assert notices[0] < [kind for kind, _ in told].index("call.end")
    assert notes == ["big.bin: its 2.0 MB were not recorded: it cannot be brought back"]
    assert done.notes == ["big.bin: its bytes were not recorded"]
