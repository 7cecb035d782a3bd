"""A name that a model gave in, a path inside the workspace out, or ToolFailed."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

from dragoman.errors import ToolFailed


def inside(workspace: Path | None, path: str) -> Path:
    """The file of this name below the workspace, links followed."""
    if workspace is None:
        raise ToolFailed("there is no workspace folder in this conversation")
    if "\0" in path:
        raise ToolFailed("a path cannot contain a NUL character")
    if PurePosixPath(path).is_absolute() or PureWindowsPath(path).anchor:
        raise ToolFailed(f"{path}: give a path relative to the workspace")
    root = workspace.resolve()
    try:
        target = (root / path).resolve()
    except (OSError, RuntimeError) as error:  # links that lead to themselves
        raise ToolFailed(f"{path} is no path that can be followed") from error
    if not target.is_relative_to(root):
        raise ToolFailed(f"{path} leads out of the workspace")
    return target
