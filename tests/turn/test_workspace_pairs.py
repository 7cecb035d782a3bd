"""R9: workspaces in pairs with bounds, copies, tasks and forks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Runtime, Workspace
from dragoman.errors import BadRequest, NotFound, RevertConflict
from dragoman.messages.message import CallState
from dragoman.messages.questions import Rule
from dragoman.tools.builtin import BUILTIN
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.wire.scripted import calls, says
from tests.runtimes import calls_of, runtime_with


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    made = {name: tmp_path / name for name in ("main", "site")}
    for folder in made.values():
        folder.mkdir()
    (made["main"] / "keys.txt").write_text("secret\n")
    return made


def opened(tmp_path: Path, script: Any, **options: Any) -> Runtime:
    return runtime_with(
        tmp_path,
        script,
        tools=[BUILTIN["files"]()],
        allow=["files.*", "task"],
        workspace=Workspace(tmp_path / "main", bounds=(Rule("files.read", "keys.txt", "deny"),)),
        workspaces={"site": tmp_path / "site"},
        **options,
    )


async def forked(runtime: Runtime, workspace: str = "") -> ConversationHandle:
    chat = await runtime.conversation(workspace=workspace)
    await (await chat.send("hi")).result()
    leaf = (await chat.info()).leaf
    assert leaf is not None
    return await runtime.fork(chat.id, leaf, own_folder=True)


async def test_a_copy_is_bounded_as_the_folder_it_was_made_of(
    tmp_path: Path, folders: dict[str, Path]
) -> None:
    """A caller cannot name a folder as the copy of another one (P9 × B3)."""
    script = [says("hello"), calls("read_file", path="keys.txt"), says("no")]
    async with opened(tmp_path, script) as runtime:
        fork = await forked(runtime)
        with pytest.raises(NotFound, match="folder of the conversation"):
            await fork.change(workspace="site@")
        with pytest.raises(NotFound, match="folder of the conversation"):
            await fork.send("go", workspace="site@")
        done = await (await fork.send("go")).result()
        assert [call.state for call in calls_of(done.messages)] == [CallState.REJECTED]


async def test_a_conversation_goes_back_to_its_copy(tmp_path: Path, folders: dict[str, Path]) -> None:
    """A conversation returns to its copy, also for a task that works in its giver's folder (R9 × B3)."""
    script = [
        *(says("hello"), calls("task", agent="helper", request="say it"), says("said"), says("done")),
        *(calls("write_file", path="a.txt", text="a\n"), says("written")),
    ]
    async with opened(tmp_path, script, agents=[Agent(name="helper")]) as runtime:
        fork = await forked(runtime)
        await fork.change(workspace="site")
        await fork.change(workspace="@")
        await (await fork.send("go")).result()
        (task,) = [one for one in await runtime.store.within(fork.id) if one != fork.id]
        inner = await runtime.conversation(task)
        await inner.change(workspace="@")
        await (await inner.send("write")).result()
        assert not (folders["main"] / "a.txt").exists()


async def test_a_copy_goes_with_its_conversation_also_where_its_workspace_is_gone(
    tmp_path: Path, folders: dict[str, Path]
) -> None:
    """Settings that no longer name the folder do not keep its files (B3 × R9)."""
    async with opened(tmp_path, [says("hello")]) as runtime:
        fork = await forked(runtime, "site")
        copy = runtime.services.workspaces.copy_of(fork.id)
        assert copy is not None
    async with runtime_with(tmp_path, [], workspace=folders["main"]) as later:
        await later.delete(fork.id)
    assert not copy.exists()


async def test_a_folder_that_is_gone_cannot_be_copied(tmp_path: Path, folders: dict[str, Path]) -> None:
    """Dragoman reports the missing folder and makes no fork (B3)."""
    async with opened(tmp_path, [says("hello")]) as runtime:
        folders["site"].rmdir()
        with pytest.raises(BadRequest, match="cannot copy"):
            await forked(runtime, "site")
        assert len(await runtime.conversations()) == 1


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are counted by /proc")
async def test_copies_that_nobody_works_in_hold_no_files_open(
    tmp_path: Path, folders: dict[str, Path]
) -> None:
    """B3 × S3: a server with a thousand forks has a limit of open files, as any program."""
    forks = 34
    script = [says("hello"), *[calls("write_file", path="a.txt", text="a\n"), says("ok")] * forks]
    async with opened(tmp_path, script) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("hi")).result()
        leaf = str((await chat.info()).leaf)
        before = _open_files(tmp_path)
        made = [await runtime.fork(chat.id, leaf, own_folder=True) for _ in range(forks)]
        turns = []
        for fork in made:
            turns.append(await fork.send("go"))
            await turns[-1].result()
        assert _open_files(tmp_path) - before < 2 * forks  # of three each: the store opens a few, too
        assert [file.path for file in (await turns[0].diff()).files] == ["a.txt"]
        await turns[0].revert()
    async with opened(tmp_path, []) as later:
        assert _open_files(tmp_path) <= before + 3
        await later.delete(made[1].id)
        assert _open_files(tmp_path) - before < 2 * forks  # of three each: the store opens a few, too


def _open_files(below: Path) -> int:
    found = 0
    for one in Path("/proc/self/fd").iterdir():
        try:
            found += str(one.readlink()).startswith(str(below))
        except OSError:
            continue  # the one that lists them
    return found


@pytest.mark.parametrize("changed", ["main", "site"])
async def test_what_was_done_in_several_folders_goes_back_in_all_or_in_none(
    tmp_path: Path, folders: dict[str, Path], changed: str
) -> None:
    """A revert covers all folders or none, also if a user changed only one. One redo restores everything (R9
    × B3)."""
    written = [line for _ in folders for line in (calls("write_file", path="a.txt", text="a\n"), says("ok"))]
    files = [folder / "a.txt" for folder in folders.values()]
    async with opened(tmp_path, [says("hello"), *written]) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("hi")).result()
        first = await chat.send("write", workspace="")
        await first.result()
        await (await chat.send("write", workspace="site")).result()
        leaf = (await chat.info()).leaf
        (folders[changed] / "a.txt").write_text("mine\n")
        with pytest.raises(RevertConflict):
            await first.revert()
        assert [file.exists() for file in files] == [True, True]
        assert (await chat.info()).leaf == leaf
        (folders[changed] / "a.txt").write_text("a\n")
        assert (await first.revert()).paths == ["a.txt", "a.txt"]
        assert [file.exists() for file in files] == [False, False]
        assert (await chat.redo()).paths == ["a.txt", "a.txt"]
        assert [file.exists() for file in files] == [True, True]
        assert (await chat.info()).leaf == leaf
        with pytest.raises(BadRequest, match="Nothing to redo"):
            await chat.redo()
