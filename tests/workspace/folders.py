"""Folders to test with: written, changed, and compared byte for byte, with modes and the targets of links."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from dragoman.workspace.full_scan import WATCH_FROM
from dragoman.workspace.histories import Histories
from dragoman.workspace.history import WorkspaceHistory
from dragoman.workspace.states import ChangeRecord, SnapshotLimits


def picture(root: Path) -> dict[str, tuple[str, int, bytes]]:
    """Return everything below a folder: kinds, modes and bytes."""
    found: dict[str, tuple[str, int, bytes]] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            status = path.lstat()
            mode = stat.S_IMODE(status.st_mode)
            relative = path.relative_to(root).as_posix()
            if path.is_symlink():
                found[relative] = ("link", 0, os.fsencode(path.readlink()))
            elif path.is_dir():
                found[relative] = ("folder", mode, b"")
            else:
                found[relative] = ("file", mode, path.read_bytes())
    return found


def stored(history: WorkspaceHistory) -> bytes:
    """Return every stored byte. The store compresses no short text."""
    return b"".join(path.read_bytes() for path in sorted(history.file.parent.iterdir()))


def open_files(below: Path) -> list[str]:
    """Return the files and folders in and below a folder that this program has open, where `/proc` tells."""
    found = list[str]()
    for one in Path("/proc/self/fd").iterdir() if Path("/proc/self/fd").is_dir() else ():
        with suppress(OSError):  # the one that lists them
            found.append(str(one.readlink()))
    return sorted(path for path in found if path.startswith(str(below)))


_made: list[WorkspaceHistory | Histories] = []


def history_of(
    root: Path,
    *,
    folder: Path | None = None,
    skip: Sequence[Path] = (),
    limits: SnapshotLimits | None = None,
    watch_from: int = WATCH_FROM,
) -> WorkspaceHistory:
    """Return a history that the test closes at its end. With `watch_from` 0 the kernel reports changes, as in
    big folders."""
    history = WorkspaceHistory(
        root,
        folder or root.parent / "snapshots",
        skip=skip,
        limits=limits or SnapshotLimits(),
        watch_from=watch_from,
    )
    _made.append(history)
    return history


def histories_in(place: Path) -> Histories:
    """Return the histories for folders in this place. The test closes them at its end."""
    histories = Histories(place / "snapshots")
    _made.append(histories)
    return histories


def close_histories() -> None:
    while _made:
        _made.pop().close()


def record(
    history: WorkspaceHistory,
    work: Callable[[], object],
    *,
    turn: str = "turn_1",
    call: str = "call_1",
    paths: Sequence[str] | None = None,
) -> ChangeRecord | None:
    """One call that does this work."""
    history.begin(conversation="conv_1", turn=turn, step=1, call=call, paths=paths)
    work()
    return history.end(turn, call)


def go_back(history: WorkspaceHistory, *records: ChangeRecord | None, force: bool = False) -> ChangeRecord:
    told = [one for one in records if one is not None]
    return history.revert(told, conversation="conv_1", turn="turn_1", force=force)


def paths_of(found: object) -> list[str]:
    return [change.path for change in found.changes]  # type: ignore[attr-defined]
