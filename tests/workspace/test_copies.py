"""B3: a copy of the workspace, for a fork."""

from __future__ import annotations

import os
import stat
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from dragoman.errors import BadRequest
from dragoman.workspace.states import DEFAULT_LIMITS
from dragoman.workspace.workspaces import MOST_BYTES, copy_folder


def test_what_somebody_deletes_meanwhile_stops_no_copy(tmp_path: Path) -> None:
    """B3: builds and editors make and remove files all the time."""
    source = tmp_path / "work"
    passing = [source / f"folder{n % 20}" / f"{n}.tmp" for n in range(2000)]
    for file in passing:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("gone soon")
    (source / "stays.txt").write_text("here")

    def delete() -> None:
        for file in reversed(passing):
            file.unlink()
        for folder in {file.parent for file in passing}:
            folder.rmdir()

    thread = Thread(target=delete)
    thread.start()
    try:
        copy_folder(source, tmp_path / "copies" / "one", DEFAULT_LIMITS)
    finally:
        thread.join()
    assert (tmp_path / "copies" / "one" / "stays.txt").read_text() == "here"


@pytest.mark.parametrize(("links", "size"), [(1, 0), (2, 0), (1, MOST_BYTES + 1)])
def test_a_folder_is_copied_up_to_the_limits(tmp_path: Path, links: int, size: int) -> None:
    """What a link leads to is not copied, so it does not count. What a killed program left a day ago is
    removed (B3)."""
    source, far, copy = tmp_path / "work", tmp_path / "far", tmp_path / "copies" / "one"
    (source / "deep").mkdir(parents=True)
    for file, length in ((source / "deep" / "file", size), (far, MOST_BYTES + 1)):
        file.touch()
        os.truncate(file, length)
    for number in range(links):
        (source / f"link {number}").symlink_to(far)
    copy.parent.mkdir()
    killed, running = (copy.with_name(f"{name}.part") for name in ("killed", "running"))
    for folder, hours in ((killed, 25), (running, 23)):
        folder.mkdir()
        os.utime(folder, (0, time.time() - hours * 3600))
    fits = (links, size) == (1, 0)
    with nullcontext() if fits else pytest.raises(BadRequest, match="more than 3 files, or more than 5 GB"):
        copy_folder(source, copy, replace(DEFAULT_LIMITS, files=3))
    assert [copy.exists(), killed.exists(), running.exists()] == [fits, not fits, True]


def test_what_cannot_be_copied_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    """B3"""
    with pytest.raises(BadRequest, match="cannot copy"):
        copy_folder(tmp_path / "nowhere", tmp_path / "copies" / "one", DEFAULT_LIMITS)
    assert os.name == "nt" or stat.S_IMODE((tmp_path / "copies").stat().st_mode) == 0o700
    assert [*(tmp_path / "copies").iterdir()] == []
    taken = tmp_path / "copies" / "taken"
    (taken / "inner").mkdir(parents=True)
    with pytest.raises(BadRequest, match="cannot copy"):
        copy_folder(taken, taken, DEFAULT_LIMITS)
    assert [*(tmp_path / "copies").iterdir()] == [taken]
