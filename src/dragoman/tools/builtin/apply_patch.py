"""`apply_patch`: changes of several files at once, as a unified diff or as models write patches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from dragoman.errors import ToolFailed
from dragoman.messages.message import Arguments
from dragoman.sentences import sentence
from dragoman.tools.builtin.patch_text import FilePatch, apply_hunks, parse_patch
from dragoman.tools.builtin.textfile import MOST, encoded, output_of_write, text_file, version_of
from dragoman.tools.tool import ToolContext, ToolOutput, tool
from dragoman.tools.workspace import (
    mode_inside,
    path_patterns,
    read_if_there,
    remove_inside,
    replace_inside,
    wider_paths,
)
from dragoman.workspace.diff import FileDiff, diff_texts, joined
from dragoman.workspace.hunks import HunkChoices, hunks_between, keep_hunks


@dataclass(slots=True, frozen=True)
class _Write:
    """A file as it was, None where it was not there, and as it shall be."""

    path: str
    old: bytes | None
    new: bytes | None
    mode_of: str | None = None  # the file whose rights it gets
    loosely: bool = False


def patch_patterns(arguments: Arguments) -> list[str]:
    """Every file it names, each in its one spelling: all of them have to be allowed."""
    paths = [path for patch in parse_patch(str(arguments["patch"])) for path in patch.paths]
    return [spelled for path in paths for spelled in path_patterns({"path": path})]


def _wider(arguments: Arguments) -> list[str]:
    paths = patch_patterns(arguments)
    return wider_paths({"path": paths[0]}) if len(paths) == 1 else []


def preview(arguments: Arguments, workspace: Path | None) -> Sequence[FileDiff]:
    """What it would make of the files as they are now."""
    writes = _plan(parse_patch(str(arguments["patch"])), workspace, lambda path: None)
    return [diff_texts(one.path, one.old, one.new) for one in writes]


def keep(arguments: Arguments, workspace: Path | None, chosen: HunkChoices) -> Arguments:
    """A patch with some of its hunks alone."""
    first, diffs, wanted = 0, list[FileDiff](), list[tuple[str, bytes | None]]()
    for one in _plan(parse_patch(str(arguments["patch"])), workspace, lambda path: None):
        if diff_texts(one.path, one.old, one.new).binary:
            raise ToolFailed(f"{one.path} is a binary file, whose changes cannot be shown")
        count = len(hunks_between(one.old, one.new))
        mine = {place - first: text for place, text in chosen.items() if first <= place < first + count}
        first += count
        kept = keep_hunks(one.old, one.new, mine)
        if kept != one.old:
            diffs.append(diff_texts(one.path, one.old, kept))
            wanted.append((one.path, kept))
    if any(diff.truncated for diff in diffs):
        raise ToolFailed("this patch is too long to take parts of it")
    made = joined(diffs)
    if [(one.path, one.new) for one in _plan(parse_patch(made), workspace, lambda path: None)] != wanted:
        raise ToolFailed("a patch cannot say this part alone: its lines end in different ways")
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
    for one in writes:  # last, so that what was renamed is somewhere at every moment
        if one.new is None and one.old is not None:
            remove_inside(context.workspace, one.path, one.old)
    said = [_describe(one) for one in writes]
    return output_of_write("\n".join(said), [(one.path, one.old, one.new) for one in writes])


def _put(workspace: Path | None, write: _Write, mode: int | None) -> None:
    def change(data: bytes | None) -> bytes:
        if data != write.old:
            raise ToolFailed(f"{write.path} was changed meanwhile: read it again")
        assert write.new is not None
        return write.new

    replace_inside(workspace, write.path, MOST, change, create=write.old is None, mode=mode)


def _plan(
    patches: Sequence[FilePatch], workspace: Path | None, seen: Callable[[str], str | None]
) -> list[_Write]:
    """All of it is made in memory first: what does not fit is found before anything is written."""
    writes: list[_Write] = []
    for patch in patches:
        path = path_patterns({"path": patch.path})[0]
        data = read_if_there(workspace, path, MOST)
        if patch.kind == "add":
            writes.append(_added(path, patch, data))
            continue
        if data is None:
            raise ToolFailed(f"there is no {path}: *** Add File, or --- /dev/null, makes new files")
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
        raise ToolFailed(f"{path} exists: give its changes, or delete it first")
    return _Write(path, data, new)


def _deleted(path: str, patch: FilePatch, data: bytes) -> list[_Write]:
    if patch.hunks and apply_hunks(patch, text_file(path, data).text)[0].strip():
        raise ToolFailed(f"{path} has more lines than the patch deletes: read it again")
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
        raise ToolFailed(f"{to} exists already: {path} cannot be renamed to it")
    return [_Write(to, None, new, mode_of=path, loosely=loosely), _Write(path, data, None)]


def _describe(write: _Write) -> str:
    if write.new is None:
        return f"deleted {write.path}"
    what = "added" if write.old is None else "changed"
    remark = " (a place was found by its words: its white space is another)" if write.loosely else ""
    return f"{what} {write.path}{remark}, version {version_of(write.new)}"
