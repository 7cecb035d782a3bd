"""Remembers in the user's data folder which folders the user trusted, and their content at that time."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

from dragoman.config.trust.contents import FolderContents, writer_of

FILE = "trust.json"


@dataclass(slots=True, frozen=True)
class TrustAnswer:
    """A user's answer about a folder, and the files that it covers."""

    trusted: bool
    when: float
    files: Mapping[str, str] = field(default_factory=dict)

    def covers(self, contents: FolderContents) -> bool:
        """Return whether all active content existed unchanged at the time of the answer. Removed files do not
        matter."""
        return all(self.files.get(name) == hash for name, hash in contents.files.items())

    def changes(self, contents: FolderContents) -> list[str]:
        """Describe what is new, changed or gone."""
        return [
            *(
                f"{'changed' if name in self.files else 'new'}: {name}"
                for name, hash in contents.files.items()
                if self.files.get(name) != hash
            ),
            *(
                f"removed: {name}"
                for name in self.files
                if name not in contents.files and not os.path.lexists(contents.folder / name)
            ),
        ]


class TrustAnswers:
    """The answers by folder, in a file that only this user can read and write."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def all(self) -> dict[Path, TrustAnswer]:
        """Return all answers. Return none if the file is unreadable, damaged or writable by others, so that
        the user is asked again."""
        try:
            if writer_of(self.file) is not None:
                return {}
            table = json.loads(self.file.read_text("utf-8"))
            return {Path(folder): _parse(entry) for folder, entry in table["folders"].items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return {}

    def find(self, folder: Path) -> TrustAnswer | None:
        return self.all().get(folder)

    def remember(self, contents: FolderContents, *, trusted: bool) -> None:
        """Store an answer. Earlier answers of the same kind for other files of the folder stay valid."""
        known = self.all()
        earlier = known.get(contents.folder)
        said = earlier.files if earlier is not None and earlier.trusted == trusted else {}
        before = {name: hash for name, hash in said.items() if os.path.lexists(contents.folder / name)}
        known[contents.folder] = TrustAnswer(trusted, time.time(), {**before, **contents.files})
        self._write(known)

    def forget(self, folder: Path) -> bool:
        """Remove the answer, and return whether there was one."""
        known = self.all()
        if known.pop(folder, None) is None:
            return False
        self._write(known)
        return True

    def _write(self, known: Mapping[Path, TrustAnswer]) -> None:
        """Write the file completely or not at all, without ever making it readable by others."""
        folders = {
            str(folder): {"trusted": one.trusted, "when": one.when, "files": dict(one.files)}
            for folder, one in known.items()
        }
        self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self.file.with_name(f"{self.file.name}.{token_hex(4)}")
        try:
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
                json.dump({"folders": folders}, opened, indent=1)
            beside.replace(self.file)
        finally:
            beside.unlink(missing_ok=True)


def _parse(entry: Mapping[str, Any]) -> TrustAnswer:
    files = {str(name): str(hash) for name, hash in entry["files"].items()}
    return TrustAnswer(entry["trusted"] is True, float(entry["when"]), files)
