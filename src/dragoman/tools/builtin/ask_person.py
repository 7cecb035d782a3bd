"""`ask_person`: lets the model put a question to the person."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import Field, JsonValue

from dragoman.tools.tool import ToolContext, ToolOutput, tool

_SHOWN = 120  # characters of a question, and of its answer, in the line that stands for both
Choice = Annotated[str, Field(min_length=1, max_length=200)]


@tool(
    permission="basics.ask_person",
    writes="nothing",
    replay="safe",
    cancellable=True,
    examples=[{"question": "Which colour shall it be?", "choices": ["red", "green"]}],
)
async def ask_person(
    question: Annotated[str, Field(min_length=1, max_length=2000)],
    context: ToolContext,
    choices: Annotated[
        list[Choice] | None,
        Field(max_length=10, description="answers to choose from; left out: they write what they like"),
    ] = None,
) -> ToolOutput:
    """Ask the person something that only they can decide, and wait for the answer."""
    said: JsonValue = await context.ask(question, choices or (), free=True)
    answer = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return ToolOutput(said, title=f"{_head(question)} → {_head(answer)}")


def _head(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
