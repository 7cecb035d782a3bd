"""`edit_file`: one piece of a text file replaced by another, if it is clear which."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dragoman.errors import ToolFailed
from dragoman.tools.builtin.textfile import MOST, TextFile, check_version, encoded, text_file, version_of
from dragoman.tools.tool import ToolContext, tool
from dragoman.tools.workspace import path_patterns, replace_inside, wider_paths


# Run again after a crash, it finds another version than it was given and changes nothing twice.
@tool(
    permission="files.write",
    writes="named",
    pattern=path_patterns,
    wider=wider_paths,
    replay="safe",
    timeout=30,
    sequential=True,
)
def edit_file(
    path: Annotated[str, Field(description="relative to the workspace")],
    old: Annotated[str, Field(min_length=1, description="the text to replace, exactly as it is in the file")],
    new: Annotated[str, Field(description="the text to put there")],
    version: Annotated[
        str, Field(description="the version that read_file, or your last edit of the file, gave")
    ],
    context: ToolContext,
    *,
    everywhere: Annotated[bool, Field(description="replace every occurrence, not the only one")] = False,
) -> str:
    """Replace a piece of text in a file of the workspace. `old` must occur exactly once (give more lines
    around it until it does), unless `everywhere` is true. The result gives the new version, for the next
    edit."""
    count = 0

    def change(data: bytes | None) -> bytes:
        nonlocal count
        if data is None:
            raise ToolFailed(f"there is no {path}: write_file makes new files")
        check_version(path, data, version)
        file = text_file(path, data)
        text, count = _replaced(path, file, old, new, everywhere)
        return file.bytes(text)

    data = replace_inside(context.workspace, path, MOST, change, create=False)
    times = "once" if count == 1 else f"{count} times"
    return f"edited {path}: replaced {times}, version {version_of(data)}"


def _replaced(path: str, file: TextFile, old: str, new: str, everywhere: bool) -> tuple[str, int]:
    if file.crlf:
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    if old == new:
        raise ToolFailed("old and new are the same text: there is nothing to do")
    count = _occurrences(file.text, old)
    if count == 0:
        raise ToolFailed(f"old is not in {path}: it must be there exactly, with every space and line end")
    if count > 1 and not everywhere:
        raise ToolFailed(
            f"old is {count} times in {path}: give more of the text around it, or set everywhere to true"
        )
    text = file.text.replace(old, new)
    encoded(path, text)
    return text, file.text.count(old)


def _occurrences(text: str, piece: str) -> int:
    """Also those that overlap: `aa` is twice in `aaa`, and it is not clear which one is meant."""
    count = at = 0
    while (at := text.find(piece, at) + 1) > 0:
        count += 1
    return count
