"""B1, B3: changes of calls to the workspace are recorded, shown, and undone with the messages, for every
tool."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman import Plugin, Runtime, ToolContext, TurnView, allow_once, tool
from dragoman.errors import BadRequest, RevertConflict, TurnBusy
from dragoman.tools.builtin import BUILTIN
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.wire.scripted import calls, says
from dragoman.workspace.states import SnapshotLimits
from tests.patience import eventually
from tests.runtimes import runtime_with
from tests.workspace.folders import picture


@tool
def scribble(name: str, text: str, context: ToolContext) -> str:
    """A tool of one's own, of which nothing is known."""
    assert context.workspace is not None
    (context.workspace / name).write_text(text)
    return "done"


@tool(writes="nothing")
def look(context: ToolContext) -> str:
    """Says that it writes nothing."""
    return "seen"


class Hesitates(Plugin):
    """Keeps every turn but the first from asking its model."""

    turns = 0

    async def on_turn_start(self, turn: TurnView) -> None:
        self.turns += 1
        if self.turns > 1:
            await asyncio.Event().wait()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\n")
    return work


def opened(tmp_path: Path, script: Any, **options: Any) -> Runtime:
    tools = [scribble, look, BUILTIN["files"](), BUILTIN["shell"]()]
    return runtime_with(tmp_path, script, tools=tools, workspace=tmp_path / "work", **options)


async def finished(chat: ConversationHandle, text: str = "go") -> TurnHandle:
    turn = await chat.send(text)
    await turn.result()
    return turn


@pytest.mark.parametrize(
    "call",
    [
        calls("write_file", path="new.txt", text="new\n"),
        calls("shell", command="echo new > new.txt"),
        calls("scribble", name="new.txt", text="new\n"),
    ],
)
async def test_whatever_tool_wrote_it_is_told(tmp_path: Path, work: Path, call: Any) -> None:
    """Built-in, shell and custom tools are covered, in the diff of the turn and with the result (B1)."""
    async with opened(tmp_path, [call, says("done")]) as runtime:
        turn = await finished(await runtime.conversation())
        diff = await turn.diff()
        assert [(one.path, one.status, one.added) for one in diff.files] == [("new.txt", "added", 1)]
        assert "+new" in diff.text
        (made,) = [call for message in (await turn.result()).messages for call in message.calls]
        assert made.result is not None
        assert "+new" in str(made.result.metadata["diff"])
        assert "+new" not in made.result.text


async def test_a_turn_that_only_reads_leaves_nothing(tmp_path: Path, work: Path) -> None:
    """If no tool can write, the workspace is not scanned, and no record is created (B1)."""
    async with opened(tmp_path, [calls("look"), calls("read_file", path="a.txt"), says("done")]) as runtime:
        turn = await finished(await runtime.conversation())
        assert (await turn.diff()).files == []
        history = runtime.histories.at(work)
        assert history is not None
        assert not history.file.exists()


async def test_a_turn_is_taken_back_and_done_again(tmp_path: Path, work: Path) -> None:
    """Files and conversation are undone together, the messages stay as a branch, and a revert can be reverted
    (B3)."""
    script = [
        says("hello"),
        calls("shell", command="rm a.txt; mkdir d; echo x > d/x; chmod 700 d"),
        says("ok"),
    ]
    async with opened(tmp_path, script) as runtime:
        chat = await runtime.conversation()
        await finished(chat, "hi")
        leaf = (await chat.info()).leaf
        before = picture(work)
        turn = await finished(chat, "delete it")
        after, last = picture(work), (await chat.info()).leaf

        done = await turn.revert()
        assert picture(work) == before
        assert (await chat.info()).leaf == leaf == done.leaf
        assert [m.text for m in await chat.messages()] == ["hi", "hello"]
        assert len(await chat.tree()) == 5
        assert (await chat.diff()).files == []

        await chat.redo()
        assert picture(work) == after
        assert (await chat.info()).leaf == last

        await turn.revert()
        assert picture(work) == before
        with pytest.raises(BadRequest, match="Nothing to redo"):
            await (await runtime.conversation()).redo()


