"""A history records and can revert all changes of calls to a folder (B1, B3)."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from dragoman.errors import BadRequest, RevertConflict
from dragoman.workspace.revert import limited
from dragoman.workspace.states import INTERRUPTED, SnapshotLimits
from tests.workspace.folders import go_back, history_of, paths_of, picture, record, stored


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "src" / "b.py").write_text("print(1)\n")
    (root / "src" / "deep" / "c.bin").write_bytes(bytes(range(256)))
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "to-a").symlink_to("a.txt")
    return root


def test_whatever_a_call_did_to_the_folder_is_told_and_taken_back(root: Path) -> None:
    """B1, B3: writes, deletions, modes, links, new and deleted folders."""
    before = picture(root)
    history = history_of(root)

    def work() -> None:
        (root / "a.txt").write_text("one\nTWO\n")
        shutil.rmtree(root / "src" / "deep")
        (root / "run.sh").chmod(0o600)
        (root / "to-a").unlink()
        (root / "to-a").symlink_to("run.sh")
        (root / "new" / "folder").mkdir(parents=True)
        (root / "new" / "folder" / "x").write_text("x")
        (root / "src" / "b.py").rename(root / "src" / "z.py")

    told = record(history, work)
    assert told is not None
    assert paths_of(told) == [
        "a.txt",
        "new",
        "new/folder",
        "new/folder/x",
        "run.sh",
        "src/b.py",
        "src/deep",
        "src/deep/c.bin",
        "src/z.py",
        "to-a",
    ]
    after = picture(root)
    back = go_back(history, told)
    assert picture(root) == before
    go_back(history, back)
    assert picture(root) == after


def test_a_file_that_becomes_a_folder_becomes_a_file_again(root: Path) -> None:
    """B3"""
    before = picture(root)
    history = history_of(root)

    def work() -> None:
        (root / "a.txt").unlink()
        (root / "a.txt").mkdir()
        (root / "a.txt" / "inner").write_text("x")
        shutil.rmtree(root / "src")
        (root / "src").symlink_to("/etc")

    told = record(history, work)
    after = picture(root)
    back = go_back(history, told)
    assert picture(root) == before
    go_back(history, back)
    assert picture(root) == after


def test_a_call_that_changes_nothing_leaves_no_record(root: Path) -> None:
    """B1"""
    history = history_of(root)
    assert (history.forget(["conv_1"]), history.of_conversation("conv_1")) == (0, [])
    assert not history.file.exists()
    assert record(history, lambda: None) is None
    assert record(history, lambda: os.utime(root / "a.txt")) is None
    assert history.of_conversation("conv_1") == []


def test_a_call_whose_conversation_is_deleted_leaves_no_record(root: Path) -> None:
    """S1, B1: and it ends once. Another one runs beside it."""
    history = history_of(root)
    history.begin(conversation="conv_2", turn="turn_2", step=1, call="call_2", paths=None)

    def work() -> None:
        (root / "a.txt").write_text("changed")
        history.forget(["conv_1"])

    assert record(history, work) is None
    assert history.end("turn_1", "call_1") is None
    assert history.of_conversation("conv_1") == history.of_path("a.txt") == []


def test_folders_within_more_than_a_hundred_are_told_to_be_left_out(root: Path) -> None:
    """B1"""
    told = record(history_of(root), lambda: (root / "/".join("d" * 102)).mkdir(parents=True))
    assert told is not None
    deepest = "/".join("d" * 101)
    assert paths_of(told)[-1] == deepest
    assert told.notes == (f"{deepest}: folders below are too deep to be recorded",)


def test_what_a_person_did_before_the_call_is_not_the_calls(root: Path) -> None:
    """B1"""
    history = history_of(root)
    record(history, lambda: None)
    (root / "mine.txt").write_text("mine")
    told = record(history, lambda: (root / "a.txt").write_text("changed"))
    assert told is not None
    assert paths_of(told) == ["a.txt"]


def test_named_paths_are_told_without_a_look_at_the_rest(root: Path) -> None:
    """For a tool that names its files, Dragoman scans only those and the folders made for them (B1)."""
    history = history_of(root)

    def work() -> None:
        (root / "p" / "q").mkdir(parents=True)
        (root / "p" / "q" / "r.txt").write_text("r")
        (root / "beside.txt").write_text("somebody else")

    told = record(history, work, paths=["p/q/r.txt"])
    assert told is not None
    assert paths_of(told) == ["p", "p/q", "p/q/r.txt"]
    go_back(history, told)
    assert not (root / "p").exists()
    assert (root / "beside.txt").exists()


def test_a_path_is_recorded_however_a_call_spells_it(root: Path) -> None:
    """Custom tools name paths in the spelling of their arguments (B1)."""
    (root / "to-src").symlink_to("src")
    (root / "linked.txt").write_text("mine")
    (root / "to-linked").symlink_to("linked.txt")
    history = history_of(root)
    spelled = [
        "./a.txt",
        "src//b.py",
        "to-linked",
        "to-src/../src/new.py",
        str(root / "whole.txt"),
        "to-src/deep/linked.txt",
    ]

    def work() -> None:
        for path in spelled:
            (root / path).write_text("by a call")

    told = record(history, work, paths=[*spelled, "../outside.txt", "/etc/hosts", "\0", "."])
    assert told is not None
    files = ["a.txt", "linked.txt", "src/b.py", "src/deep/linked.txt", "src/new.py", "whole.txt"]
    assert paths_of(told) == files
    go_back(history, told)
    assert (root / "a.txt").read_text() == "one\ntwo\n"
    assert (root / "to-linked").is_symlink()
    assert (root / "linked.txt").read_text() == "mine"
    assert not (root / "whole.txt").exists()


def test_calls_that_run_beside_each_other_are_one_record(root: Path) -> None:
    """A scan cannot tell which of the calls made a change (B1)."""
    history = history_of(root)
    both = {"conversation": "conv_1", "turn": "turn_1", "step": 1}
    history.begin(**both, call="one", paths=["a.txt"])  # type: ignore[arg-type]
    (root / "a.txt").write_text("by the first")
    history.begin(**both, call="two", paths=None)  # type: ignore[arg-type]
    (root / "new.txt").write_text("by the second")
    assert history.end("turn_1", "one") is None
    told = history.end("turn_1", "two")
    assert told is not None
    assert told.calls == ("one", "two")
    assert paths_of(told) == ["a.txt", "new.txt"]


def test_what_a_person_did_before_a_file_was_named_is_not_the_work_of_a_call_that_ran_by_then(
    root: Path,
) -> None:
    """A second call names files while a first one runs. A revert keeps the user's files (B1 × B3)."""
    history = history_of(root)
    record(history, lambda: None)
    (root / "a.txt").write_text("by the person")
    (root / "mine.txt").write_text("by the person")
    both = {"conversation": "conv_1", "turn": "turn_1", "step": 1}
    history.begin(**both, call="one", paths=["b.txt"])  # type: ignore[arg-type]
    history.begin(**both, call="two", paths=["a.txt", "mine.txt"])  # type: ignore[arg-type]
    for name in ("a.txt", "b.txt", "mine.txt"):
        (root / name).write_text("by a call")
    history.end("turn_1", "one")
    told = history.end("turn_1", "two")
    assert told is not None
    assert paths_of(told) == ["a.txt", "b.txt", "mine.txt"]
    go_back(history, told)
    assert (root / "a.txt").read_text() == (root / "mine.txt").read_text() == "by the person"
    assert not (root / "b.txt").exists()


