"""B3: `dragoman diff`, `revert`, `redo` and `blame`, as a person types them."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.tools.builtin import shell_group
from dragoman.wire.scripted import calls, says
from tests.cli.program import Ended, program
from tests.runtimes import runtime_with

pytestmark = pytest.mark.slow


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("one\ntwo\n")
    return tmp_path / "work"


async def _changed(folder: Path) -> str:
    """A conversation whose second turn changed a file. → that turn"""
    script = [says("hello"), calls("shell", command="echo three >> a.txt; echo n > new.txt"), says("done")]
    async with runtime_with(folder, script, tools=[shell_group()], workspace=folder / "work") as runtime:
        chat = await runtime.conversation()
        await (await chat.send("hi")).result()
        turn = await chat.send("add a line")
        await turn.result()
        return turn.id


async def _program(folder: Path, *words: str) -> Ended:
    where = ("--store", str(folder / "chat.db"), "--workspace", str(folder / "work"))
    return await program(*words, *where, folder=folder)


async def test_a_diff_is_shown_taken_back_and_done_again(tmp_path: Path, work: Path) -> None:
    """B3"""
    turn = await _changed(tmp_path)
    shown = await _program(tmp_path, "diff")
    assert "+three\n" in shown.out
    assert "\x1b" not in shown.out
    assert json.loads((await _program(tmp_path, "diff", turn, "--json")).out)["files"][0]["path"] == "a.txt"

    back = await _program(tmp_path, "revert", "last")
    assert back.out.split() == ["a.txt", "new.txt"]
    assert (work / "a.txt").read_text() == "one\ntwo\n"
    assert not (work / "new.txt").exists()
    assert "add a line" not in (await _program_without_folder(tmp_path, "show", "last")).out
    subprocess.run(["git", "apply", "-"], cwd=work, input=shown.out.encode(), check=True)  # noqa: ASYNC221
    assert (work / "a.txt").read_text() == "one\ntwo\nthree\n"
    (work / "a.txt").write_text("one\ntwo\n")
    (work / "new.txt").unlink()

    again = await _program(tmp_path, "redo")
    assert (work / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert "`dragoman redo conv_" in back.err
    assert again.err.endswith(f"where it was; `dragoman revert {turn}` goes back once more.\n")
    await _program(tmp_path, "revert", turn)
    assert (work / "a.txt").read_text() == "one\ntwo\n"


async def test_one_file_is_taken_back(tmp_path: Path, work: Path) -> None:
    """B3"""
    turn = await _changed(tmp_path)
    back = await _program(tmp_path, "revert", turn, "--only", "new.txt")
    assert back.out.split() == ["new.txt"]
    assert not (work / "new.txt").exists()
    assert (work / "a.txt").read_text() == "one\ntwo\nthree\n"
    told = await _program(tmp_path, "diff", turn, "--json")
    assert json.loads(told.out)["undone"] == ["new.txt"]
    assert "undone since: new.txt" in (await _program(tmp_path, "diff", turn)).err
    await _program(tmp_path, "revert", turn, "--only", f"{work}/./a.txt")
    assert (work / "a.txt").read_text() == "one\ntwo\n"
    wrong = await _program(tmp_path, "revert", turn, "--only", "nwe.txt")
    assert "nwe.txt did not change" in wrong.err
    assert wrong.status


async def _program_without_folder(folder: Path, *words: str) -> Ended:
    return await program(*words, "--store", str(folder / "chat.db"), folder=folder)


async def test_a_conflict_is_an_error_that_names_the_files(tmp_path: Path, work: Path) -> None:
    """Without a terminal, the command cannot ask the user (B3)."""
    turn = await _changed(tmp_path)
    (work / "a.txt").write_text("mine")
    refused = await _program(tmp_path, "revert", turn, "--files-only")
    assert refused.status == 1
    assert "a.txt" in refused.err
    assert "pass --force to undo anyway" in refused.err
    assert (work / "new.txt").exists()
    assert (await _program(tmp_path, "revert", turn, "--files-only", "--force")).status == 0
    assert (work / "a.txt").read_text() == "one\ntwo\n"


async def test_what_is_not_there_is_named_by_its_kind(tmp_path: Path, work: Path) -> None:
    await _changed(tmp_path)
    kinds = {"turn_u": "turn", "msg_u": "message", "call_u": "call", "conv_u": "conversation"}
    for id, kind in kinds.items():  # ids have no u
        ended = await _program(tmp_path, "diff", id)
        assert ended.status == 1
        assert f"Unknown {kind} '{id}'" in ended.err


async def test_blame_names_the_turn_and_what_it_was_asked(tmp_path: Path, work: Path) -> None:
    """B3"""
    turn = await _changed(tmp_path)
    found = await _program(tmp_path, "blame", str(work / "a.txt"))
    first, _, third = found.out.splitlines()
    assert turn not in first
    assert third.startswith(turn)
    assert "add a line" in third
    outside = await _program(tmp_path, "blame", str(tmp_path / "chat.db"))
    assert outside.status == 1
    assert "not in the workspace" in outside.err


async def test_what_is_deleted_takes_its_records_along(tmp_path: Path, work: Path) -> None:
    """This holds for `dragoman rm` in any folder (B1)."""
    await _changed(tmp_path)
    (kept,) = (tmp_path / "chat.db.files" / "snapshots").glob("*.db")
    with closing(sqlite3.connect(kept)) as db, db:
        assert db.execute("SELECT count(*) FROM records").fetchone() == (1,)
    conversation = (await _program_without_folder(tmp_path, "list")).out.split("\t")[0]
    assert (await _program_without_folder(tmp_path, "rm", conversation, "--yes")).status == 0
    with closing(sqlite3.connect(kept)) as db, db:
        assert db.execute("SELECT count(*) FROM records").fetchone() == (0,)
    db.close()
