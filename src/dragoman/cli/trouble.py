"""An error of the machine in, the line a person reads out."""

from __future__ import annotations

import sqlite3


def told(error: Exception) -> str:
    """On one line; of the database, with what is mostly behind it."""
    said = " ".join(str(error).split())
    if isinstance(error, sqlite3.Error):
        return f"the store cannot be written or read: {said}. Is the disk full?"
    return said