def test_what_turns_saw_that_ran_at_the_same_time_is_taken_back_with_all_of_them(root: Path) -> None:
    """Both turns report the change, and nothing else changed the file in between (B3)."""
    history = history_of(root)
    for turn in ("turn_1", "turn_2"):
        history.begin(conversation="conv_1", turn=turn, step=1, call=turn, paths=None)
    (root / "new.txt").write_text("by one of them")
    told = [history.end(turn, turn) for turn in ("turn_1", "turn_2")]
    assert [paths_of(one) for one in told] == [["new.txt"], ["new.txt"]]
    history.revert(history.of_conversation("conv_1"), conversation="conv_1", turn="turn_1")
    assert not (root / "new.txt").exists()


# ── what is not recorded ──────────────────────────────────────────────────────────────────────────


def test_what_is_too_big_is_said(root: Path) -> None:
    """The record reports its size limits, and a revert leaves a file without recorded bytes alone (B1)."""
    history = history_of(root, limits=SnapshotLimits(file_bytes=1000))

    def work() -> None:
        (root / "big").write_bytes(b"x" * 1001)
        (root / "a.txt").write_text("changed")

    told = record(history, work)
    assert told is not None
    assert any("big" in note for note in told.notes)
    back = go_back(history, told)
    assert (root / "big").exists()
    assert any("big" in note for note in back.notes)
    assert (root / "a.txt").read_text() == "one\ntwo\n"


