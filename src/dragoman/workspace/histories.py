"""Manage the histories of one store: those of the folders that turns work in here, and others."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from dragoman.errors import RevertConflict, StoreUnavailable
from dragoman.workspace.history import WorkspaceHistory
from dragoman.workspace.lock import locked
from dragoman.workspace.states import DEFAULT_LIMITS, ChangeRecord, SnapshotLimits

_MOST_OPEN = 16


class Histories:
    """All histories. `folder` contains the records. None if they have no place. Without `records`, nothing
    new is recorded."""

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
        """The paths that are never recorded or copied: our own files, if they are in a workspace."""
        return [*([self.folder] if self.folder is not None else []), *self._skip]

    def at(self, workspace: Path | None) -> WorkspaceHistory | None:
        """Return the history of a folder in use. None if nothing is recorded."""
        if workspace is None or self.folder is None or not self.records:
            return None
        root = workspace.resolve()
        history = self._open.pop(root, None)
        if history is None:
            history = WorkspaceHistory(root, self.folder, limits=self.limits, skip=self._skip)
        self._open[root] = history  # at the end, because it is the last used
        return history

    def close_idle(self) -> None:
        """Close all histories but the last used. They open again when needed.

        Each has open files, and every copy for a fork has its own history.
        """
        for history in [*self._open.values()][:-_MOST_OPEN]:
            history.close()

    @contextmanager
    def telling_of(self, turns: Sequence[str]) -> Iterator[WorkspaceHistory | None]:
        """Yield the history that contains one of these turns, wherever it worked."""
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
        """Forget these conversations in every workspace: deleting a conversation deletes all of it."""
        listed = list(conversations)
        for history in self._each():
            history.forget(listed)
        for history in self._others():
            history.forget(listed)
            history.close()

    def remove(self, workspace: Path) -> None:
        """Remove all that is recorded of a folder that no longer exists."""
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
        """Yield the histories of folders in use here, without keeping all of them open."""
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


# Revert in several folders: in all of them or in none, even if the program dies in between.
#
# Each folder has its own journal (`records.py`). Before the first folder is touched, a note next to their
# records lists those that belong together. The program holds a lock on it until the last folder is done. A
# program that finds a note without a lock undoes the partial revert.


InFolder: TypeAlias = tuple[WorkspaceHistory, ChangeRecord]
"""The record of a revert in one folder."""
_log = logging.getLogger(__name__)
_NOTE, _LOCK = "together.json", "together.lock"


def revert_together(
    histories: Histories,
    parts: Sequence[tuple[WorkspaceHistory, Sequence[ChangeRecord]]],
    *,
    conversation: str,
    turn: str,
    force: bool,
    leaf: tuple[str | None, str | None] | None,
    in_part: bool = False,
) -> list[InFolder]:
    """Revert in several folders. The last one moves the conversation to `leaf`.

    All records get the same time, which identifies those that belong together. Raises RevertConflict before
    any change if one folder was changed since.
    """
    revert = partial(WorkspaceHistory.revert, conversation=conversation, turn=turn, in_part=in_part)
    if len(parts) == 1:
        ((history, records),) = parts
        return [(history, revert(history, records, force=force, leaf=leaf))]
    at = parts[0][0].clock()
    made: list[InFolder] = []
    with _alone(histories, histories.limits.longest_wait) as note:
        plans = [] if force else [history.plan(records) for history, records in parts]
        if conflicts := [(one.path, one.why) for plan in plans for one in plan.conflicts]:
            raise RevertConflict(conflicts)
        _write_note(note, [history for history, _ in parts], conversation, at)
        for history, records in parts:
            moves = leaf if len(made) == len(parts) - 1 else None
            try:
                made.append((history, revert(history, records, force=force, leaf=moves, at=at)))
            except Exception:
                _take_back(made)
                note.unlink()
                raise
        note.unlink()
    return made


def finish_reverts(histories: Histories) -> None:
    """Undo what a killed program reverted in some folders but not in the others."""
    if histories.folder is None or not histories.records or not (histories.folder / _NOTE).exists():
        return
    try:
        with _alone(histories, 0.0):
            pass
    except StoreUnavailable as error:
        if not error.retryable:  # otherwise its program is alive, and working on it
            raise


@contextmanager
def _alone(histories: Histories, patience: float) -> Iterator[Path]:
    """Yield the path of the note, while no other program reverts in several folders. First undo an unfinished
    revert."""
    assert histories.folder is not None
    note = histories.folder / _NOTE
    with locked(histories.folder / _LOCK, patience):
        if note.exists():
            _take_back_noted(note, histories)
            note.unlink()
        yield note


def _take_back_noted(note: Path, histories: Histories) -> None:
    told = json.loads(note.read_text())
    folders = [histories.at(Path(folder)) for folder in told["folders"]]
    made = [
        (history, record)
        for history in folders
        if history is not None
        for record in history.of_conversation(told["conversation"])
        if record.kind == "revert" and record.created == told["at"]
    ]
    if len(made) < len(folders):
        _take_back(made)


def _write_note(note: Path, histories: Sequence[WorkspaceHistory], conversation: str, at: float) -> None:
    folders = [str(history.root) for history in histories]
    fresh = note.with_suffix(".new")
    with fresh.open("w") as file:
        json.dump({"at": at, "conversation": conversation, "folders": folders}, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(note)


def _take_back(made: Sequence[InFolder]) -> None:
    """Undo all but what was changed since: other changes stay."""
    for history, record in reversed(made):
        theirs = {one.path for one in history.plan([record]).conflicts}
        ours = replace(record, changes=tuple(one for one in record.changes if one.path not in theirs))
        history.revert([ours], conversation=record.conversation, turn=record.turn, force=True)
        if theirs:
            _log.warning("in %s was not undone, as others changed it: %s", history.root, sorted(theirs))
