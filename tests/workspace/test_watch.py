"""If the kernel reports changes, Dragoman does not walk the folder, and misses nothing (B1)."""

from __future__ import annotations

import mmap
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from dragoman.workspace.folder import open_root
from dragoman.workspace.full_scan import WholeLooks
from dragoman.workspace.inotify import FolderWatch, covers
from dragoman.workspace.known import Known
from dragoman.workspace.states import SnapshotLimits
from tests.workspace.folders import history_of, open_files, picture, record

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "a.txt").write_text("one\n")
    (root / "src" / "b.py").write_text("print(1)\n")
    (root / "src" / "deep" / "c.py").write_text("print(2)\n")
    return root


class Watched:
    """Looks at a folder as a history does, without one."""

    def __init__(self, root: Path, trusted: float = 300.0) -> None:
        self.known = Known()
        self.looks = WholeLooks(root, SnapshotLimits(), (), watch_from=0, trusted=trusted)
        self.changed()

    def changed(self) -> list[str]:
        look = self.looks.look(self.known, lambda data: sha256(data).hexdigest(), None)
        return sorted(change.path for change in look.changes)


@pytest.fixture
def watch(root: Path) -> Iterator[FolderWatch]:
    opened = open_root(root)
    watch = FolderWatch(opened.fd)
    watch.begin_walk()
    watch.add("", opened.fd)
    yield watch
    watch.close()
    opened.close()


def test_what_was_done_is_reported_at_once_and_once(root: Path, watch: FolderWatch) -> None:
    """B1: no waiting, and no thread."""
    (root / "a.txt").write_text("two\n")
    (root / "new").mkdir()
    assert watch.peek() == {"": {"a.txt", "new"}}
    assert watch.take() == {"": {"a.txt", "new"}}
    assert watch.take() == {}


def test_more_than_the_queue_holds_is_said_to_be_lost(root: Path, watch: FolderWatch) -> None:
    """After a lost report, Dragoman scans every file (B1)."""
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if most > 100_000:
        pytest.skip("the queue of this machine is too long to be filled in a test")
    for number in range(most + 100):
        os.utime(root / ("a.txt" if number % 2 else "src"))  # the same twice would be one report
    assert watch.take() is None
    (root / "a.txt").write_text("three\n")
    assert watch.take() == {"": {"a.txt"}}


def test_of_a_folder_that_another_one_replaced_nothing_is_reported(root: Path, watch: FolderWatch) -> None:
    """B1: a folder that moved within the workspace is reported under its new name."""

    def add(path: str) -> None:
        folder = open_root(root / path)
        watch.add(f"{path}/", folder.fd)
        folder.close()

    add("src")
    add("src/deep")
    (root / "src" / "deep").rename(root / "deep")
    (root / "src").rename(root.parent / "away")
    (root / "src").mkdir()
    add("src")
    add("deep")
    watch.take()
    for file in (root.parent / "away" / "x", root / "src" / "y", root / "deep" / "z"):
        file.write_text("new")
    assert watch.take() == {"src/": {"y"}, "deep/": {"z"}}
    (root / "deep" / "z1").write_text("new")
    watch.begin_walk()
    add("src")
    watch.end_walk()  # the others are not there any more
    for file in (root / "top", root / "src" / "y2", root / "deep" / "z2"):
        file.write_text("new")
    assert watch.take() == {"src/": {"y2"}}
    assert watch.failed == ""
    watch.close()
    add("src")
    assert watch.failed == "inotify: Bad file descriptor"


def test_a_report_of_a_folder_covers_what_is_in_it() -> None:
    """B1"""
    reported = [{"": {"src"}}, {"lib/": {"x"}}]
    assert covers(reported, "src/deep/c.py")
    assert covers(reported, "lib/x")
    assert not covers(reported, "lib/y")
    assert not covers(reported, "lib")


def test_what_a_new_ignore_file_hides_is_not_told_any_more(root: Path) -> None:
    """B1: also deep below it. No look leaves the folder open."""
    before = open_files(root)
    watched = Watched(root)
    watched.changed()
    (root / "src" / ".gitignore").write_text("c.py\n")
    assert "src/.gitignore" in watched.changed()
    (root / "src" / "deep" / "c.py").write_text("hidden")
    (root / "a.txt").write_text("shown")
    assert watched.changed() == ["a.txt"]
    assert open_files(root) == before


def _fill_at_once(root: Path) -> None:
    (root / "made" / "in" / "one").mkdir(parents=True)
    (root / "made" / "in" / "one" / "go").write_text("x")


