"""Signatures that programs of a model see."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.messages.request import ToolSpec
from dragoman.tools.signatures import function_names, signatures, stubs
from dragoman.tools.tool import Tool, tool


def test_each_tool_is_a_function_with_a_separate_valid_name() -> None:
    """Names that Python does not allow get underscores, and no two tools share one."""
    assert function_names(["a-b", "a.b", "class", "1st", "plain"]) == {
        "a_b": "a-b",
        "a_b_": "a.b",
        "class_": "class",
        "_1st": "1st",
        "plain": "plain",
    }


def made(returns: object = "str") -> Tool:
    """A tool with this return annotation."""

    def do() -> None: ...

    do.__annotations__ = {"return": returns}
    return tool(do)


def told(parameters: dict[str, Any], returns: object = "str", description: str = "") -> str:
    return signatures([ToolSpec("do", description, parameters)], {"do": made(returns)})


SPOT = {"type": "object", "properties": {"x": {"type": "integer"}}}
DEEP: dict[str, Any] = {"type": "integer"}
for _ in range(6):
    DEEP = {"type": "array", "items": DEEP}


@pytest.mark.parametrize(
    ("schema", "type"),
    [
        ({"type": "boolean"}, "bool"),
        ({"type": ["string", "null"]}, "str | None"),
        ({"type": []}, "Any"),
        ({"type": "object"}, "dict[str, Any]"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "dict[str, int]"),
        ({"type": "object", "additionalProperties": True}, "dict[str, Any]"),
        ({"type": "array", "items": {"type": "number"}}, "list[float]"),
        ({"type": "array"}, "list[Any]"),
        ({"enum": ["a", 1, None]}, "Literal['a', 1, None]"),
        ({"enum": ["a", 1.5]}, "Any"),
        ({"enum": []}, "Any"),
        ({"const": "x"}, "Literal['x']"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "string"}]}, "str | None"),
        ({"oneOf": []}, "Any"),
        ({"$ref": "#/$defs/spot"}, "dict[str, Any]"),
        ({"$ref": "#/$defs/none"}, "Any"),
        ({"$ref": "#/$defs/self"}, "Any"),
        (DEEP, "list[list[list[list[list[list[int]]]]]]"),
        ({"type": "array", "items": DEEP}, "list[list[list[list[list[list[list[Any]]]]]]]"),
        (
            {"type": "object", "additionalProperties": DEEP},
            "dict[str, list[list[list[list[list[list[Any]]]]]]]",
        ),
        ({"anyOf": [DEEP]}, "list[list[list[list[list[list[Any]]]]]]"),
        (True, "Any"),
    ],
)
def test_a_schema_is_told_as_a_type(schema: object, type: str) -> None:
    """What has no type of its own, or lies too deep, is any value (G1)."""
    defs = {"spot": SPOT, "self": {"$ref": "#/$defs/self"}}
    parameters = {"properties": {"a": schema}, "required": ["a"], "$defs": defs}
    assert told(parameters) == f"async def do(*, a: {type}) -> str: ..."


def test_what_is_required_comes_first_and_descriptions_follow() -> None:
    """Parameters that Python does not allow are passed as others are (G1)."""
    properties = {"a": {"type": "integer", "description": "How many.\nAt most 3."}, "b": {}, "c-d": {}}
    head = "async def do(*, b: Any, a: int = ..., **more: Any) -> str:"
    parameters = {"properties": properties, "required": ["b"]}
    assert told(parameters, description=" Do it. ") == f'{head}\n  "Do it.\n  a: How many.\n  At most 3."'
    assert told({"properties": {"class": {}}}) == "async def do(**more: Any) -> str: ..."
    for more, end in ((True, "**more: Any"), ({}, "**more: Any"), (False, "")):
        assert told({"additionalProperties": more}) == f"async def do({end}) -> str: ..."
    assert told({"properties": []}) == "async def do() -> str: ..."


@pytest.mark.parametrize(
    ("returns", "type"),
    [
        (str, "str"),
        (list[int], "list[Any]"),
        ("dict[str, int]", "dict[str, Any]"),
        ("int | None", "Any"),
        (int | None, "Any"),
        ("Path", "Any"),
    ],
)
def test_a_plain_result_is_told_as_its_type(returns: object, type: str) -> None:
    """G1"""
    assert told({}, returns) == f"async def do() -> {type}: ..."
    assert stubs({"do": "do"}, {"do": made(returns)}).endswith(f"\nasync def do() -> {type}: ...\n")