async def test_one_file_of_several_goes_back(tmp_path: Path, work: Path) -> None:
    """Its folder and its other name go back too, and nothing else. The state is reported for each
    file (B3)."""
    done = "mv a.txt b.txt; mkdir d; echo x > d/x; echo y > d/y; echo z > z"
    script = [calls("shell", command=done), says("ok"), calls("shell", command="echo zz > z"), says("ok")]
    async with opened(tmp_path, script) as runtime:
        chat = await runtime.conversation()
        before = picture(work)
        first, second = await finished(chat), await finished(chat)
        after, leaf = picture(work), (await chat.info()).leaf

        assert (await first.revert(paths=["b.txt"])).paths == ["a.txt", "b.txt"]
        assert (await chat.info()).leaf == leaf
        assert (await first.diff()).undone == ["b.txt"]
        assert [one.path for one in (await chat.diff()).files] == ["d/x", "d/y", "z"]
        await first.revert(paths=["d/x"])
        assert (work / "d").is_dir()
        await first.revert(paths=["d/y"])
        assert not (work / "d").exists()
        await chat.redo()
        assert picture(work / "d").keys() == {"y"}
        assert (await first.diff()).undone == ["b.txt", "d/x"]
        assert (await second.diff()).undone == []

        (work / "z").write_text("mine")
        with pytest.raises(RevertConflict, match="z"):
            await second.revert(paths=["z"])
        with pytest.raises(BadRequest, match="did not change"):
            await second.revert(paths=["z", "a.txt"])
        (work / "z").write_text("zz\n")
        await first.revert(files_only=True)
        assert picture(work) == before
        assert len((await first.diff()).undone) == len((await first.diff()).files)
        assert (await second.diff()).undone == ["z"]
        await chat.redo()
        assert (await first.diff()).undone == ["b.txt", "d/x"]
        for _ in range(2):
            await chat.redo()
        assert picture(work) == after
        assert (await first.diff()).undone == []


LINES = "one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("turns", "path", "left"),
    [
        # A later turn hides what the first one moved.
        (["mv a b", "echo else > b"], "b", {"a": LINES, "k": "k\n"}),
        (["mv a b", "echo new > a"], "b", {"a": LINES, "k": "k\n"}),
        (["mv a b", "mv b c"], "b", {"a": LINES, "k": "k\n"}),
        (["mv a b", "rm b"], "b", {"a": LINES, "k": "k\n"}),
        (["cat a a > b", "mv b c"], "b", {"a": LINES, "k": "k\n"}),
        (["echo four >> a", "mv a b"], "a", {"a": LINES, "k": "k\n"}),
        (["mv a d/b", "rm -r d"], "d/b", {"a": LINES, "k": "k\n"}),
        # In place of another file, and with a link to it in its own place.
        (["mv a k", "true"], "k", {"a": LINES, "k": "k\n"}),
        (["echo kk > k", "mv a k"], "k", {"a": LINES, "k": "k\n"}),
        (["mv a b; ln -s b a", "true"], "b", {"a": LINES, "k": "k\n"}),
        # A folder in place of a file, and a file in place of a folder.
        (["rm a; mkdir a; echo x > a/x", "true"], "a", {"a": LINES, "k": "k\n"}),
        (["rm a; mkdir a; echo x > a/x", "echo y > a/y"], "a", {"a": LINES, "k": "k\n"}),
        (["rm a; mkdir a; mv k a/k", "true"], "a", {"a": LINES, "k": "k\n"}),
        (["mkdir e; mv a e/a", "rm -r e; mv k e"], "e/a", {"a": LINES, "k": "k\n"}),
        # No other file is reverted, and a file that is already in its old state stays.
        (["cp a b", "echo kk > k"], "b", {"a": LINES, "k": "kk\n"}),
        (["cp a b; echo four >> a", "true"], "b", {"a": LINES + "four\n", "k": "k\n"}),
        (["echo new > b", "rm b; echo kk > k"], "b", {"a": LINES, "k": "kk\n"}),
    ],
)
async def test_one_file_goes_back_from_wherever_it_went(
    tmp_path: Path, work: Path, turns: list[str], path: str, left: dict[str, str]
) -> None:
    """The previous content is back under its old name, after any change by a later turn (B3)."""
    (work / "a.txt").rename(work / "a")
    (work / "a").write_text(LINES)
    (work / "k").write_text("k\n")
    (work / "d").mkdir()
    script = [reply for command in turns for reply in (calls("shell", command=command), says("ok"))]
    async with opened(tmp_path, script) as runtime:
        chat = await runtime.conversation()
        turn = await finished(chat)
        await finished(chat)
        after = picture(work)
        done = await turn.revert(paths=[path])
        assert {
            name: data.decode() for name, (kind, _, data) in picture(work).items() if kind == "file"
        } == left
        if done.paths:
            await chat.redo()
        assert picture(work) == after


async def test_files_alone_go_back(tmp_path: Path, work: Path) -> None:
    """B3"""
    async with opened(tmp_path, [says("hello"), calls("shell", command="rm a.txt"), says("ok")]) as runtime:
        chat = await runtime.conversation()
        await finished(chat)
        turn = await finished(chat)
        leaf = (await chat.info()).leaf
        done = await turn.revert(files_only=True)
        assert done.paths == ["a.txt"]
        assert (work / "a.txt").exists()
        assert (await chat.info()).leaf == leaf


