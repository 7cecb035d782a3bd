"""`edit_file`: pieces of a text file replaced by others, if it is clear which."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from dragoman.errors import ToolFailed
from dragoman.messages.message import Arguments
from dragoman.sentences import sentence
from dragoman.tools.builtin.edits import edits_between, replace_piece
from dragoman.tools.builtin.textfile import (
    MOST,
    check_version,
    encoded,
    output_of_write,
    text_file,
    version_of,
)
from dragoman.tools.tool import ToolContext, ToolOutput, tool
from dragoman.tools.workspace import path_patterns, read_inside, replace_inside, wider_paths
from dragoman.workspace.diff import FileDiff, diff_texts
from dragoman.workspace.hunks import HunkChoices, keep_hunks

_LOOSELY = " (the place was found by its words: its white space is another than in old)"


class Replacement(BaseModel):
    """One of several edits."""

    model_config = ConfigDict(extra="forbid")

    old: Annotated[str, Field(min_length=1, description="the text to replace")]
    new: Annotated[str, Field(description="the text to put there")]
    everywhere: Annotated[bool, Field(description="replace every occurrence")] = False


def preview(arguments: Arguments, workspace: Path | None) -> Sequence[FileDiff]:
    """What it would make of the file as it is now."""
    return [diff_texts(*_sides(arguments, workspace))]


def keep(arguments: Arguments, workspace: Path | None, chosen: HunkChoices) -> Arguments:
    """Other edits, which make some of the changes alone."""
    path, data, made = _sides(arguments, workspace)
    kept = keep_hunks(data, made, chosen) or b""
    pieces = edits_between(text_file(path, data).text, text_file(path, kept).text)
    edits: list[JsonValue] = [{"old": old, "new": new} for old, new in pieces]
    return {"path": arguments["path"], "version": arguments["version"], "edits": edits}


def _sides(arguments: Arguments, workspace: Path | None) -> tuple[str, bytes, bytes]:
    """The file's path, what it is, and what it would be."""
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
    return path, data, _edited(path, data, wanted)[0]


# Run again after a crash, it finds another version than it was given and changes nothing twice.
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
        raise ToolFailed("give old and new for one edit, or edits for several")
    return edits or [Replacement(old=str(old), new=new, everywhere=everywhere)]


def _edited(path: str, data: bytes, edits: list[Replacement]) -> tuple[bytes, int, bool]:
    """All of them, one after another; or none."""
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
