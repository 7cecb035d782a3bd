"""SQLite's statements by name: `queries()["add_message"]`, and the migrations that make its tables."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from dragoman.store.sql.database import numbered, statements

_SQL = files("dragoman.store.sqlite") / "sql"
MIGRATIONS = _SQL / "migrations"


@cache
def queries() -> Mapping[str, str]:
    return statements(_SQL / "queries")  # nothing to lock: one writes at a time


def schema() -> str:
    return (_SQL / "schema.sql").read_text("utf-8")


def migrations() -> list[tuple[int, str]]:
    return numbered(MIGRATIONS)
