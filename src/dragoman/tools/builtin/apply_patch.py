"""Change several files together with `apply_patch`, from a unified diff or the patch format models write."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from dragoman.errors import ToolFailed
from dragoman.messages.message import Arguments
from dragoman.sentences import sentence
from dragoman.tools.builtin.edit_file import find_lines, indented_like
from dragoman.tools.builtin.read_write import MOST, encoded, output_of_write, text_file, version_of
from dragoman.tools.tool import ToolContext, ToolOutput, tool
from dragoman.tools.workspace import (
    mode_inside,
    path_patterns,
    read_if_there,
    remove_inside,
    replace_inside,
    wider_paths,
)
from dragoman.workspace.diff import FileDiff, diff_texts, joined, unquoted
from dragoman.workspace.hunks import HunkChoices, hunks_between, keep_hunks

# Parse the patches that models write: unified diffs, and the form that begins with `*** Begin Patch`.


PatchKind: TypeAlias = Literal["add", "delete", "update"]

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")
_HEADS = (
    *("diff --git ", "index ", "old mode ", "new mode ", "new file mode ", "deleted file mode "),
    *("similarity index ", "Binary files "),
)
_NO_END = "\\ No newline at end of file"
_MARKED = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")


@dataclass(slots=True)
class Hunk:
    """The lines to find and the lines that replace them. `at`: the line number, counted from 0, if given."""

    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    at: int | None = None
    after: list[str] = field(default_factory=list)  # lines that appear somewhere above: `@@ def f():`
    end: bool = False  # at the end of the file
    left: int = 0  # old lines still to come, according to the hunk header


@dataclass(slots=True)
class FilePatch:
    path: str
    kind: PatchKind
    hunks: list[Hunk] = field(default_factory=list)
    to: str | None = None  # its new name
    ends: bool | None = None  # whether the file ends with a line break; None: as before

    @property
    def paths(self) -> list[str]:
        return [self.path, *([self.to] if self.to is not None else [])]


def parse_patch(text: str) -> list[FilePatch]:
    """Return the patch of each file. Raises ToolFailed if the text has neither format or is malformed."""
    lines = text.replace("\r\n", "\n").split("\n")
    marked = any(line.strip() == "*** Begin Patch" for line in lines)
    found = _parse_marked(lines) if marked else _parse_unified(lines)
    if not found:
        raise ToolFailed(
            "The patch has no changes. Write a unified diff, or *** Begin Patch … *** End Patch."
        )
    names = [path for patch in found for path in patch.paths]
    if len(set(names)) != len(names):
        raise ToolFailed("The patch names a file twice. Put all its changes together.")
    return found


def apply_hunks(patch: FilePatch, text: str) -> tuple[str, bool]:
    """Return the new text, and whether a place was found only by ignoring white space.

    Raises ToolFailed if a place is ambiguous.
    """
    ended = text.endswith("\n") or not text
    lines = text.removesuffix("\n").split("\n") if text else []
    at, moved, loosely = 0, 0, False
    for number, hunk in enumerate(patch.hunks, 1):
        place, loose = _place(patch.path, number, hunk, lines, at=at, moved=moved)
        there = lines[place : place + len(hunk.old)]
        fresh = indented_like(there, hunk.old, hunk.new) if loose else hunk.new
        lines[place : place + len(hunk.old)] = fresh
        at, moved, loosely = place + len(fresh), moved + len(fresh) - len(hunk.old), loosely or loose
    end = "\n" if lines and (ended if patch.ends is None else patch.ends) else ""
    return "\n".join(lines) + end, loosely


def _place(path: str, number: int, hunk: Hunk, lines: list[str], *, at: int, moved: int) -> tuple[int, bool]:
    for anchor in hunk.after:
        found, _ = find_lines(lines, [anchor], at)
        if not found:
            raise ToolFailed(f"Hunk {number}: line {anchor!r} is not in {path!r}. Read the file again.")
        at = found[0] + 1
    if not hunk.old:
        if hunk.after:
            return at, False
        return len(lines) if hunk.at is None else min(hunk.at + moved, len(lines)), False
    found, loose = find_lines(lines, hunk.old, at)
    if hunk.end:
        found = [place for place in found if place + len(hunk.old) == len(lines)] or found
    if not found:
        raise ToolFailed(sentence("patch.hunk_missing", number=number, path=path))
    if hunk.at is not None:
        wanted = hunk.at + moved
        return min(found, key=lambda place: abs(place - wanted)), loose
    if len(found) > 1 and not hunk.after and not hunk.end:
        raise ToolFailed(sentence("patch.hunk_repeated", number=number, count=len(found), path=path))
    return found[0], loose


# ── unified diffs ─────────────────────────────────────────────────────────────────────────────────


def _parse_unified(lines: list[str]) -> list[FilePatch]:
    """Parse a unified diff. Line numbers of hunks are used only when they help, because models miscount."""
    found: list[FilePatch] = []
    old: list[str | None] = []  # the old name of a file whose +++ line comes next
    renamed = mark = ""
    for place, line in enumerate(lines):
        hunk = found[-1].hunks[-1] if found and found[-1].hunks else None
        due = hunk is not None and hunk.left > 0
        if line.startswith("@@") and found:
            found[-1].hunks.append(_hunk(line))
        elif line.startswith("--- ") and not due and "".join(lines[place + 1 : place + 2]).startswith("+++ "):
            old = [_name(line[4:], "a/")]
        elif line.startswith("+++ ") and old:
            found.append(_file_patch(old.pop(), _name(line[4:], "b/")))
        elif line.startswith("rename from ") and not due:
            renamed = unquoted(line[12:])
        elif line.startswith("rename to ") and not due:
            found.append(FilePatch(renamed, "update", to=unquoted(line[10:])))
        elif line == _NO_END and found:
            found[-1].ends = mark == "-"
        elif hunk is not None and not (line.startswith(_HEADS) and not due):
            mark = _take(hunk, line) or mark
    return _merged(found)


def _merged(found: list[FilePatch]) -> list[FilePatch]:
    """Merge the two entries of a file that is both renamed and changed."""
    made: list[FilePatch] = []
    for patch in found:
        before = made[-1] if made else None
        if before is not None and before.to is not None and not before.hunks and patch.paths == before.paths:
            made[-1] = patch
        else:
            made.append(patch)
    return made


def _file_patch(old: str | None, new: str | None) -> FilePatch:
    if old is None and new is not None:
        return FilePatch(new, "add")
    if old is not None and new is None:
        return FilePatch(old, "delete")
    if old is None or new is None:
        raise ToolFailed("A patch from /dev/null to /dev/null changes nothing.")
    return FilePatch(old, "update", to=new if new != old else None)


def _name(text: str, prefix: str) -> str | None:
    name = unquoted(text.split("\t", maxsplit=1)[0].strip())
    return None if name == "/dev/null" else name.removeprefix(prefix)


def _hunk(line: str) -> Hunk:
    found = _HUNK.match(line)
    if found is None:
        anchor = line.strip("@").strip()
        return Hunk(after=[anchor] if anchor else [])
    start, length = int(found[1]), int(found[2] or 1)
    return Hunk(at=start - 1 if length else start, left=length)


def _take(hunk: Hunk, line: str) -> str:
    """Add a line to the hunk, and return its mark."""
    mark, rest, due = line[:1], line[1:], hunk.left > 0
    if not line and due:
        mark = " "  # An editor removed the white space.
    if mark in (" ", "-"):
        hunk.old.append(rest)
    if mark in (" ", "+"):
        hunk.new.append(rest)
    hunk.left -= mark in (" ", "-")
    return mark


# ── *** Begin Patch ───────────────────────────────────────────────────────────────────────────────


def _parse_marked(lines: list[str]) -> list[FilePatch]:
    found: list[FilePatch] = []
    kinds: dict[str, PatchKind] = {"Add": "add", "Update": "update", "Delete": "delete"}
    begun = False
    for line in lines:
        if line.strip() == "*** Begin Patch":
            begun = True
        elif line.strip() == "*** End Patch":
            break
        elif not begun:
            pass
        elif (head := _MARKED.match(line)) is not None:
            found.append(FilePatch(head[2].strip(), kinds[head[1]]))
        elif not found:
            raise ToolFailed(f"Line {line!r} belongs to no file. Begin with *** Update File: PATH.")
        elif line.startswith("*** Move to: "):
            found[-1].to = line.removeprefix("*** Move to: ").strip()
        elif line.strip() == "*** End of File":
            if found[-1].hunks:
                found[-1].hunks[-1].end = True
        elif line.startswith("@@"):
            _next_marked(found[-1], line.removeprefix("@@").strip())
        else:
            _take_marked(found[-1], line)
    return found


def _next_marked(patch: FilePatch, anchor: str) -> None:
    last = patch.hunks[-1] if patch.hunks else None
    if last is not None and not last.old and not last.new:
        last.after += [anchor] if anchor else []  # a class, then a function in it
    else:
        patch.hunks.append(Hunk(after=[anchor] if anchor else []))


def _take_marked(patch: FilePatch, line: str) -> None:
    if not patch.hunks:
        patch.hunks.append(Hunk())
    hunk, mark = patch.hunks[-1], line[:1]
    if patch.kind == "add" and mark != "+":
        raise ToolFailed(f"Line {line!r} must begin with +, as every line of a new file.")
    if mark not in ("+", "-", " ", ""):
        raise ToolFailed(f"Line {line!r} of the patch must begin with a space, + or -.")
    if mark != "+":
        hunk.old.append(line[1:])
    if mark != "-":
        hunk.new.append(line[1:])


@dataclass(slots=True, frozen=True)
class _Write:
    """A file's bytes before and after. None: the file does not exist."""

    path: str
    old: bytes | None
    new: bytes | None
    mode_of: str | None = None  # the file whose mode it gets
    loosely: bool = False