def _swap(root: Path) -> None:
    (root / "src").rename(root / "old")
    (root / "src").mkdir()
    (root / "src" / "b.py").write_text("other\n")
    (root / "old" / "deep" / "c.py").write_text("after the move\n")


def _map(root: Path) -> None:
    with (root / "a.txt").open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[:3] = b"two"


def _replace_by_file(root: Path) -> None:
    shutil.rmtree(root / "src")
    (root / "src").write_text("a file")


def _out_and_in(root: Path) -> None:
    (root / "src").rename(root.parent / "away")
    (root.parent / "away" / "b.py").write_text("changed outside\n")
    (root.parent / "away").rename(root / "src")


def _remove(root: Path) -> None:
    (root / "a.txt").unlink()


WORKS: list[Callable[[Path], object]] = [_fill_at_once, _swap, _map, _replace_by_file, _out_and_in, _remove]


@pytest.mark.parametrize("work", WORKS)
def test_folders_that_move_and_fill_are_told_as_by_a_walk(root: Path, work: Callable[[Path], object]) -> None:
    """Cases: a watch set late, a watch that moved with its folder, bytes written through memory, each
    repeated (B1)."""
    walked = shutil.copytree(root, root.parent / "walked" / "work")
    watching, walking = history_of(root, watch_from=0), history_of(walked, watch_from=10**9)
    for history in (watching, walking):
        record(history, lambda: None)
    told, expected = record(watching, lambda: work(root)), record(walking, lambda: work(walked))
    assert told is not None
    assert expected is not None
    assert (told.changes, told.notes) == (expected.changes, expected.notes)
    assert picture(root) == picture(walked)
    for place in list(picture(root)):  # every current file is watched
        if (root / place).is_file():
            again = record(watching, lambda place=place: (root / place).write_text("once more"))  # type: ignore[misc]
            assert again is not None
            assert [change.path for change in again.changes] == [place]


@pytest.mark.parametrize("size", [4, 20_000_000])
def test_a_file_with_two_names_is_always_looked_at(root: Path, size: int) -> None:
    """The kernel reports no write by the name outside the folder (B1). A second walk reads no large file
    again."""
    os.truncate(root / "a.txt", size)
    outside = root.parent / "outside"
    outside.hardlink_to(root / "a.txt")
    watched = Watched(root)
    watched.looks.walk_next()
    assert watched.changed() == []
    outside.write_text("by another name\n")
    assert watched.changed() == ["a.txt"]


def test_a_pipe_in_place_of_a_file_is_told_to_be_gone(root: Path) -> None:
    """B1"""
    watched = Watched(root)
    (root / "a.txt").unlink()
    os.mkfifo(root / "a.txt")
    assert watched.changed() == ["a.txt"]


