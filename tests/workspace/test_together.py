"""A revert in several folders is done in all of them, or in none (B3)."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE

import pytest

from dragoman.errors import BadRequest, RevertConflict, StoreUnavailable
from dragoman.workspace.histories import Histories, finish_reverts, revert_together
from dragoman.workspace.history import WorkspaceHistory
from dragoman.workspace.lock import locked
from dragoman.workspace.states import ChangeRecord
from tests.patience import PATIENCE
from tests.workspace.folders import histories_in, history_of

REVERT = """
import sys
from pathlib import Path
from dragoman.workspace.histories import Histories
from dragoman.workspace.history import WorkspaceHistory
from dragoman.workspace.histories import revert_together

place = Path(sys.argv[1])
beside = Histories(place / "snapshots")
histories = [WorkspaceHistory(place / name, place / "snapshots") for name in ("one", "two")]
parts = [(history, history.of_conversation("conv_1")) for history in histories]
print("ready", flush=True)
sys.stdin.readline()
revert_together(beside, parts, conversation="conv_1", turn="turn_1", force=True, leaf=("msg_2", "msg_1"))
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Two folders, in each of which a call has written."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path, name, 1, "new.txt")
    return tmp_path


def write(place: Path, folder: str, number: int, file: str) -> None:
    """A call of a conversation that writes a file into one of them."""
    turn, call = f"turn_{number}", f"call_{number}"
    history = history_of(place / folder)
    history.begin(conversation=f"conv_{number}", turn=turn, step=1, call=call, paths=None)
    (place / folder / file).write_text(folder)
    history.end(turn, call)
    history.close()


def written(place: Path, file: str = "new.txt") -> list[str]:
    return [name for name in ("one", "two") if (place / name / file).exists()]


def parts_of(place: Path, number: int = 1) -> list[tuple[WorkspaceHistory, list[ChangeRecord]]]:
    found = [history_of(place / name) for name in ("one", "two")]
    return [(history, history.of_conversation(f"conv_{number}")) for history in found]


def revert(place: Path, number: int = 1, *, force: bool = True) -> None:
    conversation, turn = f"conv_{number}", f"turn_{number}"
    beside, parts = histories_in(place), parts_of(place, number)
    made = revert_together(beside, parts, conversation=conversation, turn=turn, force=force, leaf=None)
    assert len(made) == 2


def kill_between(place: Path) -> None:
    """Run a program that reverts the first folder and dies before the second, which this process locks."""
    second = history_of(place / "two")
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
            first = history_of(place / "one")
            assert first.of_conversation("conv_1")[-1].kind == "revert"  # the first folder is reverted
            finish_reverts(histories_in(place))
            assert written(place) == ["two"]  # it lives, and is at it
        finally:
            child.kill()
            child.stdout.close()
            child.wait()


def test_what_is_deleted_is_forgotten_in_every_folder(place: Path) -> None:
    """S1: of folders that are in use here, and of those that other programs used."""
    write(place, "two", 2, "other.txt")
    beside = histories_in(place)
    first = beside.at(place / "one")
    assert first is not None
    assert len(first.of_conversation("conv_1")) == 1
    beside.forget(["conv_1"])
    kept = [history.of_conversation("conv_1", "conv_2") for history in (first, history_of(place / "two"))]
    assert [[record.turn for record in records] for records in kept] == [[], ["turn_2"]]


def test_where_one_is_not_as_it_was_left_none_is_touched(place: Path) -> None:
    (place / "two" / "new.txt").write_text("changed since")
    with pytest.raises(RevertConflict):
        revert(place, force=False)
    assert written(place) == ["one", "two"]


class Fails(list[ChangeRecord]):
    def __iter__(self) -> Iterator[ChangeRecord]:
        raise OSError("the disk is gone")