def test_what_a_person_wrote_and_is_too_big_to_be_kept_is_never_replaced(root: Path) -> None:
    """Even a forced revert keeps this file, because its bytes could not be restored. Others are reverted (B1
    × B3)."""
    history = history_of(root, limits=SnapshotLimits(file_bytes=1000))

    def work() -> None:
        (root / "a.txt").write_text("by the call")
        (root / "run.sh").write_text("by the call")

    told = record(history, work)
    (root / "a.txt").write_text("mine" * 1000)
    with pytest.raises(RevertConflict, match=r"a\.txt: it was changed since"):
        go_back(history, told)
    back = go_back(history, told, force=True)
    assert (root / "a.txt").read_text() == "mine" * 1000
    assert [change.path for change in back.changes] == ["run.sh"]
    assert any("a.txt" in note for note in back.notes)


@pytest.mark.parametrize("limits", [SnapshotLimits(files=3), SnapshotLimits(seconds=0.0)])
def test_a_folder_that_cannot_be_looked_through_is_said(root: Path, limits: SnapshotLimits) -> None:
    """B1"""
    history = history_of(root, limits=limits)
    notes = history.begin(conversation="conv_1", turn="turn_1", step=1, call="c", paths=None)
    assert notes
    assert "not recorded" in notes[0]
    (root / "a.txt").write_text("changed")
    told = history.end("turn_1", "c")
    assert told is not None
    assert told.notes == tuple(notes)
    assert told.changes == ()


def test_what_a_call_did_to_a_folder_that_it_made_too_big_is_told_where_it_was_named(root: Path) -> None:
    """B1: the folder is not looked through again for a while, even if it is smaller by then."""
    history = history_of(root, limits=SnapshotLimits(files=8))
    about = {"conversation": "conv_1", "turn": "turn_1", "step": 1, "paths": ["a.txt"], "everything": True}
    assert history.begin(**about, call="one") == []  # type: ignore[arg-type]
    for name in ("a.txt", "new", "newer"):
        (root / name).write_text("by the call")
    told = history.end("turn_1", "one")
    assert told is not None
    why = "the folder has more than 8 files that are not ignored: what "
    assert paths_of(told) == ["a.txt"]
    assert told.notes == (f"{why}was changed beside what was named is not recorded",)
    (root / "new").unlink()
    notes = history.begin(**about, call="two")  # type: ignore[arg-type]
    assert notes == [f"{why}this call changes beside what it names is not recorded"]


@pytest.mark.parametrize("named", [False, True])
def test_what_a_killed_program_did_to_a_folder_that_is_too_big_by_now_is_told_where_it_was_named(
    root: Path, named: bool
) -> None:
    """B1 × S3"""
    about = {"conversation": "conv_1", "turn": "turn_1", "step": 1, "call": "c", "everything": True}
    history_of(root).begin(**about, paths=["run.sh"] if named else None)  # type: ignore[arg-type]
    (root / "a.txt").write_text("changed")
    (root / "run.sh").write_text("changed")
    history = history_of(root, limits=SnapshotLimits(files=3))
    history.settle("turn_1")
    (told,) = history.of_conversation("conv_1")
    assert (told.notes[0], paths_of(told), len(told.notes)) == (INTERRUPTED, ["run.sh"] * named, 2)
    beside = " beside what was named" * named
    assert told.notes[1].endswith(f": what was changed{beside} is not recorded")
    history.settle("turn_1")
    assert history.of_conversation("conv_1") == [told]


def test_what_there_was_no_time_to_look_through_is_said(root: Path) -> None:
    """B1 × S3: the changes that were found are told."""
    history_of(root).begin(conversation="conv_1", turn="turn_1", step=1, call="c", paths=None)
    (root / "a.txt").write_text("changed")
    history = history_of(root, limits=SnapshotLimits(seconds=0.0))
    history.settle("turn_1")
    (told,) = history.of_conversation("conv_1")
    assert (told.notes[0], paths_of(told)) == (INTERRUPTED, ["a.txt"])
    assert told.notes[1].endswith(": not everything that was changed is recorded")