def test_where_others_may_write_each_look_is_a_walk(
    watch: FolderWatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The kernel reports no change on a network file system, and none in `/proc` (B1)."""
    caplog.set_level("INFO")
    place = Path("/proc/sys/fs/inotify")
    Watched(place)
    assert "cannot watch the workspace: a file system that others may write to (0x9fa0)" in caplog.text
    opened = open_root(place)
    watch.add("mounted/", opened.fd)
    opened.close()
    assert watch.failed == "mounted/ is on another file system"


def test_ignore_rules_that_change_hold_from_the_next_turn_on(root: Path) -> None:
    """The rule also applies to a folder with a watch, and to one created meanwhile (B1, B4)."""
    history = history_of(root, watch_from=0)
    record(history, lambda: None)

    def work() -> None:
        (root / "src" / ".gitignore").write_text("*.log\n")
        (root / "src" / "told.log").write_text("x")
        (root / "new").mkdir()
        (root / "new" / ".gitignore").write_text("*.log\n")

    told = record(history, work)
    assert told is not None
    assert "src/told.log" in [change.path for change in told.changes]

    def more() -> None:
        for folder in ("src", "new"):
            (root / folder / "hidden.log").write_text("x")
            (root / folder / "seen").write_text("x")

    told = record(history, more, turn="turn_2")
    assert told is not None
    assert [change.path for change in told.changes] == ["new/seen", "src/seen"]

    record(history, lambda: (root / "src" / ".gitignore").write_text("*.tmp\n"), turn="turn_3")
    told = record(history, lambda: [(root / "src" / n).write_text("") for n in ("x.tmp", "y")], turn="turn_4")
    assert told is not None
    assert [change.path for change in told.changes] == ["src/y"]


@pytest.mark.parametrize("name", ["a.txt", "new.txt"])
def test_what_is_looked_at_although_it_is_ignored_is_not_told_as_new(root: Path, name: str) -> None:
    """The call that named the file is over, and the file became ignored meanwhile, or was made then (B1 ×
    B3)."""
    history = history_of(root, watch_from=0)
    history.begin(conversation="conv_1", turn="turn_1", step=1, call="one", paths=[name])
    (root / ".gitignore").write_text(f"{name}\n")
    for call in ("two", "three"):
        history.begin(conversation="conv_1", turn="turn_2", step=1, call=call, paths=None)
        (root / name).write_text(call)
    record(history, lambda: None, turn="turn_3")
    history.end("turn_1", "one")
    (root / name).write_text("changed once more")
    (root / "src" / "b.py").write_text("print(2)\n")
    history.end("turn_2", "two")
    told = history.end("turn_2", "three")
    assert told is not None
    assert [change.path for change in told.changes] == ["src/b.py"]


@pytest.mark.parametrize("watch_from", [0, 2_000])
def test_what_another_rule_showed_for_a_while_is_hidden_again_whatever_it_is_by_then(
    root: Path, watch_from: int
) -> None:
    """An ignored folder is a file when the call that started with it ignored ends (B1 × B3)."""
    (root / ".ignore").write_text("src\n")
    history = history_of(root, watch_from=watch_from)
    history.begin(conversation="conv_1", turn="turn_1", step=1, call="one", paths=None)
    (root / ".ignore").write_text("\n")
    history.begin(conversation="conv_1", turn="turn_2", step=1, call="two", paths=["src/new.py"])
    shutil.rmtree(root / "src")
    (root / "src").write_text("a file")
    told = history.end("turn_1", "one")
    assert told is not None
    assert [change.path for change in told.changes] == [".ignore"]


def test_what_a_person_excludes_in_their_clone_holds_from_the_next_turn_on(root: Path) -> None:
    """The version control folder has no watch, so each scan reads its exclude list (B1)."""
    (root / ".git" / "info").mkdir(parents=True)
    history = history_of(root, watch_from=0)
    record(history, lambda: None)
    (root / ".git" / "info" / "exclude").write_text("*.log\n")
    told = record(history, lambda: [(root / name).write_text("x") for name in ("a.log", "b")], turn="turn_2")
    assert told is not None
    assert [change.path for change in told.changes] == ["b"]


def test_a_history_that_is_closed_watches_nothing(root: Path) -> None:
    """B1: the system gives each user few watches."""
    kind = Path("anon_inode:inotify")
    before = open_files(kind)
    history = history_of(root, watch_from=0)
    record(history, lambda: None)
    assert len(open_files(kind)) == len(before) + 1
    history.close()
    assert open_files(kind) == before


@pytest.mark.parametrize("watch_from", [0, 10**9])
def test_a_file_in_place_of_an_ignored_folder_is_seen(root: Path, watch_from: int) -> None:
    """B1: a rule for folders hides no file of that name."""
    (root / ".gitignore").write_text("build/\n")
    (root / "build").mkdir()
    history = history_of(root, watch_from=watch_from)
    record(history, lambda: None)

    def work() -> None:
        (root / "build").rmdir()
        (root / "build").write_text("a file")

    def undo() -> None:
        (root / "build").unlink()
        (root / "build").mkdir()

    for step in (work, undo):
        told = record(history, step)
        assert told is not None
        assert [change.path for change in told.changes] == ["build"]


def test_a_workspace_that_is_another_folder_by_now_is_walked_through(root: Path) -> None:
    """Reports describe the folder that was opened (B1)."""
    watched = Watched(root)
    root.rename(root.parent / "before")
    (root / "src").mkdir(parents=True)
    (root / "src" / "b.py").write_text("another\n")
    assert watched.changed() == ["a.txt", "src/b.py", "src/deep", "src/deep/c.py"]


def test_a_walk_finds_what_was_not_reported_and_the_kernel_is_asked_no_more(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A second name was created, written to and removed between two scans (B1)."""
    caplog.set_level("INFO")
    watched, trusting = Watched(root, trusted=0.0), Watched(root)
    outside = root.parent / "outside"
    outside.hardlink_to(root / "a.txt")
    outside.write_text("by another name\n")
    outside.unlink()
    assert trusting.changed() == []  # until its next walk
    assert watched.changed() == ["a.txt"]
    assert "a.txt changed without a report" in caplog.text
    (root / "src" / "b.py").write_text("seen by a walk\n")
    assert watched.changed() == ["src/b.py"]
