"""Apply parts of a change: only some of its hunks, or a user's text in place of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from dragoman.workspace.diff import hunk_groups, lines_of, opcodes_of

HunkChoices: TypeAlias = Mapping[int, str | None]
"""The hunks to apply, by their position in the diff, counted from 0. All others are left out.

The value is the text that replaces the hunk's new side, or None for the new side itself.
"""


@dataclass(slots=True, frozen=True)
class DiffHunk:
    """A change with the lines around it: the position of its lines on the old side, and both sides of it."""

    start: int
    end: int
    old: tuple[str, ...]
    new: tuple[str, ...]

    def written(self, text: str) -> str:
        """Return a replacement text with the line ends of this hunk."""
        last = (self.new or self.old)[-1]
        if text and last.endswith("\n") and not text.endswith("\n"):
            text += "\n"
        if all(line.endswith("\r\n") for line in self.new or self.old):
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        return text


def hunks_between(old: bytes | None, new: bytes | None) -> list[DiffHunk]:
    """Return the hunks as the diff of the two shows them."""
    before, after = lines_of(old or b""), lines_of(new or b"")
    found = []
    for group in hunk_groups(opcodes_of(before, after)):
        i1, i2, j1, j2 = group[0][1], group[-1][2], group[0][3], group[-1][4]
        found.append(DiffHunk(i1, i2, tuple(before[i1:i2]), tuple(after[j1:j2])))
    return found


def keep_hunks(old: bytes | None, new: bytes | None, chosen: HunkChoices) -> bytes | None:
    """Return the file with only these changes. None if it is deleted or not created.

    Raises UnicodeError if it is not UTF-8.
    """
    (old or b"").decode()  # UnicodeError: unchanged lines would be written differently
    hunks = hunks_between(old, new)
    made = [place for place in range(len(hunks)) if place in chosen]
    if hunks and not made:
        return old
    if (old is None or new is None) and (not hunks or chosen[0] is None):
        return new
    lines, text, at = lines_of(old or b""), "", 0
    for place in made:
        hunk, typed = hunks[place], chosen[place]
        text += "".join(lines[at : hunk.start])
        text += "".join(hunk.new) if typed is None else hunk.written(typed)
        at = hunk.end
    return (text + "".join(lines[at:])).encode()


@dataclass(slots=True, frozen=True)
class ShownHunk:
    """A hunk of a displayed diff: its file as the diff names it, and its lines."""

    head: str
    text: str

    @property
    def new(self) -> str:
        """Its new side, for editing."""
        lines = self.text.split("\n")[1:]
        return "\n".join(line[1:] for line in lines if line[:1] in ("+", " "))


def shown_hunks(diff: str) -> list[ShownHunk]:
    found: list[ShownHunk] = []
    head, lines = "", list[str]()
    for line in [*diff.rstrip("\n").split("\n"), "diff --git "]:
        if line.startswith(("@@ -", "diff --git ")) and lines:
            found.append(ShownHunk(head, "\n".join(lines)))
            lines = []
        if line.startswith("diff --git "):
            head = line
        elif line.startswith("@@ -") or lines:
            lines.append(line)
    return found