class Killed(BaseException):
    """The end of a program, which nothing handles."""


@pytest.mark.parametrize("error", [Killed, RuntimeError])
def test_a_revert_that_breaks_off_is_finished_after_a_kill_and_undone_otherwise(
    root: Path, error: type[BaseException]
) -> None:
    """B3 × S3: and not begun again later."""
    before = picture(root)
    history = history_of(root)
    names = ("a.txt", "src/b.py")
    told = record(history, lambda: [(root / name).write_text("by the call") for name in names])
    assert told is not None
    after = picture(root)

    def stop(step: int) -> None:
        if step == 1:
            assert picture(root) not in (before, after)
            if error is Killed:
                (root / "src" / ".dragoman-0123456789abcdef").write_text("half of it")
            raise error

    with pytest.raises(error):
        history.revert([told], conversation="conv_1", turn="turn_1", on_step=stop)
    reverted = error is Killed
    for again in (history, history_of(root)):
        assert [one.kind for one in again.of_conversation("conv_1")] == ["calls", "revert"][: 1 + reverted]
        assert picture(root) == (before if reverted else after)


def test_a_revert_that_cannot_be_finished_after_a_kill_is_undone(root: Path) -> None:
    """B3 × S3: what a person put in the way stays."""
    history = history_of(root)

    def work() -> None:
        (root / "a.txt").write_text("by the call")
        shutil.rmtree(root / "src")

    told = record(history, work)
    assert told is not None

    def stop(step: int) -> None:
        if (root / "a.txt").read_text() != "by the call":
            raise Killed

    with pytest.raises(Killed):
        history.revert([told], conversation="conv_1", turn="turn_1", on_step=stop)
    shutil.rmtree(root / "src")
    (root / "src").write_text("mine")
    for again in (history_of(root), history_of(root)):
        assert again.of_conversation("conv_1") == [told]
        assert ((root / "a.txt").read_text(), (root / "src").read_text()) == ("by the call", "mine")


def test_files_are_told_to_be_too_large_as_long_as_they_are(root: Path) -> None:
    """A call that may write anything is told that it could not be undone (B1)."""
    history = history_of(root, limits=SnapshotLimits(file_bytes=1000))
    for size in (1000, 1001, 1000):
        for number in range(7):
            (root / f"{number}.bin").write_bytes(bytes(size))
        notes = history.begin(conversation="conv_1", turn="turn_1", step=1, call=f"{size}", paths=None)
        names = ", ".join(f"{number}.bin (0.0 MB)" for number in range(5))
        large = f"too large to be recorded, so that no change of them can be undone: {names}, and 2 more"
        assert notes == ([large] if size > 1000 else [])
        history.end("turn_1", f"{size}")


def test_pipes_and_odd_names_do_no_harm(root: Path) -> None:
    """B1"""
    history = history_of(root)

    def work() -> None:
        os.mkfifo(root / "pipe")
        Path(os.fsdecode(os.fsencode(root) + b"/\xff.txt")).write_text("odd")

    told = record(history, work)
    assert told is not None
    assert told.changes == ()
    assert "UTF-8" in told.notes[0]


def test_the_records_are_private(root: Path) -> None:
    """No other user of the machine can read the records (B1)."""
    history = history_of(root)
    record(history, lambda: (root / "a.txt").write_text("x"))
    for path in history.file.parent.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(history.file.parent.stat().st_mode) == 0o700


def test_records_inside_the_workspace_are_not_part_of_it(root: Path) -> None:
    """B1"""
    history = history_of(root, folder=root / "chat.db.files" / "snapshots", skip=[root / "chat.db"])
    record(history, lambda: None)

    def work() -> None:
        (root / "chat.db").write_text("ours")
        (root / "chat.db.txt").write_text("not ours, though it is called like it")

    told = record(history, work)
    assert told is not None
    assert paths_of(told) == ["chat.db.txt"]


# ── the way back ──────────────────────────────────────────────────────────────────────────────────


