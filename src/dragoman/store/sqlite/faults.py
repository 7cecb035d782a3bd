"""What SQLite raises when a database cannot be used, as an error that says what happened and what to do."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from dragoman.errors import StoreUnavailable
from dragoman.messages.boundary import half_a_character

_WAIT = "close the program that holds it, or try again"
_THERE = "see whether it is still there, and whether you may read it and write to it"
_RIGHT = "give yourself the right to write to it, and to the folder it is in"
_RESTORE = "restore it from a copy, or save what can be saved with `sqlite3 FILE .recover`"
_DOCTOR = "`dragoman doctor` names what is damaged"
_FAULTS: dict[int, tuple[str, str, bool]] = {  # by SQLite's result code: what, what to do, again?
    sqlite3.SQLITE_BUSY: ("another program is writing to it and does not stop", _WAIT, True),
    sqlite3.SQLITE_LOCKED: ("another program is writing to it and does not stop", _WAIT, True),
    sqlite3.SQLITE_FULL: ("the disk is full", "make room, and try again", True),
    sqlite3.SQLITE_IOERR: ("the disk reports an error", "see whether it is full, failing or gone", True),
    sqlite3.SQLITE_NOMEM: ("there is no memory left", "close something, and try again", True),
    sqlite3.SQLITE_CANTOPEN: ("its file cannot be opened", _THERE, False),
    sqlite3.SQLITE_READONLY: ("its file or folder is read-only", _RIGHT, False),
    sqlite3.SQLITE_PERM: ("its file may not be used", _RIGHT, False),
    sqlite3.SQLITE_CORRUPT: ("its file is damaged", _RESTORE, False),
    sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY: ("a row is gone to which this belongs", _DOCTOR, False),
    sqlite3.SQLITE_NOTADB: ("its file is no database any more", _RESTORE, False),
}


def translate(error: BaseException, path: Path) -> BaseException:
    """StoreUnavailable for a fault of the disk or of another program, BadRequest for what no text can hold;
    any other error as it is."""
    if isinstance(error, UnicodeEncodeError):
        return half_a_character("a text")
    if not isinstance(error, sqlite3.DatabaseError):
        return error
    code = getattr(error, "sqlite_errorcode", 0)
    if code not in _FAULTS:
        code &= 0xFF  # the rest of it tells kinds of one fault apart
    if code not in _FAULTS:
        return error
    what, hint, retryable = _FAULTS[code]
    unavailable = StoreUnavailable(f"the store {path}: {what} ({error})", hint, retryable=retryable)
    unavailable.__cause__ = error
    return unavailable
