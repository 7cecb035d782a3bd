"""A conversation, or one send, selects one of the runtime's workspaces (R9)."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Runtime, Workspace, allow_always, allow_once
from dragoman.errors import BadRequest, ConfigError, NotFound, StoreUnavailable
from dragoman.messages.questions import Question, Rule
from dragoman.store.sqlite import SqliteStore
from dragoman.tools.builtin import BUILTIN
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.wire.scripted import ScriptedModel, calls, says
from tests.runtimes import model_of, runtime_with

WRITE = calls("write_file", path="note.txt", text="here\n")


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    made = {name: tmp_path / name for name in ("main", "site", "docs")}
    for folder in made.values():
        folder.mkdir()
    return made


def opened(tmp_path: Path, script: Any, **options: Any) -> Runtime:
    options = {"allow": ["files.*"], **options}
    return runtime_with(
        tmp_path,
        script,
        tools=[BUILTIN["files"](), BUILTIN["shell"]()],
        workspace=tmp_path / "main",
        workspaces={
            "site": Workspace(tmp_path / "site", prompt="This is the site."),
            "docs": tmp_path / "docs",
        },
        **options,
    )


def written(folders: dict[str, Path]) -> list[str]:
    return [name for name, folder in folders.items() if (folder / "note.txt").exists()]


async def test_a_conversation_works_in_the_workspace_it_names(
    tmp_path: Path, folders: dict[str, Path]
) -> None:
    """R9: one send may name another, and `""` is the runtime's own."""
    script = [WRITE, says("ok"), WRITE, says("ok"), WRITE, says("ok")]
    async with opened(tmp_path, script) as runtime:
        chat = await runtime.conversation(workspace="site")
        await (await chat.send("go")).result()
        assert written(folders) == ["site"]
        await (await chat.send("go", workspace="docs")).result()
        assert written(folders) == ["site", "docs"]
        await (await chat.send("go", workspace="")).result()
        assert written(folders) == ["main", "site", "docs"]


async def test_its_prompt_is_part_of_what_is_sent_there(tmp_path: Path, folders: dict[str, Path]) -> None:
    """Its prompt is in no request of another folder, and `turn.request()` names its source (R1)."""
    async with opened(tmp_path, [says("one"), says("two")]) as runtime:
        there = await runtime.send("hi", workspace="site")
        await there.result()
        await (await runtime.send("hi")).result()
        assert ["This is the site." in request.system for request in model_of(runtime).requests] == [
            True,
            False,
        ]
        assert ("workspace", "This is the site.") in (await there.request()).system


async def test_a_workspace_that_is_not_there_is_refused_before_anything_is_stored(
    tmp_path: Path, folders: dict[str, Path]
) -> None:
    async with opened(tmp_path, [says("never")]) as runtime:
        with pytest.raises(NotFound, match="Did you mean site"):
            await runtime.send("hi", workspace="sites")
        with pytest.raises(NotFound, match="Unknown workspace"):
            await runtime.conversation(workspace="../main")
        assert await runtime.conversations() == []
        chat = await runtime.conversation()
        with pytest.raises(NotFound, match="Unknown workspace"):
            await chat.change(workspace="etc")
        with pytest.raises(BadRequest, match="workspace must be a string"):
            await chat.change(workspace=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "a b", "../x", "x@", "-x", "x" * 41])
def test_a_name_that_could_mean_something_else_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="Invalid workspace name"):
        Runtime(tmp_path / "chat.db", workspaces={name: tmp_path})


def test_a_workspace_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a folder"):
        Runtime(tmp_path / "chat.db", workspaces={"x": tmp_path / "none"})


async def test_what_was_granted_in_one_folder_holds_there_alone(
    tmp_path: Path, folders: dict[str, Path]
) -> None:
    """P11 × R9: `note.txt` is another file elsewhere."""
    script = [WRITE, says("ok"), WRITE, says("ok"), WRITE, says("ok")]
    async with opened(tmp_path, script, allow=[]) as runtime:
        chat = await runtime.conversation(workspace="site")
        turn = await chat.send("go")
        asked = await question_of(turn)
        await runtime.answer(asked.id, allow_always())
        await turn.result()
        (folders["site"] / "note.txt").unlink()
        await (await chat.send("go")).result()
        assert written(folders) == ["site"]
        elsewhere = await chat.send("go", workspace="docs")
        again = await question_of(elsewhere)
        assert again.because == "rule"
        await elsewhere.cancel()


