"""Define values: the state of a path at a moment, how it changed, and who changed it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

StateKind: TypeAlias = Literal["file", "link", "folder", "opaque"]
"""`opaque` is a file whose bytes are not kept: too large, or not readable by us.

Only its status identifies it, and it cannot be restored.
"""

RecordKind: TypeAlias = Literal["calls", "revert"]

INTERRUPTED = "the program stopped while this ran: what others changed meanwhile is told here, too"


@dataclass(slots=True, frozen=True)
class FileState:
    """The state of a path. `object` names the bytes: of a file, or of a link's target."""

    kind: StateKind
    mode: int = 0
    object: str = ""
    size: int = 0

    @property
    def content(self) -> tuple[str, str]:
        return self.kind, self.object


def holds(state: FileState | None) -> bool:
    """Return whether the state is a file or a link."""
    return state is not None and state.kind != "folder"


@dataclass(slots=True, frozen=True)
class FileChange:
    """A path before and after. None if it did not exist."""

    path: str
    before: FileState | None
    after: FileState | None


@dataclass(slots=True, frozen=True)
class ChangeRecord:
    """The changes that some calls of a step, or a revert, made in the folder."""

    id: int
    kind: RecordKind
    conversation: str
    turn: str
    step: int = 0
    calls: tuple[str, ...] = ()
    reverts: tuple[int, ...] = ()  # the records that a revert reverted
    only: tuple[str, ...] = ()  # the paths to which a revert was limited; empty: all
    changes: tuple[FileChange, ...] = ()
    notes: tuple[str, ...] = ()  # changes that could not be recorded, and why
    leaf_before: str | None = None  # of the conversation, if a revert moved it
    leaf_after: str | None = None
    created: float = 0.0


@dataclass(slots=True, frozen=True)
class Conflict:
    """A file that has changed since the records."""

    path: str
    why: str


@dataclass(slots=True, frozen=True)
class SnapshotLimits:
    """Limits of what is recorded. A record's notes list what is left out."""

    file_bytes: int = 10_000_000
    files: int = 200_000
    seconds: float = 30.0
    days: int = 90  # how long records are kept

    @property
    def longest_wait(self) -> float:
        """Seconds to wait for another program that scans the same folder."""
        return self.seconds + 5.0


DEFAULT_LIMITS = SnapshotLimits()


@dataclass(slots=True)
class RevertPlan:
    """The plan of a revert."""

    changes: list[FileChange] = field(default_factory=list)  # from the current state to the target
    conflicts: list[Conflict] = field(default_factory=list)
    left: list[Conflict] = field(default_factory=list)  # files that cannot be restored at all


def describe_opaque(state: FileState) -> str:
    """Return why the bytes of a file are not kept, as far as its state shows."""
    return f"its {state.size / 1e6:.1f} MB were not recorded"


def compose(changes: list[FileChange]) -> list[FileChange]:
    """Merge several changes of the same paths, in order, into one each, without those that cancel out."""
    first: dict[str, FileState | None] = {}
    last: dict[str, FileState | None] = {}
    for change in changes:
        first.setdefault(change.path, change.before)
        last[change.path] = change.after
    return [FileChange(path, first[path], last[path]) for path in sorted(first) if first[path] != last[path]]
