"""Loads a folder's instructions for the model, and its message templates.

Both affect the model, so those of a folder other than the user's own are used only as they were when trusted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dragoman.config.settings import Settings
from dragoman.config.trust.contents import (
    COMMANDS,
    INSTRUCTIONS,
    MOST_BYTES,
    TooMuch,
    read_without_waiting,
)
from dragoman.stored_keys import user_folder

MOST = 64_000  # Maximum characters of instructions.
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_PLACE = re.compile(r"\$(ARGUMENTS|[1-9])")


@dataclass(slots=True, frozen=True)
class ProjectPrompt:
    """The instructions of a project, and their file."""

    file: Path
    text: str

    @property
    def for_model(self) -> str:
        return f"Instructions of this project, from {self.file.name}:\n\n{self.text}"


@dataclass(slots=True, frozen=True)
class Template:
    """A custom command: `$ARGUMENTS` and `$1` to `$9` are replaced by the words after its name."""

    name: str
    text: str
    file: Path

    @property
    def help(self) -> str:
        return next((line.strip("# ") for line in self.text.splitlines() if line.strip()), "")

    def fill(self, arguments: str) -> str:
        words = arguments.split()

        def put(found: re.Match[str]) -> str:
            if found[1] == "ARGUMENTS":
                return arguments
            return words[int(found[1]) - 1] if int(found[1]) <= len(words) else ""

        if not _PLACE.search(self.text):
            return f"{self.text.strip()}\n\n{arguments}".strip()
        return _PLACE.sub(put, self.text).strip()


def project_prompt(settings: Settings, workspace: Path | None = None) -> ProjectPrompt | None:
    """Return the first usable instruction file, unless the settings disable it.

    `workspace` selects another workspace than that of the settings.
    """
    if not settings.values.get("project_prompt", True):
        return None
    for name in INSTRUCTIONS:
        file = (workspace or settings.workspace) / name
        text = _read(settings, file)
        if text is not None and text.strip():
            return ProjectPrompt(file, text.strip()[:MOST])
    return None


def templates(settings: Settings) -> dict[str, Template]:
    """Return the templates by name. The user's own take precedence, so a project cannot redefine a user's
    command."""
    found: dict[str, Template] = {}
    for folder, own in ((user_folder() / "commands", True), (settings.workspace / COMMANDS, False)):
        for file in _markdown(folder):
            text = _read(settings, file, own=own)
            name = file.stem.lower()
            if text is not None and text.strip() and _NAME.fullmatch(name):
                found.setdefault(name, Template(name, text, file))
    return found


def _markdown(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(file for file in folder.glob("*.md") if file.is_file())
    except OSError:
        return  # An unreadable folder counts as missing.


def _read(settings: Settings, file: Path, *, own: bool = False) -> str | None:
    try:
        data = read_without_waiting(file, MOST_BYTES)
    except (OSError, TooMuch):
        return None
    if not own and not settings.sources.accepts(file, data):
        return None
    return data.decode("utf-8", "replace").removeprefix("\ufeff")