async def test_bounds_of_a_workspace_hold_there_alone(tmp_path: Path) -> None:
    """A workspace's bounds cannot be bypassed there, and do not apply in other workspaces (P9 × R9)."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "free").mkdir()
    async with runtime_with(
        tmp_path,
        [WRITE, says("no"), WRITE, says("yes")],
        tools=[BUILTIN["files"]()],
        allow=["files.*"],
        workspaces={
            "kept": Workspace(tmp_path / "kept", bounds=(Rule("files.write", "note.txt", "deny"),)),
            "free": tmp_path / "free",
        },
    ) as runtime:
        await (await runtime.send("go", workspace="kept")).result()
        await (await runtime.send("go", workspace="free")).result()
        assert not (tmp_path / "kept" / "note.txt").exists()
        assert (tmp_path / "free" / "note.txt").exists()


async def test_a_turn_goes_on_in_its_folder_after_a_restart(tmp_path: Path, folders: dict[str, Path]) -> None:
    """T14: in the same folder, or not at all."""
    async with opened(tmp_path, [WRITE], allow=[]) as runtime:
        turn = await runtime.send("go", workspace="site")
        asked = await question_of(turn)
    async with runtime_with(
        tmp_path, [says("ok")], tools=[BUILTIN["files"]()], workspaces={"site": folders["docs"]}
    ) as other:
        await other.answer(asked.id, allow_once())
        assert (await other.store.turn(turn.id)).live
        assert written(folders) == []
    async with opened(tmp_path, [says("ok")], allow=[]) as again:
        assert (await again.turn(turn.id).result()).text == "ok"
    assert written(folders) == ["site"]


async def test_what_a_turn_did_there_is_shown_and_taken_back_there(
    tmp_path: Path, folders: dict[str, Path]
) -> None:
    """B2, B3 × R9: also of a conversation that worked in two folders."""
    async with opened(tmp_path, [says("hello"), WRITE, says("ok"), WRITE, says("ok")]) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("hi")).result()
        first = await chat.send("go", workspace="site")
        await first.result()
        second = await chat.send("go", workspace="docs")
        await second.result()
        assert [one.path for one in (await first.diff()).files] == ["note.txt"]
        assert len((await chat.diff()).files) == 2
        reverted = await first.revert()
        assert reverted.moved
        assert sorted(reverted.paths) == ["note.txt", "note.txt"]
        assert written(folders) == []
        await chat.redo()
        assert written(folders) == ["site", "docs"]


async def test_a_task_works_where_who_gave_it_works(tmp_path: Path, folders: dict[str, Path]) -> None:
    """A task inherits the folder, also that of one send (R9 × R8)."""
    script = [calls("task", agent="helper", request="write it"), WRITE, says("written"), says("done")]
    async with opened(tmp_path, script, agents=[Agent(name="helper")], allow=["files.*", "task"]) as runtime:
        await (await runtime.send("go", workspace="site")).result()
        assert written(folders) == ["site"]


# ── a folder of its own ───────────────────────────────────────────────────────────────────────────


async def test_a_fork_with_a_folder_of_its_own_writes_beside(
    tmp_path: Path, folders: dict[str, Path]
) -> None:
    """The copy lacks changes after its message, and neither side sees the other's writes (B3)."""
    (folders["site"] / "old.txt").write_text("old\n")
    script = [says("hello"), WRITE, says("ok"), calls("write_file", path="fork.txt", text="f\n"), says("ok")]
    async with opened(tmp_path, script) as runtime:
        chat = await runtime.conversation(workspace="site")
        await (await chat.send("hi")).result()
        leaf = (await chat.info()).leaf
        assert leaf is not None
        await (await chat.send("go")).result()
        fork = await runtime.fork(chat.id, leaf, own_folder=True)
        turn = await fork.send("go")
        await turn.result()
        copy = copy_of(runtime, fork.id)
        assert sorted(path.name for path in copy.iterdir()) == ["fork.txt", "old.txt"]
        assert sorted(path.name for path in folders["site"].iterdir()) == ["note.txt", "old.txt"]
        assert [one.path for one in (await turn.diff()).files] == ["fork.txt"]
        await turn.revert(files_only=True)
        assert [path.name for path in copy.iterdir()] == ["old.txt"]
        await runtime.delete(fork.id)
        assert not copy.exists()
        assert sorted(path.name for path in folders["site"].iterdir()) == ["note.txt", "old.txt"]


async def test_a_fork_of_a_fork_has_its_own_copy_too(tmp_path: Path, folders: dict[str, Path]) -> None:
    """Deleting one fork leaves the files of the other (B3)."""
    async with opened(tmp_path, [says("hello"), WRITE, says("ok")]) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("hi")).result()
        leaf = (await chat.info()).leaf
        assert leaf is not None
        first = await runtime.fork(chat.id, leaf, own_folder=True)
        inner = (await first.info()).leaf
        assert inner is not None
        second = await runtime.fork(first.id, inner)
        await runtime.delete(first.id)
        await (await second.send("go")).result()
        assert (copy_of(runtime, second.id) / "note.txt").exists()
        assert written(folders) == []


class Full(SqliteStore):
    async def add_conversation(self, *_: Any) -> None:
        raise StoreUnavailable("the store", "it is full")


