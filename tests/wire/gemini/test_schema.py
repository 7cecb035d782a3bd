"""Gemini: the subset of JSON schema that it understands."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from dragoman.messages.request import ToolSpec
from dragoman.wire.gemini.schema import subset
from tests.wire.gemini.bodies import asking

POINT = {"type": "object", "properties": {"x": {"type": "number"}}}
TREE: dict[str, Any] = {
    "$ref": "#/$defs/Tree",
    "$defs": {
        "Tree": {
            "type": "object",
            "properties": {"branches": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
            "required": ["branches", "gone"],
        }
    },
}


@pytest.mark.parametrize(
    ("schema", "theirs"),
    [
        ({"type": "string", "title": "T", "default": "x", "format": "uri"}, {"type": "STRING"}),
        ({"type": "string", "format": "date-time"}, {"type": "STRING", "format": "date-time"}),
        ({"type": ["string", "null"]}, {"type": "STRING", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"type": "INTEGER", "nullable": True}),
        (
            {"oneOf": [{"type": "integer"}, {"type": "string"}], "description": "d"},
            {"anyOf": [{"type": "INTEGER", "description": "d"}, {"type": "STRING"}]},
        ),
        ({"enum": ["a", None]}, {"type": "STRING", "enum": ["a"], "nullable": True}),
        ({"const": "a"}, {"type": "STRING", "enum": ["a"]}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "INTEGER", "description": "One of: 1, 2"}),
        (
            {"$ref": "#/$defs/P", "description": "d", "$defs": {"P": POINT}},
            {"type": "OBJECT", "properties": {"x": {"type": "NUMBER"}}, "description": "d"},
        ),
        (
            {"allOf": [POINT, {"properties": {"y": {"type": "boolean"}}, "required": ["y"]}]},
            {
                "type": "OBJECT",
                "properties": {"x": {"type": "NUMBER"}, "y": {"type": "BOOLEAN"}},
                "required": ["y"],
            },
        ),
        (
            TREE,
            {
                "type": "OBJECT",
                "properties": {"branches": {"type": "ARRAY", "items": {"type": "OBJECT"}}},
                "required": ["branches"],
            },
        ),
        ({"type": "array"}, {"type": "ARRAY", "items": {"type": "STRING"}}),
        (
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "minItems": 2},
            {"type": "ARRAY", "items": {"anyOf": [{"type": "STRING"}, {"type": "NUMBER"}]}, "minItems": 2},
        ),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"type": "OBJECT"}),
        ({}, {"type": "STRING"}),
        (
            {"type": "object", "properties": {"$ref": {"type": "string"}, "enum": True}},
            {"type": "OBJECT", "properties": {"$ref": {"type": "STRING"}, "enum": {"type": "STRING"}}},
        ),
    ],
)
def test_a_schema_is_said_in_the_subset_they_take(schema: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert subset(schema) == theirs


def test_types_that_all_refer_to_each_other_do_not_grow_without_end() -> None:
    every = {f"p{n}": {"$ref": f"#/$defs/T{n}"} for n in range(12)}
    types: dict[str, Any] = {f"T{n}": {"type": "object", "properties": every} for n in range(12)}
    theirs = subset({"$ref": "#/$defs/T0", "$defs": types})
    assert_in_subset(theirs)
    assert len(repr(theirs)) < 500_000


def schemas() -> SearchStrategy[Any]:
    """Schemas as people, pydantic and MCP servers write them, and some nobody should."""
    names = st.sampled_from(["a", "b", "type", "$ref", "enum"])
    leaf = st.sampled_from(
        [
            {"type": "string"},
            {"type": "null"},
            {"const": 1},
            {"enum": [None]},
            {},
            {"$ref": "#/$defs/P"},
            True,
        ]
    )
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.dictionaries(names, inner, max_size=3).map(
                lambda properties: {"type": "object", "properties": properties, "required": ["a", "z"]}
            ),
            inner.map(lambda items: {"type": "array", "items": items, "uniqueItems": True}),
            st.lists(inner, max_size=3).map(lambda choices: {"anyOf": choices}),
            st.lists(inner, max_size=2).map(lambda parts: {"allOf": parts, "description": "d"}),
            inner.map(lambda items: {"type": ["array", "null"], "items": items}),
        ),
        max_leaves=8,
    )


def assert_in_subset(schema: dict[str, Any]) -> None:
    if "anyOf" in schema:
        assert schema.keys() == {"anyOf"}
        for choice in schema["anyOf"]:
            assert_in_subset(choice)
        return
    assert schema["type"] in ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT")
    assert schema.keys() <= {
        *("type", "description", "nullable", "format", "enum", "items", "minItems"),
        *("properties", "required"),
    }
    assert set(schema.get("required", ())) <= schema.get("properties", {}).keys()
    assert ("items" in schema) == (schema["type"] == "ARRAY")
    for inner in schema.get("properties", {}).values():
        assert_in_subset(inner)
    if "items" in schema:
        assert_in_subset(schema["items"])


@given(schemas())
def test_any_schema_ends_in_the_subset(schema: Any) -> None:
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {"it": schema},
        "$defs": {"P": {"type": "object", "properties": {"again": {"$ref": "#/$defs/P"}}}},
    }
    body = asking(tools=(ToolSpec("t", "A tool.", parameters),))
    assert_in_subset(body["tools"][0]["functionDeclarations"][0]["parameters"])
