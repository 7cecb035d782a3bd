"""Files of an open folder are read whole or refused, and written whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dragoman.errors import ToolFailed
from dragoman.workspace.folder import Entry, OpenFolder, open_folder, open_root, paths_inside
from tests.workspace.folders import open_files

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links and pipes")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "folder").mkdir(parents=True)
    (root / "file").write_bytes(bytes(2000))
    (root / "link").symlink_to("file")
    os.mkfifo(root / "pipe")
    return root


@pytest.fixture
def folder(root: Path) -> Iterator[OpenFolder]:
    folder = open_root(root)
    yield folder
    folder.close()


def test_entries_are_told_with_their_kinds(folder: OpenFolder) -> None:
    size = folder.entries()[1].size
    assert folder.entries() == [
        Entry("file", "file", 2000),
        Entry("folder", "folder", size),
        Entry("link", "link", 4),
        Entry("pipe", "other", 0),
    ]


def test_a_file_is_read_up_to_the_limit(folder: OpenFolder) -> None:
    """What is no regular file is refused."""
    assert folder.read("file", 2000) == bytes(2000)
    with pytest.raises(ToolFailed, match="larger than 1 kB"):
        folder.read("file", 1999)
    with pytest.raises(IsADirectoryError):
        folder.read("folder", 2000)
    with pytest.raises(ToolFailed, match="not a regular file"):
        folder.read("pipe", 2000)
    for most, size in ((3000, 2000), (2000, 2000), (1998, 1999)):
        data, before, after = folder.read_with_status("file", most)
        assert (len(data), before.st_size, after.st_size) == (size, 2000, 2000)
    with pytest.raises(ToolFailed, match="cannot write 'none'"):
        folder.mode("none")
    opened = open_files(folder.path)
    for name in ("folder", "pipe", "link"):
        with pytest.raises((OSError, ToolFailed)):
            folder.read(name, 2000)
        with pytest.raises(OSError, match=r"directory|regular file|symbolic links"):
            folder.read_with_status(name, 2000)
    assert open_files(folder.path) == opened == [str(folder.path)]
    assert stat.S_ISLNK(folder.status("link").st_mode)
    assert folder.target("link") == "file"


def put(folder: OpenFolder, name: str) -> None:
    folder.put(name, b"new", 0o640, sync=True)


def link(folder: OpenFolder, name: str) -> None:
    folder.link(name, "folder")


@pytest.mark.parametrize("write", [put, link])
def test_what_cannot_be_written_leaves_nothing(
    root: Path, folder: OpenFolder, write: Callable[[OpenFolder, str], None]
) -> None:
    before = sorted(root.iterdir())
    with pytest.raises(IsADirectoryError):
        write(folder, "folder")
    write(folder, "link")
    assert sorted(root.iterdir()) == before
    assert (root / "file").read_bytes() == bytes(2000)
    assert (root / "link").is_symlink() is (write is link)
    if write is put:
        assert ((root / "link").read_bytes(), folder.mode("link")) == (b"new", 0o640)


def test_no_link_on_the_way_is_followed_and_no_folder_stays_open(root: Path) -> None:
    (root / "away").symlink_to("folder")
    for _ in range(3):
        with open_folder(root, ["folder", "new", "deep"], create=True) as here:
            here.put("file", b"x", None)
        with pytest.raises(OSError, match=r"away|symbolic|directory"), open_folder(root, ["away"]):
            pass
        with pytest.raises(FileNotFoundError), open_folder(root, ["none"]):
            pass
    made, plain = root / "folder" / "new" / "deep" / "file", root / "plain"
    plain.touch()
    assert (made.read_bytes(), made.stat().st_mode) == (b"x", plain.stat().st_mode)
    assert open_files(root) == []


def test_only_paths_inside_are_named(root: Path) -> None:
    inside = [root / "a" / "b", root / "..a", root / ".." / "work" / "c"]
    outside = [root, root.parent, root.parent / "work2"]
    assert [*paths_inside(root, [*inside, *outside])] == ["a/b", "..a", "c"]
