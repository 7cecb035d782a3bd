"""SQL statements by name: `-- name: add_message` in a file, and what follows it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable

SHARED = files("dragoman.store.sql") / "queries"
_LOCKED = ("conversation", "turn", "question", "queued", "usage_of")  # read by who is about to write


def statements(own: Traversable, *, lock: str = "") -> Mapping[str, str]:
    """Those that every engine understands, and those of one engine. `lock` is what makes a row that is read
    wait for nobody but us; a statement that ends with it is there as `lock_…`."""
    found: dict[str, str] = {}
    for folder in (SHARED, own):
        for file in folder.iterdir():
            pieces = re.split(r"^-- name: (\w+)\n", file.read_text("utf-8"), flags=re.MULTILINE)[1:]
            for name, body in zip(pieces[::2], pieces[1::2], strict=True):
                assert name not in found, f"two queries are called {name}"
                found[name] = _statement(body)
    return found | {f"lock_{name}": found[name] + lock for name in _LOCKED}


def numbered(folder: Traversable) -> list[tuple[int, str]]:
    """Migrations: the numbered steps from nothing to the schema of today."""
    found = ((file.name, file.read_text("utf-8")) for file in folder.iterdir())
    return sorted((int(name[:4]), text) for name, text in found if name.endswith(".sql"))


def _statement(body: str) -> str:
    lines = (line for line in body.splitlines() if not line.startswith("--"))
    return "\n".join(lines).strip().removesuffix(";")