def test_what_somebody_else_changed_since_is_asked_about(root: Path) -> None:
    """Nothing changes at first. A forced revert changes the file, and can be undone too (B3)."""
    history = history_of(root)

    def work() -> None:
        (root / "a.txt").write_text("by the call")
        (root / "run.sh").write_text("by the call")

    told = record(history, work)
    (root / "a.txt").write_text("by a person")
    before = picture(root)
    with pytest.raises(RevertConflict) as raised:
        go_back(history, told)
    assert [path for path, _ in raised.value.conflicts] == ["a.txt"]
    assert picture(root) == before
    back = go_back(history, told, force=True)
    assert (root / "a.txt").read_text() == "one\ntwo\n"
    go_back(history, back)
    assert picture(root) == before


def test_what_a_person_took_back_by_hand_is_no_conflict(root: Path) -> None:
    """B3"""
    before = picture(root)
    history = history_of(root)
    told = record(history, lambda: [(root / name).write_text("by the call") for name in ("a.txt", "new")])
    (root / "a.txt").write_text("one\ntwo\n")
    back = go_back(history, told)
    assert (paths_of(back), picture(root)) == (["new"], before)


def test_of_a_folder_with_another_mode_its_files_are_no_part(root: Path) -> None:
    """One that is new, or was a file, goes back with all that is in it (B3)."""
    history = history_of(root)

    def work() -> None:
        (root / "src" / "b.py").write_text("changed")
        (root / "src").chmod(0o700)
        (root / "a.txt").unlink()
        for name in ("a.txt", "new"):
            (root / name).mkdir()
            (root / name / "inner").write_text(name)

    told = record(history, work)
    assert told is not None

    def part(*paths: str) -> list[list[str]]:
        return [paths_of(one) for one in limited([told], paths, history.contents)]

    assert part("src") == [["src"]]
    assert part("src/b.py") == [["src", "src/b.py"]]
    assert part("a.txt") == part("a.txt/inner") == [["a.txt", "a.txt/inner"]]
    assert part("new") == part("new/inner") == [["new", "new/inner"]]
    assert part("none") == []


def test_a_file_that_moved_in_two_calls_goes_back_under_both_names(root: Path) -> None:
    """B3"""
    history = history_of(root)
    told = [
        record(history, lambda: shutil.copy(root / "a.txt", root / "b.txt"), call="one"),
        record(history, (root / "a.txt").unlink, call="two"),
    ]
    parts = limited([one for one in told if one is not None], ["b.txt"], history.contents)
    assert [paths_of(one) for one in parts] == [["b.txt"], ["a.txt"]]
    told.append(record(history, lambda: (root / "b.txt").write_text("other"), call="three", turn="turn_2"))
    told.append(record(history, (root / "run.sh").unlink, call="four"))
    parts = limited([one for one in told if one is not None], ["b.txt"], history.contents)
    assert [paths_of(one) for one in parts] == [["b.txt"], ["a.txt"], ["b.txt"]]


def test_a_pipe_in_place_of_a_file_is_asked_about_and_gives_way_to_force(root: Path) -> None:
    """The record of a pipe does not stop a forced revert from restoring the earlier file (B3)."""
    history = history_of(root)
    told = record(history, lambda: (root / "a.txt").write_text("by the call"))
    (root / "a.txt").unlink()
    os.mkfifo(root / "a.txt")
    with pytest.raises(RevertConflict, match="changed since"):
        go_back(history, told)
    go_back(history, told, force=True)
    assert (root / "a.txt").read_text() == "one\ntwo\n"


def test_a_folder_that_is_gone_is_told(root: Path) -> None:
    """B3"""
    history = history_of(root)
    told = record(history, lambda: (root / "a.txt").write_text("by the call"))
    root.rename(root.with_name("elsewhere"))
    with pytest.raises(BadRequest, match="is missing"):
        go_back(history, told, force=True)
    assert not root.exists()


def test_what_somebody_changed_in_between_is_asked_about(root: Path) -> None:
    """B3: two calls changed it, and a person between them."""
    history = history_of(root)
    first = record(history, lambda: (root / "a.txt").write_text("1"))
    (root / "a.txt").write_text("by a person")
    second = record(history, lambda: (root / "a.txt").write_text("2"))
    with pytest.raises(RevertConflict, match="in between"):
        go_back(history, first, second)


def test_a_folder_with_something_of_others_in_it_stays(root: Path) -> None:
    """B3"""
    history = history_of(root)

    def work() -> None:
        (root / "new").mkdir()
        (root / "new" / "x").write_text("x")

    told = record(history, work)
    (root / "new" / "mine").write_text("mine")
    back = go_back(history, told)
    assert sorted(path.name for path in (root / "new").iterdir()) == ["mine"]
    assert any("not empty" in note for note in back.notes)


