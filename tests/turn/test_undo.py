"""What a revert says it did to the files and to the conversation, and what the diffs show then (B2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from dragoman import Runtime
from dragoman.errors import BadRequest, NotFound, RevertConflict
from dragoman.messages.message import Message
from dragoman.tools.builtin import BUILTIN
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.turn.api.undo import FIRST_MESSAGE, Reverted
from dragoman.wire.scripted import calls, says
from tests.runtimes import calls_of, runtime_with

SCRIPT = [
    calls("write_file", path="a.txt", text="a\n"),
    says("one"),
    calls("write_file", path="b.txt", text="b\n"),
    calls("write_file", path="c.txt", text="c\n"),
    says("two"),
    says("three"),
]
ALL = ["a.txt", "b.txt", "c.txt"]


@dataclass
class Scene:
    """A conversation of two turns, which wrote one file and two files."""

    runtime: Runtime
    folder: Path
    chat: ConversationHandle
    turns: list[TurnHandle]
    messages: list[Message]  # go, a, one, go, b, c, two

    def files(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())


async def scene_in(runtime: Runtime, folder: Path) -> Scene:
    chat = await runtime.conversation()
    turns = [await chat.send("go")]
    await turns[0].result()
    turns.append(await chat.send("go"))
    await turns[1].result()
    return Scene(runtime, folder, chat, turns, await chat.messages())


def opened(folder: Path) -> Runtime:
    work = folder / "work"
    work.mkdir()
    return runtime_with(folder, SCRIPT, tools=[BUILTIN["files"]()], workspace=work)


Way = Callable[[Scene], Awaitable[Reverted]]
WAYS: dict[str, tuple[Way, list[str], int | None, list[str]]] = {
    # the paths that change, the message at the end then (None: the conversation stays), and the notes
    "the last turn": (lambda at: at.turns[1].revert(), ["b.txt", "c.txt"], 2, []),
    "the first turn": (lambda at: at.turns[0].revert(), ALL, None, [FIRST_MESSAGE]),
    "its files": (lambda at: at.turns[0].revert(files_only=True), ALL, None, []),
    "one of its files": (lambda at: at.turns[1].revert(paths=["b.txt"]), ["b.txt"], None, []),
    "a message": (lambda at: at.chat.revert_to(at.messages[4].id), ["b.txt", "c.txt"], 3, []),
    "its first reply": (lambda at: at.chat.revert_to(at.messages[1].id), ALL, 0, []),
    "a reply's files": (
        lambda at: at.chat.revert_to(at.messages[5].id, files_only=True),
        ["c.txt"],
        None,
        [],
    ),
    "its last reply": (lambda at: at.chat.revert_to(at.messages[6].id), [], 5, []),
    "a call": (
        lambda at: at.runtime.undo.revert_call(calls_of(at.messages)[2].id),
        ["c.txt"],
        4,
        [],
    ),
    "a call's files": (
        lambda at: at.runtime.undo.revert_call(calls_of(at.messages)[0].id, files_only=True),
        ALL,
        None,
        [],
    ),
    "a question's answers": (lambda at: at.runtime.undo.revert_answers(at.messages[0].id), ALL, None, []),
    "an answer": (
        lambda at: at.runtime.undo.revert_answers(at.messages[6].id),
        ["b.txt", "c.txt"],
        None,
        [],
    ),
}


@pytest.mark.parametrize(("way", "paths", "end", "notes"), WAYS.values(), ids=WAYS)
async def test_a_revert_says_what_it_did_and_can_be_undone(
    tmp_path: Path, way: Way, paths: list[str], end: int | None, notes: list[str]
) -> None:
    async with opened(tmp_path) as runtime:
        at = await scene_in(runtime, tmp_path / "work")
        last = at.messages[-1].id
        leaf = last if end is None else at.messages[end].id
        done = await way(at)
        assert (done.conversation, sorted(done.paths), done.notes) == (at.chat.id, paths, notes)
        assert (done.moved, done.leaf, (await at.chat.info()).leaf) == (end is not None, leaf, leaf)
        assert done.turn is not None
        assert at.files() == [name for name in ALL if name not in paths]
        assert [file.path for file in (await at.chat.diff()).files] == at.files()
        diffs = [await turn.diff() for turn in at.turns]
        assert [[file.path for file in diff.files] for diff in diffs] == [["a.txt"], ["b.txt", "c.txt"]]
        assert sorted(path for diff in diffs for path in diff.undone) == paths
        again = await way(at)
        assert (again.paths, again.moved, again.turn) == ([], False, None)
        back = await at.chat.redo()
        assert (sorted(back.paths), back.moved, back.leaf) == (paths, end is not None, last)
        assert back.turn == done.turn
        assert (at.files(), (await at.chat.info()).leaf) == (ALL, last)
        with pytest.raises(BadRequest, match="Nothing to redo"):
            await at.chat.redo()


async def test_a_revert_changes_nothing_that_others_changed(tmp_path: Path) -> None:
    async with opened(tmp_path) as runtime:
        at = await scene_in(runtime, tmp_path / "work")
        (at.folder / "b.txt").write_text("mine\n")
        with pytest.raises(RevertConflict, match=r"b\.txt"):
            await at.turns[1].revert()
        with pytest.raises(BadRequest, match=r"x\.txt"):
            await at.turns[1].revert(paths=["x.txt"])
        assert (at.files(), (await at.chat.info()).leaf) == (ALL, at.messages[-1].id)
        await at.turns[1].revert(force=True)
        assert at.files() == ["a.txt"]
        await (await at.chat.send("go on")).result()
        back = await at.chat.redo(force=True)
        assert (back.moved, back.leaf, back.notes) == (True, at.messages[-1].id, [])
        assert at.files() == ALL


async def test_diffs_are_of_a_call_a_reply_or_a_turn(tmp_path: Path) -> None:
    """A copy of the conversation has none (B2 × T16)."""
    async with opened(tmp_path) as runtime:
        at = await scene_in(runtime, tmp_path / "work")
        undo, (_, b, c) = runtime.undo, calls_of(at.messages)

        async def shown(*messages: int) -> list[list[str]]:
            found = [await undo.diff_message(at.messages[one].id) for one in messages]
            return [[file.path for file in diff.files] for diff in found]

        assert await shown(3, 4, 5, 6) == [["b.txt", "c.txt"], ["b.txt"], ["c.txt"], []]
        assert [[file.path for file in (await undo.diff_call(one.id)).files] for one in (b, c)] == [
            ["b.txt"],
            ["c.txt"],
        ]
        assert [file.path for file in (await at.chat.diff(at.messages[5].id)).files] == ["c.txt"]
        with pytest.raises(NotFound, match="call_none"):
            await undo.diff_call("call_none")
        copy = await runtime.fork(at.chat.id, at.messages[-1].id)
        copied = await copy.messages()
        assert (await undo.diff_call(calls_of(copied)[0].id)).files == []
        assert (await undo.diff_message(copied[1].id)).files == []


async def test_without_a_folder_only_the_conversation_goes_back(tmp_path: Path) -> None:
    async with runtime_with(tmp_path, [says("one"), says("two")]) as runtime:
        at = await scene_in(runtime, tmp_path)
        with pytest.raises(BadRequest, match="workspace"):
            await at.turns[1].revert(files_only=True)
        first = await at.turns[0].revert()
        assert (first.moved, first.leaf) == (False, at.messages[-1].id)
        done = await at.turns[1].revert()
        assert (done.moved, done.leaf, done.paths) == (True, at.messages[1].id, [])
        assert (await at.chat.info()).leaf == at.messages[1].id
