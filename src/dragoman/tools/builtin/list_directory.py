"""`list_directory`: what is in a folder of the workspace."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dragoman.tools.tool import ToolContext, tool
from dragoman.tools.workspace import below, entries_inside, on_one_line, path_patterns, wider_paths
from dragoman.workspace.folder import Entry

_MOST = 1000


@tool(
    permission="files.read",
    writes="nothing",
    pattern=path_patterns,
    wider=wider_paths,
    replay="safe",
    timeout=30,
)
def list_directory(
    context: ToolContext,
    path: Annotated[
        str, Field(description="a folder, relative to the workspace; `.` is the workspace")
    ] = ".",
) -> str:
    """List a folder of the workspace: folders end in /, files are followed by their size in bytes."""
    found = entries_inside(context.workspace, path)
    entries = [entry for entry in found if context.permits(below(path, entry.name))]
    shown = sorted(entries, key=lambda entry: entry.kind != "folder")[:_MOST]
    more = f"\n[{len(entries) - _MOST} more are not shown: use glob]" if len(entries) > _MOST else ""
    return "\n".join(map(_line, shown)) + more if shown else f"{path} is empty"


def _line(entry: Entry) -> str:
    name = on_one_line(entry.name)
    match entry.kind:
        case "folder":
            return f"{name}/"
        case "file":
            return f"{name}  {entry.size}"
        case "link":
            return f"{name}  (a link; links are not followed)"
        case "other":
            return f"{name}  (no regular file)"