async def test_back_to_before_an_earlier_turn_takes_the_later_ones_along(tmp_path: Path, work: Path) -> None:
    """This includes a turn that was undone separately before (B3)."""
    script = [
        *(calls("shell", command="echo 1 >> a.txt"), says("1")),
        *(calls("shell", command="echo 2 >> a.txt"), says("2")),
        *(calls("shell", command="echo 3 >> a.txt"), says("3")),
    ]
    async with opened(tmp_path, script) as runtime:
        chat = await runtime.conversation()
        first = await finished(chat)
        second = await finished(chat)
        await second.revert()
        await finished(chat)
        assert (work / "a.txt").read_text() == "one\n1\n3\n"
        await first.revert()
        assert (work / "a.txt").read_text() == "one\n"


async def test_back_to_before_a_single_call(tmp_path: Path, work: Path) -> None:
    """The effects of earlier calls stay (B3)."""
    script = [
        calls("write_file", path="x", text="x"),
        calls("write_file", path="y", text="y"),
        calls("shell", command="echo z > z"),
        says("ok"),
    ]
    async with opened(tmp_path, script) as runtime:
        turn = await finished(await runtime.conversation())
        made = [call for message in (await turn.result()).messages for call in message.calls]
        second = next(call for call in made if call.arguments.get("path") == "y")
        done = await runtime.undo.revert_call(second.id)
        assert sorted(picture(work)) == ["a.txt", "x"]
        assert done.moved


async def test_what_a_person_changed_since_is_asked_about(tmp_path: Path, work: Path) -> None:
    """B3 × B1: neither files nor conversation move."""
    async with opened(
        tmp_path, [says("hi"), calls("shell", command="echo 2 > a.txt"), says("ok")]
    ) as runtime:
        chat = await runtime.conversation()
        await finished(chat)
        turn = await finished(chat)
        (work / "a.txt").write_text("by a person")
        leaf = (await chat.info()).leaf
        with pytest.raises(RevertConflict, match=r"a\.txt"):
            await turn.revert()
        assert (work / "a.txt").read_text() == "by a person"
        assert (await chat.info()).leaf == leaf
        await turn.revert(force=True)
        assert (work / "a.txt").read_text() == "one\n"


async def test_what_a_person_did_while_they_were_asked_is_not_the_calls(tmp_path: Path, work: Path) -> None:
    """An approval request can be open for days, so the folder is scanned when the call runs (B1 × P1)."""
    async with opened(tmp_path, [calls("shell", command="echo 2 > b.txt"), says("ok")], allow=()) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        (work / "a.txt").write_text("by a person, meanwhile")
        await turn.answer(turn.question, allow_once())
        await turn.result()
        assert [one.path for one in (await turn.diff()).files] == ["b.txt"]


async def test_a_turn_that_runs_cannot_be_taken_back(tmp_path: Path, work: Path) -> None:
    """The error is TurnBusy, and a cancelled turn can be undone (B3)."""
    script = [calls("shell", command="echo 2 > a.txt; sleep 60")]
    async with opened(tmp_path, script) as runtime:
        turn = await runtime.send("go")
        async for event in turn.events():
            if event.type == "call.start":
                await eventually(lambda: (work / "a.txt").read_text() == "2\n")
                with pytest.raises(TurnBusy):
                    await turn.revert()
                await turn.cancel()
        await turn.revert()
        assert (work / "a.txt").read_text() == "one\n"


async def test_a_version_that_has_said_nothing_is_taken_back_and_holds_nothing_up(
    tmp_path: Path, work: Path
) -> None:
    """It was cancelled before its request, so it has no message. While it runs, the message it answers cannot
    be undone (B3 × T4 × T10)."""
    script = [calls("write_file", path="new.txt", text="new\n"), says("done")]
    async with opened(tmp_path, script, plugins=[Hesitates()], allow=["*"]) as runtime:
        chat = await runtime.conversation()
        turn = await finished(chat)
        question = (await chat.messages())[0]
        beside = await chat.rerun(question.id, parallel=True)
        for busy in (turn, beside):
            with pytest.raises(TurnBusy):
                await busy.revert()
        await beside.cancel()
        assert not (await beside.result()).messages
        done = await beside.revert()
        assert (done.paths, done.moved) == ([], False)
        await turn.revert(files_only=True)
        assert not (work / "new.txt").exists()
        await chat.redo()
        assert (work / "new.txt").exists()


async def test_what_is_not_recorded_is_said(tmp_path: Path, work: Path) -> None:
    """B1: as a notice while it happens, and with the diff."""
    (work / "b.txt").write_text("b")
    script = [calls("shell", command="echo 2 > a.txt"), says("ok")]
    async with opened(tmp_path, script, snapshots=SnapshotLimits(files=1)) as runtime:
        turn = await runtime.send("go")
        notices = [event.text async for event in turn.events() if event.type == "notice"]
        assert any("not recorded" in text for text in notices)
        assert "not recorded" in (await turn.diff()).notes[0]


