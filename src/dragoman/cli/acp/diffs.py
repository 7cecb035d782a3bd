"""Unified diffs in the form an editor shows them: for each changed place of a file, its old and new text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dragoman.visible_text import visible

_HUNK = re.compile(r"^@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_QUOTED = re.compile(r"\\(?:([0-7]{3})|(.))")
_MARKS = {"n": "\n", "t": "\t"}


def diff_contents(text: str, folder: Path) -> list[dict[str, Any]]:
    """What a unified diff says, place by place, invisible characters written out. A part that was cut off, or
    is no text, is left out."""
    return [
        {
            "type": "diff",
            "path": str(folder / path),
            "oldText": visible(old) if not (made and not old) else None,
            "newText": visible(new),
        }
        for path, old, new, made in _hunks(text)
    ]


def whole_contents(text: str, folder: Path) -> list[dict[str, Any]]:
    """The same where it says everything that the diff does, of each of its files; else nothing."""
    contents = diff_contents(text, folder)
    files = sum(line.startswith("diff --git ") for line in text.split("\n"))
    return contents if len({one["path"] for one in contents}) == files else []


def _hunks(text: str) -> Iterator[tuple[str, str, str, bool]]:
    """The path, the old and the new lines of each hunk, and whether the file is new."""
    lines = [f"{line}\n" for line in text.removesuffix("\n").split("\n")]
    path, made, at = "", False, 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("--- "):
            made = line[4:].strip() == "/dev/null"
            path = _path(line[4:]) if not made else ""
        elif line.startswith("+++ ") and line[4:].strip() != "/dev/null":
            path = _path(line[4:])
        elif (head := _HUNK.match(line)) is not None:
            old, new = int(head[1] or 1), int(head[3] or 1)
            before: list[str] = []
            after: list[str] = []
            last = ""
            while at < len(lines) and (len(before) < old or len(after) < new or lines[at][0] == "\\"):
                sign, rest = lines[at][0], lines[at][1:]
                at += 1
                if sign == "\\":  # no line end at the end of the file
                    for side in (before, after):
                        if side and side[-1] is last:
                            side[-1] = last.removesuffix("\n")
                    continue
                last = rest
                if sign in " -\n":
                    before.append(last)
                if sign in " +\n":
                    after.append(last)
            if len(before) == old and len(after) == new:
                yield path, "".join(before), "".join(after), made


def _path(field: str) -> str:
    """Without its `a/` or `b/`, and without the quotes that git puts around odd names."""
    name = field.rstrip("\n").split("\t")[0]
    if name.startswith('"') and name.endswith('"'):
        name = _unquoted(name[1:-1])
    return name[2:] if name[:2] in ("a/", "b/") else name


def _unquoted(name: str) -> str:
    return _QUOTED.sub(
        lambda found: chr(int(found[1], 8)) if found[1] else _MARKS.get(found[2], found[2]), name
    )
