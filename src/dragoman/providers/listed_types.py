"""Remembers over restarts what servers say, in their lists, that their models do."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from pydantic_core import from_json, to_json

from dragoman.messages.media import MODEL_TYPES, ModelType

_log = logging.getLogger("dragoman.providers")
FILE = "model-types.json"
MOST = 10_000  # models: those who serve everybody's list thousands


class ListedTypes(dict[str, ModelType]):
    """Types by the full names of models; in a file, if there is one. One that cannot be read is empty."""

    def __init__(self, file: Path | None = None) -> None:
        super().__init__()
        self._file = file
        if file is None or not file.exists():
            return
        try:
            found = from_json(file.read_bytes())
            known = {type: type for type in MODEL_TYPES}
            super().update({str(name): known[type] for name, type in found.items() if type in known})
        except (OSError, ValueError, AttributeError, TypeError) as error:
            _log.warning("%s cannot be read, and is written anew: %s", file, error)

    def note(self, types: Mapping[str, ModelType]) -> None:
        """Remember these, the newest longest."""
        if all(self.get(name) == type for name, type in types.items()):
            return
        for name, type in types.items():
            self.pop(name, None)
            self[name] = type
        for name in [*self][: max(0, len(self) - MOST)]:
            del self[name]
        if self._file is not None:
            self._save(self._file)

    def _save(self, file: Path) -> None:
        draft = file.with_suffix(".new")
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft.write_bytes(to_json(dict(self), indent=1))
            draft.replace(file)
        except OSError as error:
            _log.warning("what models do is not remembered: %s", error)