def patch_patterns(arguments: Arguments) -> list[str]:
    """Return every file that the patch names, in normalized spelling. All of them must be allowed."""
    paths = [path for patch in parse_patch(str(arguments["patch"])) for path in patch.paths]
    return [spelled for path in paths for spelled in path_patterns({"path": path})]


def _wider(arguments: Arguments) -> list[str]:
    paths = patch_patterns(arguments)
    return wider_paths({"path": paths[0]}) if len(paths) == 1 else []


def preview(arguments: Arguments, workspace: Path | None) -> Sequence[FileDiff]:
    """Return what the patch would do to the current files."""
    writes = _plan(parse_patch(str(arguments["patch"])), workspace, lambda path: None)
    return [diff_texts(one.path, one.old, one.new) for one in writes]


def keep(arguments: Arguments, workspace: Path | None, chosen: HunkChoices) -> Arguments:
    """Return a patch with only some of its hunks."""
    first, diffs, wanted = 0, list[FileDiff](), list[tuple[str, bytes | None]]()
    for one in _plan(parse_patch(str(arguments["patch"])), workspace, lambda path: None):
        if diff_texts(one.path, one.old, one.new).binary:
            raise ToolFailed(f"{one.path!r} is a binary file, so its changes cannot be shown.")
        count = len(hunks_between(one.old, one.new))
        mine = {place - first: text for place, text in chosen.items() if first <= place < first + count}
        first += count
        kept = keep_hunks(one.old, one.new, mine)
        if kept != one.old:
            diffs.append(diff_texts(one.path, one.old, kept))
            wanted.append((one.path, kept))
    if any(diff.truncated for diff in diffs):
        raise ToolFailed("The patch is too long to select parts of it.")
    made = joined(diffs)
    if [(one.path, one.new) for one in _plan(parse_patch(made), workspace, lambda path: None)] != wanted:
        raise ToolFailed("A patch cannot make this change alone, because its line endings differ.")
    return {"patch": made}


