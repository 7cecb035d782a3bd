"""The histories beside one store: of the folders that turns work in here, and of others."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from dragoman.workspace.history import WorkspaceHistory
from dragoman.workspace.states import DEFAULT_LIMITS, SnapshotLimits

_MOST_OPEN = 16


class Histories:
    """`folder` is where the records are: None where there is no place for them. Without `records` nothing new
    is recorded."""

    def __init__(
        self,
        folder: Path | None,
        *,
        records: bool = True,
        limits: SnapshotLimits = DEFAULT_LIMITS,
        skip: Sequence[Path] = (),
    ) -> None:
        self.folder = folder
        self.records = records and folder is not None
        self.limits = limits
        self._skip = skip
        self._open: dict[Path, WorkspaceHistory] = {}

    @property
    def left_out(self) -> list[Path]:
        """What is never recorded nor copied: our own files, where they lie in a workspace."""
        return [*([self.folder] if self.folder is not None else []), *self._skip]

    def at(self, workspace: Path | None) -> WorkspaceHistory | None:
        """The one of a folder that is worked in. None where nothing is to be recorded."""
        if workspace is None or self.folder is None or not self.records:
            return None
        root = workspace.resolve()
        history = self._open.pop(root, None)
        if history is None:
            history = WorkspaceHistory(root, self.folder, limits=self.limits, skip=self._skip)
        self._open[root] = history  # at the end: it is the last that was used
        return history

    def close_idle(self) -> None:
        """All but the last that were used: each holds files open, and there is one for every copy that a fork
        has. They open again when they are needed."""
        for history in [*self._open.values()][:-_MOST_OPEN]:
            history.close()

    @contextmanager
    def telling_of(self, turns: Sequence[str]) -> Iterator[WorkspaceHistory | None]:
        """The one that tells of one of these turns, wherever they worked."""
        for history in self._each():
            if history.of_turns(turns):
                yield history
                return
        for history in self._others():
            with closing(history):
                if history.of_turns(turns):
                    yield history
                    return
        yield None

    def forget(self, conversations: Iterable[str] = ()) -> None:
        """In every workspace: who deletes a conversation means all of it."""
        listed = list(conversations)
        for history in self._each():
            history.forget(listed)
        for history in self._others():
            history.forget(listed)
            history.close()

    def remove(self, workspace: Path) -> None:
        """All that is recorded of a folder that is no more."""
        if self.folder is None:
            return
        root = workspace.resolve()
        history = self._open.pop(root, None) or WorkspaceHistory(root, self.folder, limits=self.limits)
        history.close()
        for end in ("", "-wal", "-shm", "-journal"):
            history.file.with_name(history.file.name + end).unlink(missing_ok=True)
        history.file.with_suffix(".lock").unlink(missing_ok=True)

    def close(self) -> None:
        for history in self._open.values():
            history.close()

    def _each(self) -> Iterator[WorkspaceHistory]:
        """Those of folders that are worked in here, and not all of them open at once."""
        known = [*self._open.values()]
        for place, history in enumerate(known):
            yield history
            if place < len(known) - _MOST_OPEN:
                history.close()

    def _others(self) -> Iterator[WorkspaceHistory]:
        files = sorted(self.folder.glob("*.db")) if self.folder is not None else []
        known = {history.file for history in self._open.values()}
        for file in files:
            if file not in known:
                with suppress(sqlite3.Error, TypeError):
                    history = WorkspaceHistory(_workspace_of(file), file.parent, limits=self.limits)
                    if history.file == file:
                        yield history


def _workspace_of(file: Path) -> Path:
    db = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)
    try:
        row = db.execute("SELECT value FROM about WHERE key = 'workspace'").fetchone()
        return Path(row[0])
    finally:
        db.close()
