"""The SQL of the store, by name: `queries()["add_message"]`, and the migrations that make its tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_SQL = files("dragoman.store.sqlite") / "sql"


@cache
def queries() -> Mapping[str, str]:
    """Each statement under its name."""
    statements: dict[str, str] = {}
    for file in (_SQL / "queries").iterdir():
        pieces = re.split(r"^-- name: (\w+)\n", file.read_text("utf-8"), flags=re.MULTILINE)[1:]
        for name, body in zip(pieces[::2], pieces[1::2], strict=True):
            assert name not in statements, f"two queries are called {name}"
            statements[name] = _statement(body)
    return statements


def schema() -> str:
    return (_SQL / "schema.sql").read_text("utf-8")


def migrations() -> list[tuple[int, str]]:
    """The numbered steps from nothing to the schema of today."""
    found = ((file.name, file.read_text("utf-8")) for file in (_SQL / "migrations").iterdir())
    return sorted((int(name[:4]), text) for name, text in found if name.endswith(".sql"))


def _statement(body: str) -> str:
    lines = (line for line in body.splitlines() if not line.startswith("--"))
    return "\n".join(lines).strip().removesuffix(";")
