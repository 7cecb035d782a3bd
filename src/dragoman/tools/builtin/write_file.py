"""`write_file`: a new text file in the workspace, or a new text for one that was read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from dragoman.errors import ToolFailed
from dragoman.messages.message import Arguments
from dragoman.tools.builtin.textfile import MOST, check_version, encoded, output_of_write, version_of
from dragoman.tools.tool import ToolContext, ToolOutput, tool
from dragoman.tools.workspace import path_patterns, read_if_there, replace_inside, wider_paths
from dragoman.workspace.diff import FileDiff, diff_texts
from dragoman.workspace.hunks import HunkChoices, keep_hunks


def preview(arguments: Arguments, workspace: Path | None) -> Sequence[FileDiff]:
    """The file as it is now, and as it would be."""
    path = path_patterns(arguments)[0]
    old, wanted = read_if_there(workspace, path, MOST), encoded(path, str(arguments["text"]))
    version = arguments.get("version")
    _check(path, old, wanted, str(version) if version else None)
    return [diff_texts(path, old, wanted)]


def keep(arguments: Arguments, workspace: Path | None, chosen: HunkChoices) -> Arguments:
    """The text with some of its changes alone."""
    path = path_patterns(arguments)[0]
    old = read_if_there(workspace, path, MOST)
    kept = keep_hunks(old, encoded(path, str(arguments["text"])), chosen)
    return {**arguments, "text": (kept or b"").decode()}


# Run again after a crash, it finds its own text and is content, or the version it was given and goes on.
@tool(
    permission="files.write",
    writes="named",
    preview=preview,
    previewed=("path", "text", "version"),
    keep_hunks=keep,
    pattern=path_patterns,
    wider=wider_paths,
    replay="safe",
    timeout=30,
    sequential=True,
)
def write_file(
    path: Annotated[str, Field(description="relative to the workspace; folders are made as needed")],
    text: Annotated[str, Field(description="the whole new text of the file")],
    context: ToolContext,
    version: Annotated[
        str | None, Field(description="for a file that exists: the version that read_file gave")
    ] = None,
) -> ToolOutput:
    """Write a whole text file in the workspace. Leave `version` out for a new file; a file that exists is
    replaced only if it still is the version you read. For a small change use edit_file."""
    wanted = encoded(path, text)
    before: bytes | None = None

    def change(old: bytes | None) -> bytes:
        nonlocal before
        before = old
        _check(path, old, wanted, version)
        return wanted

    replace_inside(context.workspace, path, MOST, change, create=not version)
    size = "1 character" if len(text) == 1 else f"{len(text)} characters"
    said = f"wrote {path}: {size}, version {version_of(wanted)}"
    return output_of_write(said, [(path, before, wanted)])


def _check(path: str, old: bytes | None, wanted: bytes, version: str | None) -> None:
    """ToolFailed where the file is not what the model has seen."""
    if old is None and version:
        raise ToolFailed(f"{path} is gone since you read it: leave version out to write it anew")
    if old is not None and old != wanted:
        if not version:
            raise ToolFailed(f"{path} exists: read it first, then give the version read_file shows")
        check_version(path, old, version)