def test_where_the_second_fails_the_first_is_taken_back_at_once(place: Path) -> None:
    """B3"""
    first, (second, others) = parts_of(place)
    parts = [first, (second, Fails(others))]
    with pytest.raises(OSError, match="the disk is gone"):
        revert_together(
            histories_in(place), parts, conversation="conv_1", turn="turn_1", force=True, leaf=None
        )
    assert written(place) == ["one", "two"]
    assert not (place / "snapshots" / "together.json").exists()


def test_what_cannot_be_taken_back_at_once_is_taken_back_later(place: Path) -> None:
    """B3: the second folder fails, and then the first is out of reach."""

    class FailsAlone(Fails):
        def __iter__(self) -> Iterator[ChangeRecord]:
            (place / "one").rename(place / "away")
            (place / "one").write_text("in the way")
            return super().__iter__()

    (first, records), (second, others) = parts_of(place)
    parts = [(first, records), (second, FailsAlone(others))]
    beside = histories_in(place)
    with pytest.raises(BadRequest, match="is missing"):
        revert_together(beside, parts, conversation="conv_1", turn="turn_1", force=True, leaf=None)
    (place / "one").unlink()
    (place / "away").rename(place / "one")
    assert written(place) == ["two"]
    finish_reverts(histories_in(place))
    assert written(place) == ["one", "two"]
    (place / "one" / "new.txt").unlink()
    finish_reverts(histories_in(place))
    assert written(place) == ["two"]  # it is done once


def test_it_is_told_where_a_damaged_record_keeps_one_from_being_taken_back(place: Path) -> None:
    """B3: that is not another program, which would be at it."""
    note = {"at": 0.0, "conversation": "conv_1", "folders": [str(place / "one"), str(place / "two")]}
    (place / "snapshots" / "together.json").write_text(json.dumps(note))
    history_of(place / "two").file.write_bytes(b"no database")
    with pytest.raises(StoreUnavailable, match="The record of the workspace cannot be used"):
        finish_reverts(histories_in(place))


@pytest.mark.slow
def test_what_a_killed_program_did_in_one_of_them_is_taken_back(place: Path) -> None:
    """B3 × S3: by the next program that has a record of them."""
    kill_between(place)
    finish_reverts(Histories(place / "snapshots", records=False))
    assert written(place) == ["two"]
    finish_reverts(histories_in(place))
    assert written(place) == ["one", "two"]
    second = history_of(place / "two")
    assert second.waiting_leaves() == []  # the conversation stays where it was
    finish_reverts(histories_in(place))
    revert(place)
    assert written(place) == []


@pytest.mark.slow
def test_what_a_person_wrote_after_the_kill_is_left_to_them(place: Path) -> None:
    """Recovery keeps the user's text, because it cannot ask whether to replace it (B3 × S3)."""
    for name in ("one", "two"):
        write(place, name, 1, "other.txt")
    kill_between(place)
    (place / "one" / "new.txt").write_text("mine")
    finish_reverts(histories_in(place))
    assert written(place, "other.txt") == ["one", "two"]
    assert (place / "one" / "new.txt").read_text() == "mine"


@pytest.mark.slow
def test_the_next_revert_takes_back_what_a_killed_program_left(place: Path) -> None:
    """A running program undoes the half revert of a killed one before its next revert (B3 × S3)."""
    for name in ("one", "two"):
        write(place, name, 2, "other.txt")
    kill_between(place)
    revert(place, 2)
    assert (written(place), written(place, "other.txt")) == (["one", "two"], [])


@pytest.mark.slow
def test_what_was_done_in_all_of_them_stays(place: Path) -> None:
    """A restart of this program or another one reverts nothing (B3)."""
    subprocess.run([sys.executable, "-c", REVERT, str(place)], check=True, input=b"go\n")
    finish_reverts(histories_in(place))
    assert written(place) == []
    second = history_of(place / "two")
    assert [record.leaf_after for record in second.waiting_leaves()] == ["msg_1"]
