"""Connects to the database file, and updates an older one to the current schema."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from dragoman.errors import ConfigError
from dragoman.store.sql.database import SchemaState, schema_state
from dragoman.store.sqlite.readers import MIGRATIONS, migrations, schema

_AGAIN = 0.005  # seconds


def connect_bare(path: Path, *, busy_timeout: float) -> sqlite3.Connection:
    """Return a connection that any thread may use, one at a time.

    It has not read the schema, which would take half a millisecond.
    """
    at = f"{path.absolute().as_uri()}?mode=rw"  # This mode does not recreate a missing file.
    return sqlite3.connect(at, uri=True, check_same_thread=False, isolation_level=None, timeout=busy_timeout)


def connect(path: Path, *, busy_timeout: float) -> sqlite3.Connection:
    db = connect_bare(path, busy_timeout=busy_timeout)
    try:
        db.row_factory = sqlite3.Row
        db.text_factory = _text
        # Only a new file accepts it. It allows free pages to be returned to the disk later.
        if not path.stat().st_size:
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        _use_wal(db, patience=busy_timeout)
        db.execute("PRAGMA synchronous = NORMAL")
        # In pages, 160 MB: upkeep makes checkpoints in parallel with the writer.
        db.execute("PRAGMA wal_autocheckpoint = 40000")
        db.execute("PRAGMA journal_size_limit = 160000000")  # In bytes: a long read lets the log grow.
        db.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        db.close()
        raise
    return db


def _use_wal(db: sqlite3.Connection, *, patience: float) -> None:
    """Enable WAL.

    If several processes open a new file together, SQLite refuses all but one without waiting.
    """
    end = time.monotonic() + patience
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        time.sleep(_AGAIN)


def _text(raw: bytes) -> str:
    """Decode damaged bytes so that they affect only their characters, not the whole list."""
    return raw.decode("utf-8", "replace")


def migrate(db: sqlite3.Connection) -> None:
    """Update the file to the current schema, each step in a transaction. A new file takes one transaction."""
    state = _state(db)
    if not state.missing:
        return
    steps = migrations()
    if not state.version:
        _step(db, schema(), [number for number, _ in steps])
    for number, script in steps:
        _step(db, script, [number])


def _step(db: sqlite3.Connection, script: str, numbers: Sequence[int]) -> None:
    """Run these steps, unless they are done."""
    before = _version(db)
    if before >= numbers[-1]:
        return
    done = f"INSERT INTO schema_version VALUES {', '.join(f'({number})' for number in numbers)}"
    try:
        db.executescript(f"BEGIN IMMEDIATE;\n{script}\n{done};\nCOMMIT;")
    except sqlite3.OperationalError:
        db.rollback()
        if _version(db) == before:  # Otherwise another process was faster.
            raise


def look(path: Path) -> SchemaState:
    """Return the pending steps without changing anything."""
    if not path.exists() or not path.stat().st_size:
        return schema_state(MIGRATIONS, 0)
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
        return _state(db)


def _state(db: sqlite3.Connection) -> SchemaState:
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and not _is_ours(db):
        raise ConfigError("The file is a database, but not a Dragoman store. Name another one.")
    return schema_state(MIGRATIONS, _version(db))


def _version(db: sqlite3.Connection) -> int:
    row = db.execute("SELECT max(version) FROM schema_version").fetchone() if _is_ours(db) else None
    return (row[0] if row else None) or 0


def _is_ours(db: sqlite3.Connection) -> bool:
    (there,) = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'schema_version'").fetchone()
    return bool(there)
