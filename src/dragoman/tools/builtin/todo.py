"""`todo`: a list of tasks, given whole each time, so that it stands in the conversation."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from dragoman.tools.tool import ToolOutput, tool

MARKS = {"open": "[ ]", "doing": "[~]", "done": "[x]"}


class TodoItem(BaseModel):
    """One thing to do."""

    text: str = Field(min_length=1, max_length=500)
    state: Literal["open", "doing", "done"] = "open"


@tool(
    permission="basics.todo",
    writes="nothing",
    replay="safe",
    timeout=5,
    examples=[{"items": [{"text": "read the report", "state": "done"}, {"text": "sum it up"}]}],
)
def todo(
    items: Annotated[
        list[TodoItem], Field(max_length=100, description="all of them, also those already done")
    ],
) -> ToolOutput:
    """Keep a list of what is to be done in this conversation. Each call gives the whole list anew."""
    done = sum(item.state == "done" for item in items)
    lines = [f"{MARKS[item.state]} {item.text}" for item in items]
    return ToolOutput(
        "\n".join(lines) or "The list is empty.",
        title=f"{done} of {len(items)} done",
        metadata={"items": [item.model_dump() for item in items]},
    )
