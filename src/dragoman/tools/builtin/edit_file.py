"""Replace parts of a text file with `edit_file`, if each place is unambiguous."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from dragoman.errors import ToolFailed
from dragoman.messages.message import Arguments
from dragoman.sentences import sentence
from dragoman.tools.builtin.read_write import (
    MOST,
    check_version,
    encoded,
    output_of_write,
    text_file,
    version_of,
)
from dragoman.tools.tool import ToolContext, ToolOutput, tool
from dragoman.tools.workspace import path_patterns, read_inside, replace_inside, wider_paths
from dragoman.workspace.diff import FileDiff, diff_texts, opcodes_of
from dragoman.workspace.hunks import HunkChoices, keep_hunks

# Find the place of an edit in a text: exactly, or ignoring white space around lines.


@dataclass(slots=True, frozen=True)
class Replaced:
    """The new text, the number of places changed, and whether a place was found only by ignoring
    white space."""

    text: str
    count: int
    loosely: bool = False


def replace_piece(path: str, text: str, old: str, new: str, *, everywhere: bool = False) -> Replaced:
    """Replace `old` with `new`. Raises ToolFailed if the place is missing or ambiguous."""
    if old == new:
        raise ToolFailed(sentence("edits.same"))
    count = _occurrences(text, old)
    if count > 1 and not everywhere:
        raise ToolFailed(sentence("edits.old_repeated", count=count, path=path))
    if count:
        return Replaced(text.replace(old, new), text.count(old))
    return _replace_loosely(path, text, old, new, everywhere)


def edits_between(old: str, new: str) -> list[tuple[str, str]]:
    """Return pairs of old and new text to apply in order. Each old text occurs exactly once when its turn
    comes."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    found: list[tuple[str, str]] = []
    for tag, i1, i2, j1, j2 in opcodes_of(before, after):
        if tag == "equal":
            continue
        done, left = after[:j1], before[i2:]  # The text is now done + before[i1:i2] + left.
        text, around = "".join([*done, *before[i1:]]), 0
        while True:
            above, below = "".join(done[max(0, j1 - around) :]), "".join(left[:around])
            piece = above + "".join(before[i1:i2]) + below
            if piece and (_occurrences(text, piece) == 1 or piece == text):
                break
            around = 2 * around + 1
        found.append((piece, above + "".join(after[j1:j2]) + below))
    return found


def find_lines(lines: list[str], wanted: list[str], start: int = 0) -> tuple[list[int], bool]:
    """Return where these lines are: exact matches, or else matches that ignore white space around lines."""
    exact = _places(lines, wanted, start)
    if exact or not any(line.strip() for line in wanted):
        return exact, False
    bare = _places([line.strip() for line in lines], [line.strip() for line in wanted], start)
    return bare, bool(bare)


def indented_like(found: list[str], wanted: list[str], new: list[str]) -> list[str]:
    """Return the new lines with the indentation of the place they go to, instead of the given one."""
    meant: dict[str, str] = {}
    for there, asked in zip(found, wanted, strict=True):
        if there.strip():
            meant.setdefault(_indent(asked), _indent(there))
    longest_first = sorted(meant, key=len, reverse=True)
    moved = []
    for line in new:
        own = _indent(line)
        known = next((one for one in longest_first if own.startswith(one)), None)
        moved.append(line if known is None or not line.strip() else meant[known] + line[len(known) :])
    return moved


def _replace_loosely(path: str, text: str, old: str, new: str, everywhere: bool) -> Replaced:
    lines, wanted = text.split("\n"), old.removesuffix("\n").split("\n")
    places, _ = find_lines(lines, wanted)
    if not places:
        raise ToolFailed(sentence("edits.old_missing", path=path))
    if len(places) > 1 and not everywhere:
        raise ToolFailed(sentence("edits.old_unclear", path=path, count=len(places)))
    apart = [places[0]]  # Skip matches that overlap an earlier one, as exact replacement does.
    for place in places:
        if place - apart[-1] >= len(wanted):
            apart.append(place)
    ends = old.endswith("\n")
    fresh = (new.removesuffix("\n") if ends else new).split("\n") if new else []
    if not ends and not new:
        fresh = [""]
    for place in reversed(apart):
        there = lines[place : place + len(wanted)]
        lines[place : place + len(wanted)] = indented_like(there, wanted, fresh)
    return Replaced("\n".join(lines), len(apart), loosely=True)


def _places(lines: list[str], wanted: list[str], start: int) -> list[int]:
    """Return all places, including overlapping ones. The scan never moves back: `falls` says how much of a
    match remains when the next line differs (Knuth, Morris and Pratt)."""
    falls, found, fits = _falls(wanted), list[int](), 0
    for at in range(start, len(lines)):
        while fits and lines[at] != wanted[fits]:
            fits = falls[fits - 1]
        fits += lines[at] == wanted[fits]
        if fits == len(wanted):
            found.append(at + 1 - fits)
            fits = falls[-1]
    return found


def _falls(wanted: list[str]) -> list[int]:
    """Return for each prefix of the lines the length of the longest shorter prefix that it also ends with."""
    falls = [0]
    for line in wanted[1:]:
        fits = falls[-1]
        while fits and line != wanted[fits]:
            fits = falls[fits - 1]
        falls.append(fits + (line == wanted[fits]))
    return falls