@tool(
    permission="files.write",
    writes="named",
    preview=preview,
    previewed=("patch",),
    keep_hunks=keep,
    pattern=patch_patterns,
    wider=_wider,
    timeout=30,
    sequential=True,
)
def apply_patch(
    patch: Annotated[
        str,
        Field(
            min_length=1,
            max_length=1_000_000,
            description="a unified diff, or *** Begin Patch … *** End Patch; with paths in the workspace",
        ),
    ],
    context: ToolContext,
) -> ToolOutput:
    """Change, add, delete or rename text files of the workspace by a patch. The lines around a change must be
    as they are in the file. Either all of it is applied, or nothing, and the result says why. A file that was
    changed since you read it is refused: read it again."""
    writes = _plan(parse_patch(patch), context.workspace, context.seen_version)
    modes = {one.path: mode_inside(context.workspace, one.mode_of) for one in writes if one.mode_of}
    for one in writes:
        if one.new is not None:
            _put(context.workspace, one, modes.get(one.path))
    for one in writes:  # Deletions come last, so that the content of a renamed file always exists somewhere.
        if one.new is None and one.old is not None:
            remove_inside(context.workspace, one.path, one.old)
    said = [_describe(one) for one in writes]
    return output_of_write("\n".join(said), [(one.path, one.old, one.new) for one in writes])


