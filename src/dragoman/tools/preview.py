"""What a call would write, for the person who is asked: as a diff; and the same call with a part of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import BadRequest, ToolFailed
from dragoman.messages.message import Arguments
from dragoman.sentences import sentence
from dragoman.tools.result import whole_text
from dragoman.tools.tool import Tool
from dragoman.workspace.diff import FileDiff, is_whole, joined

_SHOWN = 200_000  # characters of a diff in a question


@dataclass(slots=True, frozen=True)
class Foreseen:
    """What a call would write, as a diff, and the arguments of which every character is in it: all that its
    tool previews, or none where the diff is cut off, binary, or of a file that is not valid UTF-8."""

    diff: str = ""
    told: tuple[str, ...] = ()


def foresee(tool: Tool, arguments: Arguments, workspace: Path | None) -> Foreseen:
    """Raises what the tool's own function raises: then the call would fail."""
    diffs = _preview(tool, arguments, workspace)
    whole = is_whole(diffs, _SHOWN) and not any(one.binary for one in diffs)
    told = tuple(name for name in tool.previewed if whole and name in arguments)
    return Foreseen(_shown(diffs), told)


def choose_hunks(
    tool: Tool, arguments: Arguments, workspace: Path | None, shown: str, chosen: Mapping[int, str | None]
) -> Arguments:
    """The arguments with which the call does a part of what was shown. BadRequest where that cannot be."""
    if tool.keep_hunks is None or not shown:
        raise BadRequest(sentence("part.unable", tool=tool.name))
    try:
        diffs = _preview(tool, arguments, workspace)
        if _shown(diffs) != shown:
            raise BadRequest(sentence("part.stale"))
        count = sum(line.startswith("@@ -") for line in shown.split("\n"))
        if not is_whole(diffs, _SHOWN):
            raise BadRequest(sentence("part.not_shown"))
        if not chosen:
            raise BadRequest(sentence("part.none"))
        if wrong := [place for place in chosen if not 0 <= place < count]:
            raise BadRequest(sentence("part.unknown", change=wrong[0], last=count - 1))
        made = tool.keep_hunks(arguments, workspace, chosen)
        if not foresee(tool, made, workspace).diff:
            raise BadRequest(sentence("part.no_change"))
        return made
    except (ToolFailed, UnicodeError) as error:
        raise BadRequest(sentence("part.failed", error=error)) from error


def _preview(tool: Tool, arguments: Arguments, workspace: Path | None) -> Sequence[FileDiff]:
    assert tool.preview is not None
    return tool.preview(arguments, workspace)


def _shown(diffs: Sequence[FileDiff]) -> str:
    return whole_text(joined(diffs, _SHOWN))
