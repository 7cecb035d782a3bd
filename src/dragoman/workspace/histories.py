"""The histories of one store: of the workspace we are in, and of others that the same store was used in."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from dragoman.workspace.history import WorkspaceHistory
from dragoman.workspace.states import DEFAULT_LIMITS, SnapshotLimits


class Histories:
    """`here` is None where there is no workspace, or nothing is to be recorded."""

    def __init__(
        self,
        folder: Path | None,
        workspace: Path | None,
        *,
        limits: SnapshotLimits = DEFAULT_LIMITS,
        skip: Sequence[Path] = (),
    ) -> None:
        self._folder = folder
        self._limits = limits
        self.here: WorkspaceHistory | None = None
        if folder is not None and workspace is not None:
            self.here = WorkspaceHistory(workspace, folder, limits=limits, skip=skip)

    def of_turn(self, turn: str) -> WorkspaceHistory | None:
        """The one that tells of a turn: its workspace may be another one than ours."""
        if self.here is not None and self.here.of_turns([turn]):
            return self.here
        for history in self._others():
            if history.of_turns([turn]):
                return history
            history.close()
        return self.here

    def forget(self, conversations: Iterable[str] = ()) -> None:
        """In every workspace: who deletes a conversation means all of it."""
        listed = list(conversations)
        if self.here is not None:
            self.here.forget(listed)
        for history in self._others():
            history.forget(listed)
            history.close()

    def close(self) -> None:
        if self.here is not None:
            self.here.close()

    def _others(self) -> Iterator[WorkspaceHistory]:
        files = sorted(self._folder.glob("*.db")) if self._folder is not None else []
        for file in files:
            if self.here is None or file != self.here.file:
                with suppress(sqlite3.Error, TypeError):
                    history = WorkspaceHistory(_workspace_of(file), file.parent, limits=self._limits)
                    if history.file == file:
                        yield history


def _workspace_of(file: Path) -> Path:
    db = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)
    try:
        row = db.execute("SELECT value FROM about WHERE key = 'workspace'").fetchone()
        return Path(row[0])
    finally:
        db.close()
