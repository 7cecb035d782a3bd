"""Find the record that wrote each line of a file, as far as the records reach back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman.workspace.diff import lines_of, opcodes_of
from dragoman.workspace.states import ChangeRecord, FileState


@dataclass(slots=True, frozen=True)
class BlamedLine:
    """A line of a file. `record` is None if no recorded call wrote it, or if it is older than the records."""

    text: str
    record: ChangeRecord | None


def blame(
    path: str, now: bytes, records: Sequence[ChangeRecord], contents: Callable[[FileState], bytes | None]
) -> list[BlamedLine]:
    """Return the lines of a file with their records. Reverted records are left out.

    `records` are those that changed this path, the oldest first.
    """
    lines: list[str] = []
    authors: list[ChangeRecord | None] = []

    def become(new: list[str], author: ChangeRecord | None) -> None:
        nonlocal lines, authors
        made: list[ChangeRecord | None] = []
        for tag, i1, i2, j1, j2 in opcodes_of(lines, new):
            made += authors[i1:i2] if tag == "equal" else [author] * (j2 - j1)
        lines, authors = new, made

    for record in in_effect(records):
        for change in (one for one in record.changes if one.path == path):
            become(_text(change.before, contents), None)
            become(_text(change.after, contents), record)
    become(lines_of(now), None)
    return [BlamedLine(line.rstrip("\n"), author) for line, author in zip(lines, authors, strict=True)]


def in_effect(records: Sequence[ChangeRecord]) -> list[ChangeRecord]:
    """Return the calls' records that were not reverted, or were redone."""
    active: dict[int, ChangeRecord] = {}
    taken: dict[int, dict[int, ChangeRecord]] = {}  # by the revert that took them
    for record in records:
        if record.kind == "calls":
            active[record.id] = record
            continue
        taken[record.id] = {id: active.pop(id) for id in record.reverts if id in active}
        for id in record.reverts:
            active |= taken.pop(id, {})
    return [active[id] for id in sorted(active)]


def _text(state: FileState | None, contents: Callable[[FileState], bytes | None]) -> list[str]:
    data = contents(state) if state is not None and state.kind == "file" else None
    return lines_of(data) if data is not None else []
