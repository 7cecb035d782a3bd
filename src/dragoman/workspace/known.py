"""Hold the state of the folder at the last scan, and the result of a scan."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dragoman.workspace.ignore import IgnoreReader, IgnoreRules
from dragoman.workspace.objects import Status
from dragoman.workspace.states import FileChange, FileState

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

NEVER: Status = (0, 0, 0)  # a status that no file has: it is read again at the next scan


class LookStopped(Exception):
    """The folder is too big. The text says how."""


@dataclass(slots=True)
class Known:
    """The folder at the last scan. Maps a folder's name, with a slash at its end, to its entries."""

    folders: dict[str, dict[str, tuple[Status, FileState]]] = field(default_factory=dict)
    count: int = 0
    rules: dict[str, IgnoreRules] = field(default_factory=dict)  # of each folder, at the last scan
    # what the rules hid there; folders with a slash
    hidden: dict[str, set[str]] = field(default_factory=dict)
    parsed: dict[bytes, GitIgnoreSpec] = field(default_factory=dict)
    opaque: set[str] = field(default_factory=set)  # files whose bytes are not kept

    def find(self, path: str) -> FileState | None:
        above, name = _split(path)
        found = self.folders.get(above, {}).get(name)
        return found[1] if found is not None else None

    def set(self, path: str, state: FileState | None, status: Status = NEVER) -> None:
        above, name = _split(path)
        inside = self.folders.setdefault(above, {})
        self.count += (state is not None) - (name in inside)
        if state is not None and state.kind == "opaque":
            self.opaque.add(path)
        elif self.opaque:
            self.opaque.discard(path)
        if state is None:
            inside.pop(name, None)
        else:
            inside[name] = (status, state)

    def inside(self, path: str) -> list[str]:
        """Return the entries of a folder."""
        return [f"{path}/{name}" for name in self.folders.get(f"{path}/", ())]


@dataclass(slots=True)
class Look:
    """The result of a scan."""

    changes: list[FileChange] = field(default_factory=list)
    seen: list[tuple[str, FileState, Status]] = field(default_factory=list)  # to be remembered
    dropped: list[str] = field(default_factory=list)  # to be forgotten
    # entries that are ignored now, as if they were removed
    hidden: list[FileChange] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    shown: bool = False  # some entries that the last full scan hid are known now
    ignored: set[str] = field(default_factory=set)  # of the paths to scan
    blind: bool = False  # some folders could not be read
    stopped: str = ""  # why the scan is incomplete; its results are valid anyway
    rules: IgnoreReader = field(default_factory=IgnoreReader)


def _split(path: str) -> tuple[str, str]:
    above, slash, name = path.rpartition("/")
    return above + slash, name
