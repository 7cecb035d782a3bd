"""Finds defects of a store's file and folder, and repairs what it can without data loss.

For `dragoman doctor`. It reads everything, so it may take long. No other process should use the store during
a repair.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from dragoman.errors import NotFound, StoreUnavailable, Unreadable
from dragoman.messages.codec import Codec
from dragoman.store.blobs.folder import FolderBlobs
from dragoman.store.codecs import CALL, JSON, MESSAGE, QUESTION, USAGE
from dragoman.store.sql.rows import load
from dragoman.store.sqlite.migrate import connect
from dragoman.store.sqlite.readers import schema

_DAY = 24 * 3600.0  # Seconds after which an unreferenced blob stays unreferenced.
_SHOWN = 20  # Maximum number shown per kind.
_RECOVER = "restore it from a copy, or save what can be saved with `sqlite3 FILE .recover`"
_TAKE_OUT = "dragoman export {0} --format raw -o {0}.json, then: dragoman rm {0}"
_RESTORE_FILE = "restore that file from a copy of the folder; everything else can be read"
# Rows of these tables without their parent are unreachable. Such rows of other tables may contain messages.
_LEFTOVERS = {"calls", "facts", "events", "signals", "questions", "queue", "grants", "blob_references"}


@dataclass(slots=True, frozen=True)
class Defect:
    """A defect. `hint` says what the admin can do if it was not, or cannot be, repaired."""

    text: str
    hint: str
    repaired: bool = False
    harmless: bool = False  # It only takes space.


def check_store(
    path: Path, *, repair: bool = False, other_blobs: Collection[str] = frozenset()
) -> list[Defect]:
    """Return all defects. With `repair`, fix those that are safe to fix, and mark them.

    `other_blobs` are at another place than the folder next to the file.
    """
    blobs = FolderBlobs(path.with_name(path.name + ".files") / "blobs")
    with closing(connect(path, busy_timeout=10.0)) as db:
        try:
            found = [*_damaged_pages(db, repair), *_missing_indexes(db, repair), *_orphans(db, repair)]
            found += [
                *_unreadable(db),
                *islice(_lost_blobs(db, blobs, other_blobs), _SHOWN),
                *_unused_blobs(db, blobs),
            ]
        except sqlite3.DatabaseError as error:
            found = [Defect(f"the file is damaged: {error}", _RECOVER)]
    return found


def _damaged_pages(db: sqlite3.Connection, repair: bool) -> Iterator[Defect]:
    problems = _integrity(db)
    if problems and repair and all("index" in problem for problem in problems):
        db.execute("REINDEX")  # An index is rebuilt from its table, so nothing is lost.
        if not _integrity(db):
            yield Defect(f"an index was damaged: {problems[0]}", "", repaired=True)
            return
    for problem in problems[:_SHOWN]:
        hint = "dragoman doctor --repair" if "index" in problem else _RECOVER
        yield Defect(f"the file is damaged: {problem}", hint)


def _integrity(db: sqlite3.Connection) -> list[str]:
    return [row[0] for row in db.execute("PRAGMA integrity_check(100)") if row[0] != "ok"]


def _missing_indexes(db: sqlite3.Connection, repair: bool) -> Iterator[Defect]:
    query = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    there = {row[0] for row in db.execute(query)}
    with closing(sqlite3.connect(":memory:")) as model:
        model.executescript(schema())
        wanted = model.execute(query).fetchall()
    for name, sql in wanted:
        if name not in there:
            if repair:
                db.execute(sql)
            yield Defect(f"the index {name} is missing", "dragoman doctor --repair", repaired=repair)


def _orphans(db: sqlite3.Connection, repair: bool) -> Iterator[Defect]:
    """Yield rows that reference a missing row."""
    count: dict[tuple[str, str], int] = {}
    for row in db.execute("PRAGMA foreign_key_check"):
        count[row["table"], row["parent"]] = count.get((row["table"], row["parent"]), 0) + 1
    for (table, parent), rows in count.items():
        text = f"{rows} of the table {table} belong to {parent} that are not there"
        if table in _LEFTOVERS and repair:
            _delete_orphans(db, table, parent)
            yield Defect(text, "", repaired=True)
        elif table in _LEFTOVERS:
            yield Defect(text, "dragoman doctor --repair removes them: nothing can reach them", harmless=True)
        else:
            yield Defect(text, _RECOVER)


def _delete_orphans(db: sqlite3.Connection, table: str, parent: str) -> None:
    for key in db.execute(f"PRAGMA foreign_key_list({table})").fetchall():
        if key["table"] == parent:
            column, target = key["from"], key["to"] or "id"
            db.execute(
                f"DELETE FROM {table} WHERE {column} IS NOT NULL "
                f"AND NOT EXISTS (SELECT 1 FROM {parent} p WHERE p.{target} = {table}.{column})"
            )


def _unreadable(db: sqlite3.Connection) -> Iterator[Defect]:
    """Yield rows with invalid contents, each with its conversation."""
    for noun, id, conversation in islice(_unreadable_rows(db), _SHOWN):
        yield Defect(f"{noun} {id} of {conversation} cannot be read", _TAKE_OUT.format(conversation))


def _unreadable_rows(db: sqlite3.Connection) -> Iterator[tuple[str, str, str]]:
    for row in db.execute("SELECT id, settings, usage FROM conversations WHERE deleted = 0"):
        if not (_reads(JSON, row["settings"]) and _reads(USAGE, row["usage"])):
            yield "conversation", row["id"], row["id"]
    bodies: dict[str, tuple[Codec[Any], str]] = {
        "message": (MESSAGE, "SELECT id, conversation, body FROM messages"),
        "question": (QUESTION, "SELECT id, conversation, body FROM questions"),
        "call": (
            CALL,
            "SELECT c.id, m.conversation, c.body FROM calls c JOIN messages m ON m.id = c.message",
        ),
        "queued turn": (JSON, "SELECT turn AS id, conversation, body FROM queue"),
        "fact of turn": (
            JSON,
            "SELECT t.id, t.conversation, f.body FROM facts f JOIN turns t ON t.id = f.turn",
        ),
    }
    for noun, (codec, query) in bodies.items():
        for row in db.execute(query):
            if not _reads(codec, row["body"]):
                yield noun, row["id"], row["conversation"]


def _reads(codec: Codec[Any], body: str) -> bool:
    try:
        load(codec, "", "", body)
    except Unreadable:
        return False
    return True


# ── blobs ─────────────────────────────────────────────────────────────────────────────────────────


def _lost_blobs(db: sqlite3.Connection, blobs: FolderBlobs, other_blobs: Collection[str]) -> Iterator[Defect]:
    query = "SELECT blob, min(conversation) AS conversation FROM blob_references GROUP BY blob"
    for row in db.execute(query):
        if row["blob"] in other_blobs:
            continue
        try:
            blobs.read_blocking(row["blob"])
        except (NotFound, Unreadable, StoreUnavailable) as error:
            yield Defect(f"an attachment or output of {row['conversation']}: {error}", _RESTORE_FILE)


def _unused_blobs(db: sqlite3.Connection, blobs: FolderBlobs) -> Iterator[Defect]:
    """Yield unreferenced files that are older than the database's records.

    Another database, which was moved away, may reference them. Upkeep removes all other unreferenced files.
    """
    mentioned = {
        row["blob"] for row in db.execute("SELECT blob FROM blob_references UNION SELECT blob FROM files")
    }
    account = 60.0 * db.execute("PRAGMA user_version").fetchone()[0] or time.time()
    old = blobs.old_files(min(account, time.time() - _DAY))
    unused = [path for path in old if path.parent.name + path.name not in mentioned]
    if unused:
        hint = "if no other database was next to them, you can delete them by hand"
        yield Defect(f"{_count(unused)} that nothing mentions, older than this database", hint, harmless=True)


def _count(files: list[Path]) -> str:
    return f"{len(files)} files ({sum(file.stat().st_size for file in files) / 2**20:.1f} MiB)"
