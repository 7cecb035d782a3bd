"""Revert changes: plan them, find conflicts, and carry out repeatable steps."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import cache, partial
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import TypeAlias

from dragoman.errors import RevertConflict
from dragoman.workspace.diff import renames_of
from dragoman.workspace.folder import BESIDE, OpenFolder, open_folder
from dragoman.workspace.known import Known
from dragoman.workspace.scanner import Looker
from dragoman.workspace.states import (
    INTERRUPTED,
    ChangeRecord,
    Conflict,
    FileChange,
    FileState,
    RevertPlan,
    SnapshotLimits,
    compose,
    holds,
)

Contents: TypeAlias = Callable[[FileState], bytes | None]
Step: TypeAlias = Callable[[], Conflict | None]  # → what is left unchanged, and why

CHANGED = "it was changed since"
BETWEEN = "it changed in between"
UNKNOWN = "the program stopped during the call that changed it, so its author is unknown"
NOT_KEPT = "its bytes were not recorded"
_LEFT_OVER = re.compile(re.escape(BESIDE) + r"[0-9a-f]{16}")


def plan_revert(
    records: Sequence[ChangeRecord], now: Callable[[str], FileState | None], read: Contents
) -> RevertPlan:
    """Plan a revert to the state before the first of these records. `now` returns the current state of a
    path."""
    first: dict[str, FileState | None] = {}
    last: dict[str, FileState | None] = {}
    broken: set[str] = set()
    unknown: set[str] = set()
    told: set[FileChange] = set()
    for record in records:
        if INTERRUPTED in record.notes:
            unknown.update(change.path for change in record.changes)
        for change in record.changes:
            if change.path in last and last[change.path] != change.before:
                if change in told:
                    continue  # Turns that ran at the same time have the same changes in their records.
                broken.add(change.path)
            told.add(change)
            first.setdefault(change.path, change.before)
            last[change.path] = change.after
    plan = RevertPlan()
    for path, target in first.items():
        found = now(path)
        if found == target:
            continue
        if target is not None and target.kind != "folder" and read(target) is None:
            plan.left.append(Conflict(path, NOT_KEPT))
            continue
        if found is not None and found.kind == "opaque" and (target is None or found != last[path]):
            plan.left.append(Conflict(path, f"{NOT_KEPT}: it could not be brought back again"))
        else:
            plan.changes.append(FileChange(path, found, target))
        if path in broken or found != last[path]:
            plan.conflicts.append(Conflict(path, BETWEEN if path in broken else CHANGED))
        elif path in unknown:
            plan.conflicts.append(Conflict(path, UNKNOWN))
    return plan


def limited(records: Sequence[ChangeRecord], paths: Collection[str], read: Contents) -> list[ChangeRecord]:
    """Return what these records did to some files, under any of their names.

    A folder is removed with the last of its files, and restored with the first. A folder that replaced a file
    includes everything in it.
    """
    changes = {one.path: one for one in compose([change for record in records for change in record.changes])}
    moves = _moves(records, read)
    wanted, size = set(paths), 0
    while len(wanted) > size:
        size = len(wanted)
        for names in moves:
            if not wanted.isdisjoint(names):
                wanted.update(names)
        for folder in sorted({above for path in wanted for above in _all_above(path)}, key=len, reverse=True):
            inside = {path for path in changes if path.startswith(f"{folder}/")}
            if folder in changes and (_is_folder(changes[folder].before) or inside <= wanted):
                wanted.add(folder)
        for path in wanted & changes.keys():
            if _is_folder(changes[path].after) and not _is_folder(changes[path].before):
                wanted.update(one for one in changes if one.startswith(f"{path}/"))
    kept = (
        replace(record, changes=tuple(one for one in record.changes if one.path in wanted))
        for record in records
    )
    return [record for record in kept if record.changes]


def _moves(records: Sequence[ChangeRecord], read: Contents) -> set[tuple[str, str]]:
    """Return both names of each file that moved, in one record or over a turn: later records may hide a move.

    Also detect by its bytes a file that replaced another one, or was itself replaced by a link.
    """
    parts: set[tuple[FileChange, ...]] = set()
    so_far: list[FileChange] = []
    for record, following in zip_longest(records, records[1:]):
        so_far = compose([*so_far, *record.changes])
        parts.add(record.changes)
        if following is None or following.turn != record.turn:
            parts.add(tuple(so_far))
    found: set[tuple[str, str]] = set()
    read = cache(read)
    for part in parts:
        renames = renames_of(part, read)
        moved = set(renames.values())
        found.update(renames.items())
        gone = {
            one.before.content: one.path
            for one in part
            if one.before is not None
            and (one.after is None or one.after.kind != one.before.kind)
            and one.path not in moved
        }
        for one in part:
            if one.after is not None and one.after.size and one.after.content in gone:
                found.add((one.path, gone[one.after.content]))
    return found


def carry_out(
    root: Path,
    changes: Sequence[FileChange],
    read: Contents,
    limits: SnapshotLimits,
    *,
    repeated: bool = False,
    to_the_end: bool = False,
    on_step: Callable[[int], None] = lambda _: None,
) -> list[Conflict]:
    """Give each path its new state. Return what is left unchanged, and why.

    Every step can run again: after a crash, all steps run again (`repeated`). Then a path in any other state
    than before or after belongs to someone else and is left. Otherwise it raises RevertConflict. Raises
    OSError with the path if the system refuses. With `to_the_end`, that path is left, too.
    """
    left: list[Conflict] = []
    carrier = _Carrier(root, read, limits, repeated)
    for number, (path, step) in enumerate(carrier.steps(changes)):
        on_step(number)
        try:
            why = step()
        except OSError as error:
            if not to_the_end:
                raise OSError(error.errno, error.strerror, path) from error
            why = Conflict(path, str(error.strerror))
        if why is not None:
            left.append(why)
    on_step(-1)
    return left


def inverse(changes: Sequence[FileChange]) -> list[FileChange]:
    return [FileChange(change.path, change.after, change.before) for change in changes]


def remove_left_overs(root: Path, paths: Sequence[str]) -> None:
    """Remove partly written temporary files that a crash left next to their targets."""
    for above in sorted({tuple(path.split("/")[:-1]) for path in paths}):
        with suppress(OSError), open_folder(root, above) as folder:
            for entry in folder.entries():
                if _LEFT_OVER.fullmatch(entry.name) and entry.kind in ("file", "link"):
                    folder.remove(entry.name)


class _Carrier:
    def __init__(self, root: Path, read: Contents, limits: SnapshotLimits, repeated: bool) -> None:
        self._root = root
        self._read = read
        self._limits = limits
        self._repeated = repeated

    def steps(self, changes: Sequence[FileChange]) -> Iterator[tuple[str, Step]]:
        """Yield the steps with the path of each.

        First make folders writable. Then remove entries, the deepest folder first. Then create entries, the
        highest folder first. Finally set the modes of folders.
        """
        upwards = sorted(changes, key=lambda change: (-change.path.count("/"), change.path))
        downwards = upwards[::-1]
        for change in downwards:
            if _is_folder(change.before):
                yield change.path, partial(self._open_up, change)
        for change in upwards:
            if holds(change.before) and not holds(change.after):
                yield change.path, partial(self._remove, change)
        for change in upwards:
            if _is_folder(change.before) and not _is_folder(change.after):
                yield change.path, partial(self._remove_folder, change)
        for change in downwards:
            if _is_folder(change.after) and not _is_folder(change.before):
                yield change.path, partial(self._make_folder, change)
        for change in downwards:
            if holds(change.after):
                yield change.path, partial(self._write, change)
        for change in upwards:
            if _is_folder(change.after):
                yield change.path, partial(self._set_mode, change)

    def _open_up(self, change: FileChange) -> Conflict | None:
        """Make a folder writable, because its content could not be removed otherwise. Its mode is set at the
        end."""
        with (
            suppress(FileNotFoundError, NotADirectoryError),
            open_folder(self._root, _above(change.path)) as folder,
        ):
            mode = folder.status(_name(change.path)).st_mode
            if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
                folder.set_folder_mode(_name(change.path), stat.S_IMODE(mode) | stat.S_IRWXU)
        return None

    def _remove(self, change: FileChange) -> Conflict | None:
        now = state_at(self._root, change.path, self._limits)
        if now is None or (_is_folder(now) and _is_folder(change.after)):
            return None  # already done
        if now != change.before:
            return self._leave(change)
        with suppress(FileNotFoundError), open_folder(self._root, _above(change.path)) as folder:
            folder.remove(_name(change.path))
        return None

    def _remove_folder(self, change: FileChange) -> Conflict | None:
        try:
            with open_folder(self._root, _above(change.path)) as folder:
                folder.remove_folder(_name(change.path))
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST) and change.after is None:
                return Conflict(change.path, "it is not empty, and stays")
            if error.errno == errno.ENOTDIR and self._repeated:
                return None  # It already has its new state.
            raise
        return None

    def _make_folder(self, change: FileChange) -> Conflict | None:
        assert change.after is not None
        with self._parent(change.path) as folder, suppress(FileExistsError):
            folder.make(_name(change.path))
        return None

    def _write(self, change: FileChange) -> Conflict | None:
        state = change.after
        assert state is not None
        now = state_at(self._root, change.path, self._limits)
        if now == state:
            return None
        if now != change.before and (now is not None or holds(change.before)):
            return self._leave(change)
        data = self._read(state)
        if data is None:
            return Conflict(change.path, NOT_KEPT)
        with self._parent(change.path) as folder:
            if state.kind == "link":
                folder.link(_name(change.path), os.fsdecode(data))
            else:
                folder.put(_name(change.path), data, state.mode, sync=True)
        return None

    def _set_mode(self, change: FileChange) -> Conflict | None:
        assert change.after is not None
        with open_folder(self._root, _above(change.path)) as folder:
            folder.set_folder_mode(_name(change.path), change.after.mode)
        return None

    def _parent(self, path: str) -> AbstractContextManager[OpenFolder]:
        return open_folder(self._root, _above(path), create=True)

    def _leave(self, change: FileChange) -> Conflict:
        """Leave a path that is in neither its old nor its new state."""
        if not self._repeated:
            raise RevertConflict([(change.path, CHANGED)])
        return Conflict(change.path, CHANGED)


def state_at(root: Path, path: str, limits: SnapshotLimits) -> FileState | None:
    """Return the current state of a path, without storing its bytes."""
    known = Known()
    Looker(root, known, limits, lambda data: sha256(data).hexdigest(), ()).named([path], all_ignored=True)
    return known.find(path)


def _all_above(path: str) -> Iterator[str]:
    steps = path.split("/")
    return ("/".join(steps[:end]) for end in range(1, len(steps)))


def _above(path: str) -> list[str]:
    return path.split("/")[:-1]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _is_folder(state: FileState | None) -> bool:
    return state is not None and state.kind == "folder"