@pytest.mark.parametrize("place", [None, "snapshots"])
async def test_a_fork_that_cannot_be_made_leaves_no_copy(
    tmp_path: Path, folders: dict[str, Path], place: str | None
) -> None:
    """B3: the copies have no folder, or the store refuses the fork."""
    options = {"store": Full(tmp_path / "chat.db"), "snapshot_folder": tmp_path / place if place else None}
    async with opened(tmp_path, [says("hello")], **options) as runtime:
        leaf = (await (await runtime.send("hi")).result()).messages[-1]
        with pytest.raises(StoreUnavailable if place else BadRequest, match=r"full|snapshot_folder"):
            await runtime.fork(leaf.conversation, leaf.id, own_folder=True)
        assert runtime.services.workspaces.copies() == []


async def test_nobody_reaches_the_folder_of_another_conversation(
    tmp_path: Path, folders: dict[str, Path]
) -> None:
    """Only its own conversation reaches a copy, and naming a copy that does not exist is an error (B3 ×
    P9)."""
    async with opened(tmp_path, [says("hello"), says("never")]) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("hi")).result()
        leaf = (await chat.info()).leaf
        assert leaf is not None
        fork = await runtime.fork(chat.id, leaf, own_folder=True)
        for name in ("@", f"@{fork.id}", f"{fork.id}@", f"../copies/{fork.id}", fork.id):
            with pytest.raises(NotFound):
                await chat.send("hi", workspace=name)


async def test_a_task_of_a_fork_works_in_its_folder(tmp_path: Path, folders: dict[str, Path]) -> None:
    script = [
        says("hello"),
        calls("task", agent="helper", request="write it"),
        WRITE,
        says("written"),
        says("done"),
    ]
    async with opened(tmp_path, script, agents=[Agent(name="helper")], allow=["files.*", "task"]) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("hi")).result()
        leaf = (await chat.info()).leaf
        assert leaf is not None
        fork = await runtime.fork(chat.id, leaf, own_folder=True)
        await (await fork.send("go")).result()
        assert written(folders) == []
        assert (copy_of(runtime, fork.id) / "note.txt").exists()


async def test_a_copy_holds_what_there_is_and_nothing_of_ours(tmp_path: Path) -> None:
    """Modes, links and ignored files are in the copy, but a store in the folder and sockets are not (B3)."""
    work = tmp_path / "work"
    (work / "build").mkdir(parents=True)
    (work / ".gitignore").write_text("build/\n")
    (work / "build" / "made.o").write_bytes(b"\0\1")
    (work / "run.sh").write_text("#!/bin/sh\n")
    (work / "run.sh").chmod(0o755)
    (work / "link").symlink_to("run.sh")
    (work / "away").symlink_to("/nowhere")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(work / "s"))
        async with Runtime(
            work / "chat.db", model=ScriptedModel([says("hello")]), workspace=work, tools=[BUILTIN["files"]()]
        ) as runtime:
            chat = await runtime.conversation()
            await (await chat.send("hi")).result()
            leaf = (await chat.info()).leaf
            assert leaf is not None
            fork = await runtime.fork(chat.id, leaf, own_folder=True)
            copy = copy_of(runtime, fork.id)
            names = sorted(path.name for path in copy.iterdir())
            assert names == [".gitignore", "away", "build", "link", "run.sh"]
            assert (copy / "build" / "made.o").read_bytes() == b"\0\1"
            assert (copy / "run.sh").stat().st_mode & 0o777 == 0o755
            assert (copy / "link").readlink() == Path("run.sh")


async def test_a_turn_of_a_fork_waits_for_its_folder_over_a_restart(
    tmp_path: Path, folders: dict[str, Path]
) -> None:
    """Its call runs in the copy, and nowhere if the copy was deleted meanwhile (T14 × B3)."""
    async with opened(tmp_path, [says("hello"), WRITE, WRITE], allow=[]) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("hi")).result()
        leaf = (await chat.info()).leaf
        assert leaf is not None
        kept, lost = [await runtime.fork(chat.id, leaf, own_folder=True) for _ in range(2)]
        turns = [await kept.send("go"), await lost.send("go")]
        questions = [(await question_of(turn)).id for turn in turns]
        copies = [copy_of(runtime, kept.id), copy_of(runtime, lost.id)]
    copies[1].rename(tmp_path / "taken away")
    async with opened(tmp_path, [says("ok")], allow=[]) as again:
        for question in questions:
            await again.answer(question, allow_once())
        assert (await again.turn(turns[0].id).result()).text == "ok"
        assert (copies[0] / "note.txt").exists()
        assert (await again.store.turn(turns[1].id)).live  # quarantined, and can be cancelled
        assert await again.turn(turns[1].id).cancel()
    assert written(folders) == []
    assert not (tmp_path / "taken away" / "note.txt").exists()


async def question_of(turn: TurnHandle) -> Question:
    return await anext(turn.asked())


def copy_of(runtime: Runtime, conversation: str) -> Path:
    folder = runtime.services.workspaces.copy_of(conversation)
    assert folder is not None
    return folder
