"""Notes that outlive a killed process, beside the store: what tools did, what callers were promised."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Diary:
    """A file of lines. Each is one system call: it is there for others at once, also if the writer dies."""

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
        """What was noted under this key, in order."""
        return [line[key] for line in self.lines() if key in line]
