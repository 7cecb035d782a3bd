"""Keep notes that outlive a killed process, in addition to the store: the work of tools, and promises to
callers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Diary:
    """A file of lines. Each line is one system call, so other processes see it immediately, also if the
    writer dies."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, **line: Any) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def lines(self) -> list[dict[str, Any]]:
        return (
            [json.loads(line) for line in self._path.read_text().splitlines()] if self._path.exists() else []
        )

    def all(self, key: str) -> list[Any]:
        """Return the notes under this key, in order."""
        return [line[key] for line in self.lines() if key in line]
