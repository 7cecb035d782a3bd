"""Store which calls and reverts changed the folder, as rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from dragoman.workspace.ignore import IGNORE_FILES
from dragoman.workspace.objects import SnapshotFile, dump_state, load_state
from dragoman.workspace.states import ChangeRecord, FileChange, compose, describe_opaque

_COLUMNS = (
    "id, kind, conversation, turn, step, calls, reverts, paths, notes, leaf_before, leaf_after, created"
)


@dataclass(slots=True)
class OpenRecord:
    """Running calls. Changes found before their start positions are not theirs.

    `wide` is the history position from which all changes count, `paths` that of each named path.
    """

    id: int
    start: int
    wide: int | None
    paths: dict[str, int]
    calls: list[str]
    notes: list[str]

    def covers(self, position: int, path: str) -> bool:
        named = any(
            position > since and (one == path or one.startswith(f"{path}/"))
            for one, since in self.paths.items()
        )
        return named or (self.wide is not None and position > self.wide)


@dataclass(slots=True)
class RunningCalls:
    """The calls of one turn that run now, in this process."""

    record: OpenRecord
    calls: set[str] = field(default_factory=set)
    rules_of: str = ""  # the turn whose ignore rules apply


class Records:
    def __init__(self, file: SnapshotFile) -> None:
        self._file = file
        self._db = file.db

    # ── calls that run ────────────────────────────────────────────────────────────────────────────

    def open(self, conversation: str, turn: str, step: int, at: float) -> OpenRecord:
        start = self._file.position()
        cursor = self._db.execute(
            "INSERT INTO records"
            " (state, kind, conversation, turn, step, calls, reverts, notes, start, created)"
            " VALUES ('open', 'calls', ?, ?, ?, '[]', '[]', '[]', ?, ?)",
            (conversation, turn, step, start, at),
        )
        assert cursor.lastrowid is not None
        return OpenRecord(cursor.lastrowid, start, None, {}, [], [])

    def save_open(self, record: OpenRecord) -> None:
        self._db.execute(
            "UPDATE records SET wide = ?, paths = ?, calls = ?, notes = ? WHERE id = ?",
            (
                record.wide,
                json.dumps(record.paths),
                json.dumps(record.calls),
                json.dumps(record.notes),
                record.id,
            ),
        )

    def opened(self, turn: str | None = None) -> list[OpenRecord]:
        rows = self._db.execute(
            "SELECT id, start, wide, paths, calls, notes FROM records"
            " WHERE state = 'open' AND (? IS NULL OR turn = ?) ORDER BY id",
            (turn, turn),
        )
        return [
            OpenRecord(
                id, start, wide, _since(json.loads(paths), start), json.loads(calls), json.loads(notes)
            )
            for id, start, wide, paths, calls, notes in rows
        ]

    def told_from_new(self, changes: Sequence[FileChange]) -> list[FileChange]:
        """Return the changes without files that may be old. Before the first full scan, an unseen file is not
        necessarily new, unless a call has named its path."""
        watched = {path for record in self.opened() for path in record.paths}
        named = {one for path in watched for one in accumulate(path.split("/"), "{}/{}".format)}
        return [change for change in changes if change.before is not None or change.path in named]

    def since(self, record: OpenRecord) -> list[FileChange]:
        """Return the changes found since the record was opened."""
        deltas = self._file.deltas(record.start)
        return compose([change for position, change in deltas if record.covers(position, change.path)])

    def close(self, record: OpenRecord, *, unknown_rules: bool = False) -> ChangeRecord | None:
        """Close a record with the changes since it was opened. None, and no row, if there are none.

        `unknown_rules`: for an interrupted call, the earlier ignore rules are unknown.
        """
        if not self._db.execute("SELECT 1 FROM records WHERE id = ?", (record.id,)).fetchone():
            return None  # its conversation was deleted meanwhile
        changes = self.since(record)
        if unknown_rules and any(change.path.rpartition("/")[2] in IGNORE_FILES for change in changes):
            # The earlier rules are unknown. An old file that they hid would look new, and a revert would
            # delete it.
            changes = [change for change in changes if change.before is not None]
            record.notes.append("the ignore rules changed meanwhile: new files are not told")
        record.notes += [
            f"{change.path}: {describe_opaque(change.before)}: it cannot be brought back"
            for change in changes
            if change.before is not None
            and change.before.kind == "opaque"
            and not any(note.startswith(f"{change.path}: ") for note in record.notes)
        ]
        if not changes and not record.notes:
            self._db.execute("DELETE FROM records WHERE id = ?", (record.id,))
        else:
            self.save_open(record)
            self._db.execute("UPDATE records SET state = 'done' WHERE id = ?", (record.id,))
            self._add_changes(record.id, changes)
        self._file.drop_deltas()
        return self.find(record.id)

    # ── reverts ───────────────────────────────────────────────────────────────────────────────────

    def add_revert(self, record: ChangeRecord, *, moves_leaf: bool) -> int:
        cursor = self._db.execute(
            "INSERT INTO records (state, kind, conversation, turn, step, calls, reverts, paths, notes,"
            " leaf_before, leaf_after, leaf_moved, created)"
            " VALUES ('done', 'revert', ?, ?, 0, '[]', ?, ?, ?, ?, ?, ?, ?)",
            (
                record.conversation,
                record.turn,
                json.dumps(record.reverts),
                json.dumps(record.only),
                json.dumps(record.notes),
                record.leaf_before,
                record.leaf_after,
                not moves_leaf,
                record.created,
            ),
        )
        assert cursor.lastrowid is not None
        self._add_changes(cursor.lastrowid, record.changes)
        return cursor.lastrowid

    def waiting_leaves(self) -> list[ChangeRecord]:
        """Return reverts whose files are restored, but whose conversation has not moved yet."""
        return self._all("leaf_moved = 0")

    def settle_leaf(self, record: int, *, moved: bool) -> None:
        """Mark a revert's move as done. If it moved nothing, a later revert must not move the conversation
        back."""
        nowhere = "" if moved else ", leaf_before = NULL, leaf_after = NULL"
        self._db.execute(f"UPDATE records SET leaf_moved = 1{nowhere} WHERE id = ?", (record,))

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

    def turns(self) -> list[str]:
        return [turn for (turn,) in self._db.execute("SELECT DISTINCT turn FROM records")]

    def find(self, id: int) -> ChangeRecord | None:
        found = self._all("id = ?", id)
        return found[0] if found else None

    def of_turns(self, turns: Iterable[str]) -> list[ChangeRecord]:
        """Return the changes of these turns' calls, in order."""
        listed = json.dumps(list(turns))
        return self._all("kind = 'calls' AND turn IN (SELECT value FROM json_each(?))", listed)

    def of_conversation(self, *ids: str) -> list[ChangeRecord]:
        return self._all("conversation IN (SELECT value FROM json_each(?))", json.dumps(ids))

    def of_path(self, path: str) -> list[ChangeRecord]:
        return self._all("id IN (SELECT record FROM changes WHERE path = ?)", path)

    def _all(self, condition: str, *values: Any) -> list[ChangeRecord]:
        query = f"SELECT {_COLUMNS} FROM records WHERE state = 'done' AND {condition} ORDER BY id"
        return [self._record(row) for row in self._db.execute(query, values).fetchall()]

    def _record(self, row: Sequence[Any]) -> ChangeRecord:
        id, kind, conversation, turn, step, calls, reverts, paths, notes, before, after, created = row
        changes = self._db.execute(
            "SELECT path, before, after FROM changes WHERE record = ? ORDER BY path", (id,)
        )
        return ChangeRecord(
            id,
            kind,
            conversation,
            turn,
            step,
            tuple(json.loads(calls)),
            tuple(json.loads(reverts)),
            tuple(json.loads(paths)) if kind == "revert" else (),
            tuple(FileChange(path, load_state(was), load_state(now)) for path, was, now in changes),
            tuple(json.loads(notes)),
            before,
            after,
            created,
        )

    def _add_changes(self, record: int, changes: Iterable[FileChange]) -> None:
        self._db.executemany(
            "INSERT INTO changes VALUES (?, ?, ?, ?)",
            ((record, one.path, dump_state(one.before), dump_state(one.after)) for one in changes),
        )

    # ── forgetting ────────────────────────────────────────────────────────────────────────────────

    def forget(self, conversations: Iterable[str]) -> int:
        listed = json.dumps(list(conversations))
        query = "DELETE FROM records WHERE conversation IN (SELECT value FROM json_each(?))"
        return self._db.execute(query, (listed,)).rowcount

    def forget_before(self, time: float) -> int:
        return self._db.execute("DELETE FROM records WHERE created < ?", (time,)).rowcount


