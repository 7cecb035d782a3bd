"""Revert changes in folders without write permission, in a program without root's rights (B3)."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from dragoman.errors import BadRequest, RevertConflict
from dragoman.workspace.states import SnapshotLimits
from dragoman.workspace.workspaces import copy_folder
from tests.workspace.folders import go_back, history_of, picture, record

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="root is root there")]
_DROP_FROM_BOUNDS, _WRITE_ANYTHING, _READ_ANYTHING = 24, 1, 2


def closes_what_it_wrote(root: Path) -> None:
    (root / "d" / "x").write_text("changed")
    (root / "d").chmod(0o555)


def closes_what_it_made(root: Path) -> None:
    (root / "d" / "new").mkdir()
    (root / "d" / "new" / "y").write_text("y")
    (root / "d" / "new").chmod(0o555)
    (root / "d").chmod(0o555)


def lets_nobody_look(root: Path) -> None:
    (root / "d").chmod(0)


def _there_and_back(work: Callable[[Path], None], root: Path) -> None:
    history = history_of(root)
    before = picture(root)
    told = record(history, lambda: work(root))
    after = picture(root)
    back = go_back(history, told)
    assert picture(root) == before
    again = go_back(history, back)
    assert picture(root) == after
    go_back(history, again)
    assert picture(root) == before


def test_what_a_call_closed_goes_back_and_comes_again(tmp_path: Path) -> None:
    _play("closed", tmp_path)


def test_what_can_neither_be_done_nor_undone_is_told_and_holds_nothing_up(tmp_path: Path) -> None:
    """Another program closes both folders in the middle."""
    _play("refused", tmp_path)


def test_what_cannot_be_looked_into_is_told_with_each_record(tmp_path: Path) -> None:
    """B1: the kernel reports no change in it."""
    _play("unseen", tmp_path)


def _unseen(root: Path) -> None:
    history = history_of(root, watch_from=0)
    (root / "d").chmod(0)
    told = record(history, lambda: (root / "closed").touch(0))
    why = "(Permission denied)"
    assert told is not None
    assert {*told.notes} == {f"d: it cannot be looked into {why}", f"closed: it cannot be read {why}"}
    named = history.begin(conversation="conv_1", turn="turn_2", step=1, call="call_1", paths=["d/x"])
    assert named == [f"d/x: it cannot be looked at {why}"]
    (root / "d").chmod(0o755)


def test_a_file_that_cannot_be_read_is_not_left_out_of_a_copy(tmp_path: Path) -> None:
    """B3: the copy is refused."""
    _play("copied", tmp_path)


def _copied(root: Path) -> None:
    (root / "d" / "x").chmod(0)
    with pytest.raises(BadRequest, match="Permission denied"):
        copy_folder(root, root.parent / "copies" / "one", SnapshotLimits())
    assert [*(root.parent / "copies").iterdir()] == []


def _refused(root: Path) -> None:
    history = history_of(root)
    (root / "e").mkdir()

    def work() -> None:
        (root / "d" / "x").write_text("changed")
        (root / "e" / "new").write_text("new")

    def close(step: int) -> None:
        if step == 1:  # `new` is deleted by now
            for folder in ("d", "e"):
                (root / folder).chmod(0o555)

    told = record(history, work)
    assert told is not None
    with pytest.raises(RevertConflict) as raised:
        history.revert([told], conversation="conv_1", turn="turn_1", on_step=close)
    assert [path for path, _ in raised.value.conflicts] == ["d/x", "e/new"]
    assert history.of_conversation("conv_1") == [told]


def _play(name: str, folder: Path) -> None:
    """Run in a process that obeys file modes, whichever user runs the tests."""
    lines = f"import sys; from {__name__} import main; main(*sys.argv[1:])"
    subprocess.run([sys.executable, "-c", lines, name, str(folder)], check=True, preexec_fn=_be_nobody)


def _be_nobody() -> None:
    for power in (_WRITE_ANYTHING, _READ_ANYTHING):
        ctypes.CDLL(None).prctl(_DROP_FROM_BOUNDS, power)


def main(name: str, folder: str) -> None:
    for number, play in enumerate(_PLAYS[name]):
        root = Path(folder, str(number), "work")
        (root / "d").mkdir(parents=True)
        (root / "d" / "x").write_text("x")
        play(root)


_PLAYS: dict[str, list[Callable[[Path], None]]] = {
    "closed": [
        partial(_there_and_back, closes_what_it_wrote),
        partial(_there_and_back, closes_what_it_made),
        partial(_there_and_back, lets_nobody_look),
    ],
    "refused": [_refused],
    "unseen": [_unseen],
    "copied": [_copied],
}
