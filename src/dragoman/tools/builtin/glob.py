"""`glob`: the files of the workspace whose paths match a pattern."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from fnmatch import fnmatchcase
from itertools import islice
from typing import Annotated

from pydantic import Field

from dragoman.errors import ToolFailed
from dragoman.tools.tool import ToolContext, tool
from dragoman.tools.workspace import below, on_one_line, path_patterns, walk, wider_paths

SKIPPED = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})
FILES = 50_000  # that are looked at
_MOST = 500


@tool(
    permission="files.read",
    writes="nothing",
    pattern=path_patterns,
    wider=wider_paths,
    replay="safe",
    timeout=30,
)
def glob(
    pattern: Annotated[str, Field(description="`*.py`: in this folder; `**/*.py`: also in all below")],
    context: ToolContext,
    path: Annotated[str, Field(description="the folder to look in, relative to the workspace")] = ".",
) -> str:
    """Find files of the workspace by name. `*` is any part of a name, `?` one character, `**` any folders.
    Not looked into: links, .git, .hg, .svn, node_modules, __pycache__ and .venv."""
    if ".." in steps(pattern):
        raise ToolFailed("a pattern goes down only: give the folder as path")
    found: list[str] = []
    looked = 0
    with closing(walk(context.workspace, path, SKIPPED)) as files:
        for name, _, _ in islice(files, FILES):
            looked += 1
            if context.cancelled():
                break
            if fits(name, pattern) and context.permits(below(path, name)):
                found.append(on_one_line(name))
    notes = [f"[{len(found) - _MOST} more are not shown]"] if len(found) > _MOST else []
    if looked == FILES:
        notes.append(f"[only the first {FILES} files were looked at: give a folder]")
    return "\n".join([*found[:_MOST], *notes]) if found or notes else f"no file in {path} matches {pattern}"


def fits(path: str, pattern: str) -> bool:
    """Step by step, all ways at once: no pattern takes long."""
    wanted = steps(pattern)
    at = _skipping({0}, wanted)
    for step in path.split("/"):
        at = _skipping(
            {
                here if wanted[here] == "**" else here + 1
                for here in at
                if here < len(wanted) and (wanted[here] == "**" or fnmatchcase(step, wanted[here]))
            },
            wanted,
        )
    return len(wanted) in at


def steps(pattern: str) -> list[str]:
    return [step for step in pattern.split("/") if step not in ("", ".")]


def _skipping(at: set[int], wanted: Sequence[str]) -> set[int]:
    """`**` may also stand for no folder."""
    for here in sorted(at):
        end = here
        while end < len(wanted) and wanted[end] == "**":
            end += 1
            at.add(end)
    return at
