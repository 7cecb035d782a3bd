"""How an error ends a command: the line a person reads, and the exit status a script reads."""

from __future__ import annotations

import sqlite3

from dragoman.cli.terminal.text import plain
from dragoman.errors import ConfigError
from dragoman.redaction import redact_text


def describe_error(error: Exception) -> str:
    """On one line; for the database, with the likeliest cause."""
    text = redact_text(" ".join(plain(str(error)).split()))
    if isinstance(error, sqlite3.Error):
        return f"the store cannot be written or read: {text}. Is the disk full?"
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{redact_text(plain(str(error.filename)))}: {error.strerror}"
    return text


def exit_status(error: Exception) -> int:
    """2 for settings or flags that cannot be followed, else 1."""
    return 2 if isinstance(error, ConfigError) else 1
