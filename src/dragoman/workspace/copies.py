"""Copies of a workspace, so that two branches of a conversation can write side by side."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from dragoman.errors import BadRequest
from dragoman.sentences import sentence
from dragoman.workspace.revert import carry_out, inverse
from dragoman.workspace.states import ChangeRecord, FileChange, FileState, SnapshotLimits, compose

MOST_BYTES = 5_000_000_000
_UNFINISHED = ".part"
_ABANDONED = 24 * 3600.0  # seconds after which nobody can still be copying

Contents: TypeAlias = Callable[[FileState], bytes | None]


def copy_folder(source: Path, target: Path, limits: SnapshotLimits, skip: Sequence[Path] = ()) -> None:
    """Everything that is in it, whole or not at all: also what version control ignores, since builds need it.

    BadRequest where that is too much. Links are copied as links; sockets and the like are left out.
    """
    left_out = {path.resolve() for path in skip}
    unfinished = target.with_name(target.name + _UNFINISHED)
    try:
        _check_size(source, limits, left_out)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_abandoned(target.parent)
        shutil.rmtree(unfinished, ignore_errors=True)
        _copy_all(source, unfinished, left_out)
        unfinished.rename(target)
    except (OSError, shutil.Error) as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise BadRequest(sentence("copy.failed", source=source, why=_first(error))) from error


def _copy_all(source: Path, target: Path, left_out: set[Path]) -> None:
    """What somebody deletes meanwhile is not there any more, and no reason to stop."""
    try:
        shutil.copytree(source, target, symlinks=True, ignore=_ignoring(left_out))
    except shutil.Error as error:
        if left := [fault for fault in error.args[0] if os.path.lexists(fault[0])]:
            raise shutil.Error(left) from error


def take_back(
    folder: Path, records: Sequence[ChangeRecord], contents: Contents, limits: SnapshotLimits
) -> list[str]:
    """In a copy: what these records of the original did. → what was left as it is, and why"""
    changes: list[FileChange] = [change for record in records for change in record.changes]
    left = carry_out(folder, inverse(compose(changes)), contents, limits, repeated=True)
    return [f"{one.path}: {one.why}" for one in left]


def remove_copy(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _check_size(source: Path, limits: SnapshotLimits, left_out: set[Path]) -> None:
    size = 0
    for files, entry in enumerate(_entries(source, left_out), start=1):
        with suppress(FileNotFoundError):  # somebody may delete files meanwhile
            size += entry.stat(follow_symlinks=False).st_size if entry.is_file(follow_symlinks=False) else 0
        if files > limits.files or size > MOST_BYTES:
            raise BadRequest(
                sentence("copy.too_big", source=source, files=limits.files, gigabytes=MOST_BYTES // 10**9)
            )


def _entries(folder: Path, left_out: set[Path]) -> Iterator[os.DirEntry[str]]:
    waiting = [folder]
    while waiting:
        with suppress(PermissionError, FileNotFoundError), os.scandir(waiting.pop()) as found:
            for entry in found:
                if Path(entry.path) in left_out:
                    continue
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))


def _ignoring(left_out: set[Path]) -> Callable[[str, list[str]], set[str]]:
    def ignored(folder: str, names: list[str]) -> set[str]:
        paths = {name: Path(folder, name) for name in names}
        return {name for name, path in paths.items() if path in left_out or not _is_plain(path)}

    return ignored


def _is_plain(path: Path) -> bool:
    return path.is_symlink() or path.is_dir() or path.is_file()


def _remove_abandoned(copies: Path) -> None:
    """What a program left that was killed while it copied."""
    for folder in copies.glob(f"*{_UNFINISHED}"):
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > _ABANDONED:
                shutil.rmtree(folder, ignore_errors=True)


def _first(error: Exception) -> str:
    """`copytree` tells everything that went wrong, in one error."""
    causes = error.args[0] if isinstance(error, shutil.Error) else None
    return str(causes[0][-1]) if isinstance(causes, list) and causes else str(error)