def _occurrences(text: str, piece: str) -> int:
    """Count the occurrences, at least 2 if they overlap: `aa` is in `aaa` twice, so the place is
    ambiguous."""
    first = text.find(piece)
    if first < 0:
        return 0
    return max(text.count(piece), 1 if text.find(piece, first + 1) < 0 else 2)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


_LOOSELY = " (the place was found by its words: its white space is another than in old)"


class Replacement(BaseModel):
    """One of several edits."""

    model_config = ConfigDict(extra="forbid")

    old: Annotated[str, Field(min_length=1, description="the text to replace")]
    new: Annotated[str, Field(description="the text to put there")]
    everywhere: Annotated[bool, Field(description="replace every occurrence")] = False


def preview(arguments: Arguments, workspace: Path | None) -> Sequence[FileDiff]:
    """Return what the edit would do to the current file."""
    return [diff_texts(*_sides(arguments, workspace))]


def keep(arguments: Arguments, workspace: Path | None, chosen: HunkChoices) -> Arguments:
    """Return edits that make only some of the changes."""
    path, data, made = _sides(arguments, workspace)
    kept = keep_hunks(data, made, chosen) or b""
    pieces = edits_between(text_file(path, data).text, text_file(path, kept).text)
    edits: list[JsonValue] = [{"old": old, "new": new} for old, new in pieces]
    return {"path": arguments["path"], "version": arguments["version"], "edits": edits}


def _sides(arguments: Arguments, workspace: Path | None) -> tuple[str, bytes, bytes]:
    """Return the file's path, its current bytes, and its bytes after the edit."""
    path = path_patterns(arguments)[0]
    old, new = arguments.get("old"), arguments.get("new")
    several = [Replacement.model_validate(one) for one in arguments.get("edits") or ()]  # type: ignore[union-attr]
    wanted = _wanted(
        str(old) if old is not None else None,
        str(new) if new is not None else "",
        several,
        bool(arguments.get("everywhere")),
    )
    data = read_inside(workspace, path, MOST)
    check_version(path, data, str(arguments.get("version") or ""))
    return path, data, _edited(path, data, wanted)[0]


# If the edit runs again after a crash, the file's version differs, so nothing is changed twice.
@tool(
    permission="files.write",
    writes="named",
    preview=preview,
    previewed=("path", "version", "old", "new", "everywhere", "edits"),
    keep_hunks=keep,
    pattern=path_patterns,
    wider=wider_paths,
    replay="safe",
    timeout=30,
    sequential=True,
)
def edit_file(
    path: Annotated[str, Field(description="relative to the workspace")],
    version: Annotated[
        str, Field(description="the version that read_file, or your last edit of the file, gave")
    ],
    context: ToolContext,
    old: Annotated[
        str | None, Field(min_length=1, description="the text to replace, as it is in the file")
    ] = None,
    new: Annotated[str, Field(description="the text to put there")] = "",
    *,
    everywhere: Annotated[bool, Field(description="replace every occurrence, not the only one")] = False,
    edits: Annotated[
        list[Replacement] | None,
        Field(description="several edits, in order, instead of old and new"),
    ] = None,
) -> ToolOutput:
    """Replace a piece of text in a file of the workspace. `old` must occur exactly once (give more lines
    around it until it does), unless `everywhere` is true. The result gives the new version, for the next
    edit."""
    wanted = _wanted(old, new, edits or [], everywhere)
    before = b""
    count, loosely = 0, False

    def change(data: bytes | None) -> bytes:
        nonlocal before, count, loosely
        if data is None:
            raise ToolFailed(sentence("edits.no_file", path=path))
        check_version(path, data, version)
        before = data
        made, count, loosely = _edited(path, data, wanted)
        return made

    data = replace_inside(context.workspace, path, MOST, change, create=False)
    times = "once" if count == 1 else f"{count} times"
    remark = _LOOSELY if loosely else ""
    text = f"edited {path}: replaced {times}{remark}, version {version_of(data)}"
    return output_of_write(text, [(path, before, data)])


def _wanted(old: str | None, new: str, edits: list[Replacement], everywhere: bool) -> list[Replacement]:
    if (old is None) == (not edits):
        raise ToolFailed("Pass old and new for one edit, or edits for several.")
    return edits or [Replacement(old=str(old), new=new, everywhere=everywhere)]


def _edited(path: str, data: bytes, edits: list[Replacement]) -> tuple[bytes, int, bool]:
    """Apply all edits in order, or none."""
    file = text_file(path, data)
    text, count, loosely = file.text, 0, False
    for place, edit in enumerate(edits, 1):
        old, new = edit.old, edit.new
        if file.crlf:
            old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
        try:
            made = replace_piece(path, text, old, new, everywhere=edit.everywhere)
        except ToolFailed as error:
            if len(edits) == 1:
                raise
            said = sentence("edits.one_failed", place=place, count=len(edits), why=error)
            raise ToolFailed(said) from error
        text, count, loosely = made.text, count + made.count, loosely or made.loosely
    encoded(path, text)
    return file.bytes(text), count, loosely
