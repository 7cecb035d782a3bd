"""B3: a revert in several folders is done in all of them, or in none."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE

import pytest

from dragoman.errors import RevertConflict
from dragoman.workspace.histories import Histories
from dragoman.workspace.history import WorkspaceHistory
from dragoman.workspace.lock import locked
from dragoman.workspace.states import ChangeRecord
from dragoman.workspace.together import finish_reverts, revert_together
from tests.patience import PATIENCE

REVERT = """
import sys
from pathlib import Path
from dragoman.workspace.history import WorkspaceHistory
from dragoman.workspace.together import revert_together

place = Path(sys.argv[1])
histories = [WorkspaceHistory(place / name, place / "snapshots") for name in ("one", "two")]
parts = [(history, history.of_conversation("conv_1")) for history in histories]
print("ready", flush=True)
sys.stdin.readline()
revert_together(parts, conversation="conv_1", turn="turn_1", force=True, leaf=("msg_2", "msg_1"))
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Two folders, in each of which a call has written."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        history = WorkspaceHistory(tmp_path / name, tmp_path / "snapshots")
        history.begin(conversation="conv_1", turn="turn_1", step=1, call="call_1", paths=None)
        (tmp_path / name / "new.txt").write_text(name)
        history.end("turn_1", "call_1")
        history.close()
    return tmp_path


def written(place: Path) -> list[str]:
    return [name for name in ("one", "two") if (place / name / "new.txt").exists()]


def parts_of(place: Path) -> list[tuple[WorkspaceHistory, list[ChangeRecord]]]:
    found = [WorkspaceHistory(place / name, place / "snapshots") for name in ("one", "two")]
    return [(history, history.of_conversation("conv_1")) for history in found]


def test_where_one_is_not_as_it_was_left_none_is_touched(place: Path) -> None:
    (place / "two" / "new.txt").write_text("changed since")
    with pytest.raises(RevertConflict):
        revert_together(parts_of(place), conversation="conv_1", turn="turn_1", force=False, leaf=None)
    assert written(place) == ["one", "two"]


@pytest.mark.slow
def test_what_a_killed_program_did_in_one_of_them_is_taken_back(place: Path) -> None:
    """B3 × S1: the second is held here, so that it dies between the two."""
    second = WorkspaceHistory(place / "two", place / "snapshots")
    child = subprocess.Popen([sys.executable, "-c", REVERT, str(place)], stdin=PIPE, stdout=PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    with locked(second.file.with_suffix(".lock"), 0.0):
        child.stdin.write(b"go\n")
        child.stdin.close()
        try:
            until = time.monotonic() + PATIENCE
            while written(place) != ["two"]:
                assert time.monotonic() < until
                assert child.poll() is None
                time.sleep(0.01)
            finish_reverts(Histories(place / "snapshots"))
            assert written(place) == ["two"]  # it lives, and is at it
        finally:
            child.kill()
            child.stdout.close()
            child.wait()
    finish_reverts(Histories(place / "snapshots"))
    assert written(place) == ["one", "two"]
    assert second.waiting_leaves() == []  # the conversation stays where it was
    finish_reverts(Histories(place / "snapshots"))
    made = revert_together(parts_of(place), conversation="conv_1", turn="turn_1", force=True, leaf=None)
    assert len(made) == 2
    assert written(place) == []


@pytest.mark.slow
def test_what_was_done_in_all_of_them_stays(place: Path) -> None:
    """B3: nothing is taken back when the program goes on, or another one comes."""
    subprocess.run([sys.executable, "-c", REVERT, str(place)], check=True, input=b"go\n")
    finish_reverts(Histories(place / "snapshots"))
    assert written(place) == []
    second = WorkspaceHistory(place / "two", place / "snapshots")
    assert [record.leaf_after for record in second.waiting_leaves()] == ["msg_1"]
