"""Records outlive their program, are shared by several programs, and go with their conversation (B1)."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest

from dragoman.errors import RevertConflict, StoreUnavailable
from tests.fork_server import python
from tests.workspace.folders import go_back, history_of, paths_of, picture, record


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\n")
    return root


def test_a_call_that_outlived_its_program_is_recorded_when_the_turn_goes_on(root: Path) -> None:
    """The record covers the changes before the program ended, and notes that they were not watched. Only a
    forced revert undoes them, because another program can have made some of them (B1, B3)."""
    history = history_of(root)
    history.begin(conversation="conv_1", turn="turn_1", step=1, call="c", paths=None)
    (root / "a.txt").write_text("half done")
    history.close()  # the process ended
    later = history_of(root)
    later.settle("turn_1")
    (told,) = later.of_turns(["turn_1"])
    assert paths_of(told) == ["a.txt"]
    assert "stopped" in told.notes[0]
    with pytest.raises(RevertConflict, match=r"a\.txt: the program stopped"):
        go_back(later, told)
    assert (root / "a.txt").read_text() == "half done"
    go_back(later, told, force=True)
    assert (root / "a.txt").read_text() == "one\ntwo\n"


def test_two_programs_share_one_history(root: Path) -> None:
    """Each program knows the states that the other one recorded (B1)."""
    one, other = history_of(root), history_of(root)
    record(one, lambda: (root / "a.txt").write_text("by one"), turn="turn_1")
    told = record(other, lambda: (root / "a.txt").write_text("by other"), turn="turn_2")
    assert told is not None
    assert told.changes[0].before is not None
    assert one.contents(told.changes[0].before) == b"by one"
    again = record(one, lambda: (root / "new").write_text("n"), turn="turn_3")
    assert paths_of(again) == ["new"]


def test_a_deleted_conversation_takes_its_bytes_along(root: Path) -> None:
    """A sweep removes the bytes that no record and no file needs (B1)."""
    history = history_of(root)
    record(history, lambda: (root / "a.txt").write_text("a passing secret"))
    (middle,) = history.of_conversation("conv_1")
    secret = middle.changes[0].after
    assert secret is not None
    record(history, lambda: (root / "a.txt").write_text("the end"), call="call_2")
    assert history.contents(secret) == b"a passing secret"
    assert history.forget(["conv_1"]) >= 1
    assert history.contents(secret) is None
    assert history.of_conversation("conv_1") == []


KILLED = """
import os, signal, sys
from pathlib import Path
from dragoman.workspace.history import WorkspaceHistory

root, at = Path(sys.argv[1]), int(sys.argv[2])
history = WorkspaceHistory(root, root.parent / "snapshots")
history.begin(conversation="conv_1", turn="turn_1", step=1, call="c", paths=None)
(root / "a.txt").unlink()
(root / "a.txt").mkdir()
(root / "a.txt" / "x").write_text("x")
(root / "new").write_text("new")
told = history.end("turn_1", "c")
steps = 0

def die(step):
    global steps
    steps += 1
    if steps > at:
        os.kill(os.getpid(), signal.SIGKILL)

history.revert([told], conversation="conv_1", turn="turn_1", leaf=("msg_2", "msg_1"), on_step=die)
"""

KILLED_EDIT = KILLED.replace(
    """(root / "a.txt").unlink()
(root / "a.txt").mkdir()
(root / "a.txt" / "x").write_text("x")
""",
    """(root / "a.txt").write_text("edited")
""",
)


@pytest.mark.slow
@pytest.mark.parametrize("at", range(6))
def test_a_revert_that_is_killed_is_finished_by_the_next_program(root: Path, at: int) -> None:
    """The revert is complete or absent, and its conversation is still known (B3)."""
    before = picture(root)
    done = subprocess.run(python("-c", KILLED, str(root), str(at)), check=False)
    assert done.returncode == -signal.SIGKILL
    history = history_of(root)
    (waiting,) = history.waiting_leaves()
    assert (waiting.leaf_before, waiting.leaf_after) == ("msg_2", "msg_1")
    assert picture(root) == before


@pytest.mark.slow
@pytest.mark.parametrize("at", range(6))
def test_what_a_person_did_after_the_kill_is_left_to_them(root: Path, at: int) -> None:
    """B2 × B3: by who finishes the revert, and by who takes it back after that."""
    subprocess.run(python("-c", KILLED, str(root), str(at)), check=False)
    (root / "new").write_text("mine")
    history = history_of(root)
    (waiting,) = history.waiting_leaves()
    assert "new: it was changed since" in waiting.notes
    history.revert([waiting], conversation="conv_1", turn="turn_1")
    assert (root / "a.txt" / "x").read_text() == "x"
    assert (root / "new").read_text() == "mine"


@pytest.mark.slow
def test_a_killed_revert_in_a_folder_that_is_away_waits_for_it(root: Path) -> None:
    """The records stay readable meanwhile (B3)."""
    subprocess.run(python("-c", KILLED_EDIT, str(root), "1"), check=False)
    away = root.rename(root.with_name("away"))
    assert history_of(root).of_conversation("conv_1")
    away.rename(root)
    assert len(history_of(root).waiting_leaves()) == 1
    assert not (root / "new").exists()


@pytest.mark.slow
@pytest.mark.parametrize("at", range(3))
def test_what_a_person_deleted_after_the_kill_stays_deleted(root: Path, at: int) -> None:
    """B2 × B3"""
    subprocess.run(python("-c", KILLED_EDIT, str(root), str(at)), check=False)
    (root / "a.txt").unlink()
    (waiting,) = history_of(root).waiting_leaves()
    assert not (root / "a.txt").exists()
    assert "a.txt: it was changed since" in waiting.notes


@pytest.mark.parametrize("suffix", [".lock", ".db", ".db-shm"])
def test_a_record_that_cannot_be_used_says_so_and_where_it_is(root: Path, suffix: str) -> None:
    """A foreign file in its place can come from a failing disk or a wrongly restored backup (B1)."""
    history = history_of(root)
    history.file.with_suffix(suffix).mkdir(parents=True)
    with pytest.raises(StoreUnavailable, match=str(history.file.parent)):
        record(history, lambda: None)


def test_a_record_that_is_damaged_while_it_is_open_says_so(root: Path) -> None:
    """B1"""
    history = history_of(root)
    record(history, lambda: (root / "a.txt").write_text("x"))
    with sqlite3.connect(history.file) as other:
        other.execute("DROP TABLE about")
    with pytest.raises(StoreUnavailable, match=r"no such table: about"):
        record(history, lambda: None)