def _since(paths: Any, start: int) -> dict[str, int]:
    """Read the paths. Older versions wrote a list."""
    return dict(paths) if isinstance(paths, dict) else dict.fromkeys(paths, start)


# Reverts in progress: written down before any change, so that a crash leaves all or nothing.


def write_journal(file: SnapshotFile, record: ChangeRecord, *, moves: bool) -> int:
    """Write a revert to disk before it begins. Return its number.

    `moves`: the conversation must also be moved.
    """
    body: dict[str, Any] = {
        "changes": [[one.path, dump_state(one.before), dump_state(one.after)] for one in record.changes],
        "conversation": record.conversation,
        "turn": record.turn,
        "reverts": record.reverts,
        "only": record.only,
        "notes": record.notes,
        "leaf": [record.leaf_before, record.leaf_after] if moves else None,
        "created": record.created,
    }
    cursor = file.db.execute("INSERT INTO journal (body) VALUES (?)", (json.dumps(body),))
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def read_journal(file: SnapshotFile) -> Iterator[tuple[int, ChangeRecord, bool]]:
    """Yield unfinished reverts of killed programs: the number, the record, and whether the conversation was
    to move."""
    for number, text in file.db.execute("SELECT id, body FROM journal ORDER BY id").fetchall():
        body = json.loads(text)
        before, after = body["leaf"] or (None, None)
        record = ChangeRecord(
            0,
            "revert",
            body["conversation"],
            body["turn"],
            reverts=tuple(body["reverts"]),
            only=tuple(body.get("only", ())),
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
