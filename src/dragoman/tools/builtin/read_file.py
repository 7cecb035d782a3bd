"""`read_file`: lines of a text file in the workspace, and the version that was read."""

from __future__ import annotations

from itertools import accumulate
from typing import Annotated

from pydantic import Field

from dragoman.errors import ToolFailed
from dragoman.tools.builtin.textfile import MOST, seen_versions, text_file
from dragoman.tools.tool import ToolContext, ToolOutput, tool
from dragoman.tools.workspace import path_patterns, read_inside, wider_paths

_PAGE = 40_000  # bytes: less than what a model is shown of a result


@tool(
    permission="files.read",
    writes="nothing",
    pattern=path_patterns,
    wider=wider_paths,
    replay="safe",
    timeout=30,
)
def read_file(
    path: Annotated[str, Field(description="relative to the workspace")],
    context: ToolContext,
    start: Annotated[int, Field(ge=1, description="the first line wanted")] = 1,
    lines: Annotated[int, Field(ge=1, le=1900, description="how many lines")] = 1000,
) -> ToolOutput:
    """Read a text file of the workspace. The first line of the result says which lines these are, how many
    there are, and the file's version, which edit_file and write_file ask for."""
    file = text_file(path, read_inside(context.workspace, path, MOST))
    whole = file.text.removesuffix("\n").split("\n") if file.text else []
    if start > max(len(whole), 1):
        raise ToolFailed(f"{path} has {len(whole)} lines; start is {start}")
    page, cut = _page(whole[start - 1 : start - 1 + lines])
    head = f"[{path}: lines {start} to {start - 1 + len(page)} of {len(whole)}, version {file.version}]"
    if not whole:
        head = f"[{path} is empty, version {file.version}]"
    text = "\n".join([head, *page, *cut])
    return ToolOutput(text, metadata=seen_versions({path: file.version}))


def _page(wanted: list[str]) -> tuple[list[str], list[str]]:
    """As many whole lines as fit; of a first line that does not, its beginning and a note."""
    sizes = accumulate(len(line.encode()) + 1 for line in wanted)
    page = [line for line, size in zip(wanted, sizes, strict=True) if size <= _PAGE]
    if page or not wanted:
        return page, []
    shown = wanted[0].encode()[:_PAGE].decode(errors="ignore")
    return [shown], [f"[this line goes on: it has {len(wanted[0])} characters, {len(shown)} are shown]"]
