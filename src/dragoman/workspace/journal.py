"""Reverts that have begun: written down before anything is changed, so that a crash leaves all or nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dragoman.workspace.objects import SnapshotFile, dump_state, load_state
from dragoman.workspace.states import ChangeRecord, FileChange


def write_journal(file: SnapshotFile, record: ChangeRecord, *, moves: bool) -> int:
    """On disk when this returns. `moves`: the conversation is to be moved as well. → its number"""
    body: dict[str, Any] = {
        "changes": [[one.path, dump_state(one.before), dump_state(one.after)] for one in record.changes],
        "conversation": record.conversation,
        "turn": record.turn,
        "reverts": record.reverts,
        "notes": record.notes,
        "leaf": [record.leaf_before, record.leaf_after] if moves else None,
        "created": record.created,
    }
    cursor = file.db.execute("INSERT INTO journal (body) VALUES (?)", (json.dumps(body),))
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def read_journal(file: SnapshotFile) -> Iterator[tuple[int, ChangeRecord, bool]]:
    """What a program did not live to finish: its number, the record it was to become, and whether the
    conversation was to be moved."""
    for number, text in file.db.execute("SELECT id, body FROM journal ORDER BY id").fetchall():
        body = json.loads(text)
        before, after = body["leaf"] or (None, None)
        record = ChangeRecord(
            0,
            "revert",
            body["conversation"],
            body["turn"],
            reverts=tuple(body["reverts"]),
            changes=tuple(
                FileChange(path, load_state(was), load_state(shall_be))
                for path, was, shall_be in body["changes"]
            ),
            notes=tuple(body["notes"]),
            leaf_before=before,
            leaf_after=after,
            created=body["created"],
        )
        yield number, record, body["leaf"] is not None


def drop_journal(file: SnapshotFile, number: int) -> None:
    file.db.execute("DELETE FROM journal WHERE id = ?", (number,))
