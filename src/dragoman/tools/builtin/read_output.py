"""`read_output`: the rest of a result that was too long to show."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dragoman.errors import ToolFailed
from dragoman.tools.tool import ToolContext, tool

_PAGE = 400
_WIDTH = 4000


@tool(permission="read_output", writes="nothing", replay="safe", repeats=True)
async def read_output(
    call: str,
    context: ToolContext,
    start: Annotated[int, Field(ge=1, description="the first line wanted")] = 1,
    lines: Annotated[int, Field(ge=1, le=2000, description="how many lines")] = _PAGE,
) -> str:
    """Read a part of an earlier result that was shown only in part.

    Args:
        call: the id of the call, as the note in the shortened result gives it
    """
    whole = [
        line[at : at + _WIDTH]
        for line in (await context.read_output(call)).splitlines()
        for at in range(0, max(len(line), 1), _WIDTH)  # a line without end is read in pieces
    ]
    if start > len(whole):
        raise ToolFailed(f"the output of {call} has {len(whole)} lines; start is {start}")
    page = whole[start - 1 : start - 1 + lines]
    return f"lines {start} to {start - 1 + len(page)} of {len(whole)}\n" + "\n".join(page)