def test_what_changes_during_a_revert_stops_it(root: Path) -> None:
    """B3: the files that it reverted by then come back."""
    history = history_of(root)
    told = record(history, lambda: [(root / name).write_text("by the call") for name in ("a.txt", "run.sh")])
    assert told is not None

    def change(step: int) -> None:
        if step == 1:
            (root / "a.txt").write_text("mine")

    with pytest.raises(RevertConflict, match=r"a\.txt: it was changed since"):
        history.revert([told], conversation="conv_1", turn="turn_1", on_step=change)
    assert [(root / name).read_text() for name in ("a.txt", "run.sh")] == ["mine", "by the call"]


def test_a_folder_in_place_of_a_file_stays_with_something_of_others_in_it(root: Path) -> None:
    """B3"""
    history = history_of(root)

    def work() -> None:
        (root / "a.txt").unlink()
        (root / "a.txt").mkdir()
        (root / "a.txt" / "x").write_text("x")

    told = record(history, work)
    (root / "a.txt" / "mine").write_text("mine")
    before = picture(root)
    with pytest.raises(RevertConflict, match=r"a\.txt: Directory not empty"):
        go_back(history, told)
    assert picture(root) == before


def test_a_link_put_in_the_way_leads_nowhere(root: Path) -> None:
    """A revert, forced or not, writes and deletes nothing outside the workspace (B3)."""
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "c.bin").write_text("not yours")
    history = history_of(root)
    told = record(history, (root / "src" / "deep" / "c.bin").unlink)
    (root / "src" / "deep").rmdir()
    (root / "src" / "deep").symlink_to(outside)
    for force in (False, True):
        with pytest.raises(RevertConflict):
            go_back(history, told, force=force)
    assert picture(outside) == {"c.bin": ("file", 0o644, b"not yours")}
    assert (root / "src" / "deep").is_symlink()


def test_a_forced_revert_replaces_a_link_and_not_what_it_leads_to(root: Path) -> None:
    """B3"""
    before = picture(root)
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "c.bin").write_text("not yours")
    history = history_of(root)
    told = record(history, lambda: shutil.rmtree(root / "src" / "deep"))
    (root / "src" / "deep").symlink_to(outside)
    with pytest.raises(RevertConflict):
        go_back(history, told)
    go_back(history, told, force=True)
    assert picture(root) == before
    assert picture(outside) == {"c.bin": ("file", 0o644, b"not yours")}


def test_a_path_that_leads_out_is_not_even_looked_at(root: Path) -> None:
    """A tool's path can be nonsense. The call is refused later, and no byte of the path is stored before (B1
    × C8)."""
    (root.parent / "secret.txt").write_text("the secret beside the workspace")
    (root / "out").symlink_to(root.parent)
    history = history_of(root)
    named = ["../secret.txt", "a/../../secret.txt", "out/secret.txt", "/secret.txt"]
    named += ["x\0y", "n" * 300, "d/" * 200]
    assert record(history, lambda: None, paths=named) is None
    assert b"beside the workspace" not in stored(history)


def test_a_link_is_restored_and_not_followed(root: Path) -> None:
    """A file that became a link out of the workspace is a file again, and the link's target stays untouched
    (B3)."""
    outside = root.parent / "outside.txt"
    outside.write_text("not yours")
    history = history_of(root)

    def work() -> None:
        (root / "a.txt").unlink()
        (root / "a.txt").symlink_to(outside)

    told = record(history, work)
    go_back(history, told)
    assert (root / "a.txt").read_text() == "one\ntwo\n"
    assert not (root / "a.txt").is_symlink()
    assert outside.read_text() == "not yours"


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_where_the_system_refuses_nothing_is_changed(root: Path) -> None:
    """B3: all or nothing."""
    history = history_of(root)

    def work() -> None:
        (root / "a.txt").write_text("x")
        (root / "src" / "b.py").unlink()

    told = record(history, work)
    (root / "src").chmod(0o555)
    before = picture(root)
    try:
        with pytest.raises(RevertConflict):
            go_back(history, told)
        assert picture(root) == before
    finally:
        (root / "src").chmod(0o755)
