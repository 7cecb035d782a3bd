"""A revert in several folders: in all of them or in none, also where the program dies between two.

Each folder has a journal of its own (`journal.py`). That they belong together is written down before the
first is touched, beside their records, under a lock that its program holds until the last is done. Who finds
such a note that nobody holds takes back what was done in some of the folders.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from dragoman.errors import RevertConflict, StoreUnavailable
from dragoman.workspace.histories import Histories
from dragoman.workspace.history import WorkspaceHistory
from dragoman.workspace.lock import locked
from dragoman.workspace.states import ChangeRecord

InFolder: TypeAlias = tuple[WorkspaceHistory, ChangeRecord]
"""What a revert did in one."""
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
) -> list[InFolder]:
    """The last folder moves the conversation to `leaf`. All have one time, by which they are known to belong
    together. RevertConflict where one of them is not as it was left, before any is touched."""
    revert = partial(WorkspaceHistory.revert, conversation=conversation, turn=turn)
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
    """Take back what a program did in some folders, and did not live to do in the others."""
    if histories.folder is None or not histories.records or not (histories.folder / _NOTE).exists():
        return
    try:
        with _alone(histories, 0.0):
            pass
    except StoreUnavailable as error:
        if not error.retryable:  # else its program lives, and is at it
            raise


@contextmanager
def _alone(histories: Histories, patience: float) -> Iterator[Path]:
    """Nobody else is at a revert in several folders, nor has left one half done. → where it is noted"""
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
    """All but what somebody has changed since: that is theirs."""
    for history, record in reversed(made):
        theirs = {one.path for one in history.plan([record]).conflicts}
        ours = replace(record, changes=tuple(one for one in record.changes if one.path not in theirs))
        history.revert([ours], conversation=record.conversation, turn=record.turn, force=True)
        if theirs:
            _log.warning("in %s was not taken back, as others changed it: %s", history.root, sorted(theirs))
