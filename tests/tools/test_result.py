"""Check what a tool returns or reports, as it is stored and shown: C6, C7, C8."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel, JsonValue

from dragoman import ToolContext, ToolOutput, tool
from dragoman.messages.message import CallState, File
from dragoman.store.codecs import RESULT
from dragoman.tools.tool import Tool
from tests.tools.bench import Bench, run


def gives(value: Any) -> Tool:
    return tool(name="gives", description="Gives it.")(lambda: value)


@dataclass
class Point:
    x: int
    when: date = date(2024, 2, 29)


class Colour(str, Enum):  # noqa: UP042 - people write these, too
    RED = "red"


class Box(BaseModel):
    inside: list[Point]


@pytest.mark.parametrize(
    ("value", "text", "kept"),
    [
        ("plain", "plain", None),
        ("", "", None),
        (None, "done", None),
        (3, "3", 3),
        (True, "true", True),
        (0.5, "0.5", 0.5),
        ([1, "ä"], '[1, "ä"]', [1, "ä"]),
        ({"a": None}, '{"a": null}', {"a": None}),
        ({1: (2, 3)}, '{"1": [2, 3]}', {"1": [2, 3]}),
        (Point(1), '{"x": 1, "when": "2024-02-29"}', {"x": 1, "when": "2024-02-29"}),
        (
            Box(inside=[Point(1)]),
            '{"inside": [{"x": 1, "when": "2024-02-29"}]}',
            {"inside": [{"x": 1, "when": "2024-02-29"}]},
        ),
        (float("nan"), "NaN", None),
        ([float("inf")], '["Infinity"]', ["Infinity"]),
        (Colour.RED, "red", None),
        ("half \ud83d", "half ?", None),
        (["half \ud83d"], '["half ?"]', ["half ?"]),
        ({"half \ud83d": 1}, '{"half ?": 1}', {"half ?": 1}),
        (10**30, str(10**30), 10**30),
    ],
)
async def test_a_result_is_text_or_any_json_value(value: Any, text: str, kept: JsonValue) -> None:
    """The stored value is read back exactly as it was written (C6)."""
    outcome = await run(gives(value))
    assert outcome.state is CallState.COMPLETED
    assert (outcome.result.text, outcome.result.value) == (text, kept)
    assert RESULT.load(RESULT.dump(outcome.result)) == outcome.result


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def circle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "value", [object(), b"\xff", print, circle(), nested(190), nested(5000), {"a": {1, object()}}]
)
async def test_a_value_that_is_no_json_is_a_failure_the_model_can_read(value: Any) -> None:
    """This includes a value nested too deep to be read back (C6, C7)."""
    outcome = await run(gives(value))
    assert outcome.state is CallState.FAILED
    assert "not a JSON value" in outcome.result.text


async def test_a_tool_may_say_more_than_a_text() -> None:
    """C6"""
    picture = File("image/png", url="https://example.org/a.png")
    outcome = await run(gives(ToolOutput([1], title="One", metadata={"n": 1}, attachments=(picture,))))
    result = outcome.result
    assert (result.text, result.value, result.title) == ("[1]", [1], "One")
    assert (result.metadata, result.attachments) == ({"n": 1}, (picture,))


@pytest.mark.parametrize(
    "output",
    [
        ToolOutput("x", metadata={"a": object()}),  # type: ignore[dict-item]
        ToolOutput("x", metadata=[1]),  # type: ignore[arg-type]
        ToolOutput("x", attachments=("a.png",)),  # type: ignore[arg-type]
    ],
)
async def test_a_tool_that_says_more_than_can_be_stored_fails(output: ToolOutput) -> None:
    """The turn would otherwise fail when it writes the result (C7)."""
    assert (await run(gives(output))).state is CallState.FAILED


async def test_progress_is_json_too() -> None:
    """C8"""

    @tool
    async def reports(context: ToolContext) -> str:
        """Reports."""
        context.progress(Point(1))  # type: ignore[arg-type]
        context.progress({"share": 0.5})
        return "done"

    bench = Bench()
    await bench.run(reports)
    assert bench.progress == [{"x": 1, "when": "2024-02-29"}, {"share": 0.5}]


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="there, file names are always Unicode")
async def test_file_names_that_are_no_text_can_be_listed(tmp_path: Any) -> None:
    """C7"""
    (tmp_path / os.fsdecode(b"caf\xe9")).touch()

    @tool
    def ls() -> list[str]:
        """List."""
        return os.listdir(tmp_path)  # noqa: PTH208

    assert (await run(ls)).result.value == ["caf?"]
