"""B3: a copy of the workspace, for a fork."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

import pytest

from dragoman.errors import BadRequest
from dragoman.workspace.states import DEFAULT_LIMITS
from dragoman.workspace.workspaces import copy_folder


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


def test_what_cannot_be_copied_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    """B3"""
    with pytest.raises(BadRequest, match="cannot copy"):
        copy_folder(tmp_path / "nowhere", tmp_path / "copies" / "one", DEFAULT_LIMITS)
    assert [*(tmp_path / "copies").iterdir()] == []