def _put(workspace: Path | None, write: _Write, mode: int | None) -> None:
    def change(data: bytes | None) -> bytes:
        if data != write.old:
            raise ToolFailed(f"{write.path} changed meanwhile. Read it again.")
        assert write.new is not None
        return write.new

    replace_inside(workspace, write.path, MOST, change, create=write.old is None, mode=mode)


def _plan(
    patches: Sequence[FilePatch], workspace: Path | None, seen: Callable[[str], str | None]
) -> list[_Write]:
    """Build all changes in memory, so that a hunk that does not fit is found before anything is written."""
    writes: list[_Write] = []
    for patch in patches:
        path = path_patterns({"path": patch.path})[0]
        data = read_if_there(workspace, path, MOST)
        if patch.kind == "add":
            writes.append(_added(path, patch, data))
            continue
        if data is None:
            raise ToolFailed(f"{path} does not exist. To create a file, use *** Add File, or --- /dev/null.")
        known = seen(path)
        if known is not None and known != version_of(data):
            raise ToolFailed(sentence("file.changed", path=path))
        writes += (
            _deleted(path, patch, data) if patch.kind == "delete" else _updated(path, patch, data, workspace)
        )
    return writes


def _added(path: str, patch: FilePatch, data: bytes | None) -> _Write:
    lines = [line for hunk in patch.hunks for line in hunk.new]
    text = "\n".join(lines) + ("\n" if lines and patch.ends is not False else "")
    new = encoded(path, text)
    if data not in (None, new):
        raise ToolFailed(f"{path!r} exists. Send its changes, or delete it first.")
    return _Write(path, data, new)


def _deleted(path: str, patch: FilePatch, data: bytes) -> list[_Write]:
    if patch.hunks and apply_hunks(patch, text_file(path, data).text)[0].strip():
        raise ToolFailed(f"{path!r} has more lines than the patch deletes. Read the file again.")
    return [_Write(path, data, None)]


def _updated(path: str, patch: FilePatch, data: bytes, workspace: Path | None) -> list[_Write]:
    file = text_file(path, data)
    text, loosely = apply_hunks(patch, file.text)
    encoded(path, text)
    new = file.bytes(text)
    if patch.to is None:
        if new == data:
            raise ToolFailed(sentence("patch.no_change", path=path))
        return [_Write(path, data, new, loosely=loosely)]
    to = path_patterns({"path": patch.to})[0]
    if read_if_there(workspace, to, MOST) is not None:
        raise ToolFailed(f"{to} exists, so {path} cannot get this name.")
    return [_Write(to, None, new, mode_of=path, loosely=loosely), _Write(path, data, None)]


def _describe(write: _Write) -> str:
    if write.new is None:
        return f"deleted {write.path}"
    what = "added" if write.old is None else "changed"
    remark = " (a place was found by its words: its white space is another)" if write.loosely else ""
    return f"{what} {write.path}{remark}, version {version_of(write.new)}"
