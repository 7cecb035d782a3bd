"""`sql/queries.sql` in, named statements out: `Queries.load()["add_message"]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_SQL = files("dragoman.store.sqlite") / "sql"


@cache
def queries() -> Mapping[str, str]:
    """Each statement under its name."""
    text = (_SQL / "queries.sql").read_text("utf-8")
    pieces = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)[1:]
    return {name: _statement(body) for name, body in zip(pieces[::2], pieces[1::2], strict=True)}


def schema() -> str:
    return (_SQL / "schema.sql").read_text("utf-8")


def migrations() -> list[tuple[int, str]]:
    """The numbered steps from nothing to the schema of today."""
    found = ((file.name, file.read_text("utf-8")) for file in (_SQL / "migrations").iterdir())
    return sorted((int(name[:4]), text) for name, text in found if name.endswith(".sql"))


def _statement(body: str) -> str:
    lines = (line for line in body.splitlines() if not line.startswith("--"))
    return "\n".join(lines).strip().removesuffix(";")