async def test_without_recording_the_conversation_still_goes_back(tmp_path: Path, work: Path) -> None:
    """B3"""
    script = [says("hi"), calls("shell", command="echo 2 > a.txt"), says("ok")]
    async with opened(tmp_path, script, snapshots=False) as runtime:
        chat = await runtime.conversation()
        await finished(chat)
        leaf = (await chat.info()).leaf
        turn = await finished(chat)
        done = await turn.revert()
        assert done.leaf == leaf
        assert (work / "a.txt").read_text() == "2\n"
        with pytest.raises(BadRequest, match="records no file changes"):
            await turn.revert(files_only=True)


async def test_a_deleted_conversation_takes_its_records_along(tmp_path: Path, work: Path) -> None:
    """B1: also from a program that is in another folder."""
    async with opened(tmp_path, [calls("shell", command="echo 2 > a.txt"), says("ok")]) as runtime:
        chat = await runtime.conversation()
        turn = await finished(chat)
        history = runtime.histories.at(work)
        assert history is not None
        assert history.of_turns([turn.id])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with Runtime(tmp_path / "chat.db", workspace=elsewhere, adopts=False) as other:
        with pytest.raises(BadRequest, match="worked in"):
            await other.turn(turn.id).revert()
        assert [one.path for one in (await other.turn(turn.id).diff()).files] == ["a.txt"]
        await other.delete(chat.id)
    assert history.of_turns([turn.id]) == []
    history.close()


@pytest.mark.parametrize("moved", [False, True])
async def test_a_conversation_that_was_not_moved_any_more_is_moved_at_the_next_start(
    tmp_path: Path, work: Path, moved: bool
) -> None:
    """B3 × S1: the program died after the files were back, or before it noted that the conversation was."""
    script = [says("hello"), calls("shell", command="echo 2 > a.txt"), says("ok")]
    async with opened(tmp_path, script) as runtime:
        chat = await runtime.conversation()
        await finished(chat)
        first = (await chat.info()).leaf
        turn = await finished(chat)
        last = (await chat.info()).leaf
        history = runtime.histories.at(work)
        assert history is not None
        records = history.of_turns([turn.id])
        history.revert(records, conversation=chat.id, turn=turn.id, leaf=(last, first))
        assert (await chat.info()).leaf == last
        if moved:
            assert first is not None
            await runtime.store.set_leaf(chat.id, first, 0.0)
    async with opened(tmp_path, []) as again:
        assert (await again.store.conversation(chat.id)).leaf == first
        assert (work / "a.txt").read_text() == "one\n"
        await (await again.conversation(chat.id)).redo()
        assert (await again.store.conversation(chat.id)).leaf == last


async def test_a_conversation_that_went_on_is_not_moved_any_more(tmp_path: Path, work: Path) -> None:
    """A program died after it had restored the files, and another one was used before it started again (B3 ×
    S1)."""
    script = [says("hello"), calls("shell", command="echo 2 > a.txt"), says("ok"), says("and on")]
    async with opened(tmp_path, script) as other:
        chat = await other.conversation()
        await finished(chat)
        first = (await chat.info()).leaf
        turn = await finished(chat)
        last = (await chat.info()).leaf
        history = other.histories.at(work)
        assert history is not None
        records = history.of_turns([turn.id])
        history.revert(records, conversation=chat.id, turn=turn.id, leaf=(last, first))
        await finished(chat)
        async with opened(tmp_path, []) as again:
            same = await again.conversation(chat.id)
            assert (await same.messages())[-1].text == "and on"
            await same.redo()
            assert (work / "a.txt").read_text() == "2\n"
            assert (await same.messages())[-1].text == "and on"


async def test_records_that_cannot_be_read_keep_nobody_from_talking(tmp_path: Path, work: Path) -> None:
    """A message reports the fault, and the call runs (B1)."""
    script = [calls("shell", command="echo 2 > a.txt"), says("ok"), calls("shell", command="echo 3 > a.txt")]
    async with opened(tmp_path, script) as runtime:
        await finished(await runtime.conversation())
        history = runtime.histories.at(work)
        assert history is not None
    for path in history.file.parent.glob("*.db*"):
        path.write_bytes(b"no database at all, and long enough to be taken for one" * 100)
    async with opened(tmp_path, [*script[2:], says("done")]) as runtime:
        turn = await runtime.send("go")
        notices = [event.text async for event in turn.events() if event.type == "notice"]
        assert (await turn.result()).text == "done"
        assert any("not recorded" in text for text in notices)
        assert (work / "a.txt").read_text() == "3\n"
