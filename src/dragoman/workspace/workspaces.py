"""Manage the folders that conversations can work in, by name, and the model's prompt for each."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias

from dragoman.errors import BadRequest, NotFound
from dragoman.messages.questions import Rule
from dragoman.sentences import sentence
from dragoman.workspace.revert import carry_out, inverse
from dragoman.workspace.states import ChangeRecord, FileChange, FileState, SnapshotLimits, compose

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
OWN = "@"  # ends the name of a conversation's own copy
_OF = "-"  # separates the conversation from the workspace's name in a copy's folder name; no ID contains it


@dataclass(slots=True, frozen=True)
class Workspace:
    """A folder that tools work in.

    `prompt` is added for the model if a turn works in the folder. `bounds` are rules about its files that
    nothing overrides. `find_bounds` returns more of them, computed for each decision.
    """

    folder: Path
    prompt: str = ""
    bounds: tuple[Rule, ...] = ()
    find_bounds: Callable[[], tuple[Rule, ...]] = tuple

    @property
    def path(self) -> str:
        """The path as turns and grants store it."""
        return str(self.folder.resolve())


class Workspaces:
    """The workspaces of a runtime: its main one, which has no name, named ones, and copies that forks have.

    A name can reach no other folder than these: a copy is found by the conversation that has it, never by its
    name.
    """

    def __init__(
        self,
        main: Workspace | None = None,
        named: Mapping[str, Workspace] | None = None,
        copies: Path | None = None,
    ) -> None:
        self.main = main
        self.named = dict(named or {})
        self._copies = copies

    def __iter__(self) -> Iterator[Workspace]:
        if self.main is not None:
            yield self.main
        yield from self.named.values()

    def find(self, name: str | None, conversation: str) -> Workspace | None:
        """Return the workspace with this name in a conversation. Raises NotFound if it does not exist.

        For a task, pass the conversation in which it began.
        """
        if name is None or not name.endswith(OWN):
            return self._shared(name)
        base = self._shared(name.removesuffix(OWN))
        folder = self.place_for_copy(conversation, name)
        if base is None or folder is None or not folder.is_dir():
            why = sentence("hint.folder_gone")
            raise NotFound("folder of the conversation", conversation, why)
        return replace(base, folder=folder)

    def again(self, name: str | None, path: str | None) -> Workspace | None:
        """Return the workspace of a stored turn. Raises NotFound if this name no longer means this folder."""
        if path is None or (self.main is None and not self.named):
            return self.main
        found = self._shared(name.removesuffix(OWN) if name else None)
        if found is not None and name and name.endswith(OWN) and self._is_copy(Path(path), name):
            return replace(found, folder=Path(path))
        if found is None or found.path != path:
            raise NotFound("workspace", path, sentence("hint.other_folders"))
        return found

    def place_for_copy(self, conversation: str, name: str | None) -> Path | None:
        """Return the place of a conversation's copy of this workspace. None if copies have no place.

        The folder name contains the workspace's name: under another name it would have the other's bounds.
        """
        base = (name or "").removesuffix(OWN)
        return (
            self._copies / (f"{conversation}{_OF}{base}" if base else conversation) if self._copies else None
        )

    def copy_of(self, conversation: str) -> Path | None:
        """Return the conversation's own folder. None if it has none."""
        found = (one for one in self.copies() if one.name.partition(_OF)[0] == conversation)
        return next(found, None)  # also of a workspace that is no longer configured

    def copies(self) -> list[Path]:
        """Return all folders that are conversations' own copies."""
        if self._copies is None or not self._copies.is_dir():
            return []
        return [folder for folder in self._copies.iterdir() if folder.is_dir() and not folder.suffix]

    def _is_copy(self, folder: Path, name: str) -> bool:
        if self._copies is None or folder.parent != self._copies.resolve():
            return False
        return folder.name.partition(_OF)[2] == name.removesuffix(OWN) and folder.is_dir()

    def _shared(self, name: str | None) -> Workspace | None:
        if not name:
            return self.main
        if name not in self.named:
            near = get_close_matches(name, self.named)
            hint = (
                sentence("hint.did_you_mean", near=near[0])
                if near
                else sentence("hint.there_are", names=", ".join(self.named))
                if self.named
                else ""
            )
            raise NotFound("workspace", name, hint)
        return self.named[name]


# Copy a workspace, so that two branches of a conversation can write in parallel.


MOST_BYTES = 5_000_000_000
_UNFINISHED = ".part"
_ABANDONED = 24 * 3600.0  # seconds after which a copy in progress counts as abandoned

Contents: TypeAlias = Callable[[FileState], bytes | None]


def copy_folder(source: Path, target: Path, limits: SnapshotLimits, skip: Sequence[Path] = ()) -> None:
    """Copy everything in a folder atomically, including what version control ignores, since builds need it.

    Raises BadRequest if that is too much. Links are copied as links. Sockets and the like are left out.
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
    """Copy the tree. Files deleted meanwhile are no error."""
    try:
        shutil.copytree(source, target, symlinks=True, ignore=_ignoring(left_out))
    except shutil.Error as error:
        if left := [fault for fault in error.args[0] if os.path.lexists(fault[0])]:
            raise shutil.Error(left) from error


def take_back(
    folder: Path, records: Sequence[ChangeRecord], contents: Contents, limits: SnapshotLimits
) -> list[str]:
    """Undo in a copy what these records did in the original. Return what was left unchanged, and why."""
    changes: list[FileChange] = [change for record in records for change in record.changes]
    left = carry_out(folder, inverse(compose(changes)), contents, limits, repeated=True)
    return [f"{one.path}: {one.why}" for one in left]


def remove_copy(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _check_size(source: Path, limits: SnapshotLimits, left_out: set[Path]) -> None:
    size = 0
    for files, entry in enumerate(_entries(source, left_out), start=1):
        with suppress(FileNotFoundError):  # Files may be deleted meanwhile.
            size += entry.stat().st_size if entry.is_file(follow_symlinks=False) else 0
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
    """Remove what programs left that were killed while copying."""
    for folder in copies.glob(f"*{_UNFINISHED}"):
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > _ABANDONED:
                shutil.rmtree(folder, ignore_errors=True)


def _first(error: Exception) -> str:
    """Return the first cause: `copytree` collects all problems in one error."""
    causes = error.args[0] if isinstance(error, shutil.Error) else None
    return str(causes[0][-1]) if isinstance(causes, list) and causes else str(error)
