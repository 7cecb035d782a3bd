"""Gemini: the subsets of JSON schema, and of OpenAPI's, that it understands."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from dragoman.messages.request import ToolSpec
from dragoman.wire.gemini.json_schema import json_subset
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


@cache
def schemas() -> SearchStrategy[Any]:
    """Generate schemas as users, pydantic and MCP servers write them, and some invalid ones."""
    names = st.sampled_from(["a", "b", "type", "$ref", "enum"])
    leaf = st.sampled_from(
        [
            {"type": "string"},
            {"type": "null"},
            {"const": 1},
            {"enum": [None]},
            {},
            {"$ref": "#/$defs/P"},
            {"$ref": "#/nowhere", "nullable": True},
            {"type": "object"},
            {"type": "object", "additionalProperties": {"enum": ["a", ""]}},
            {"type": "array", "items": [{"type": "string"}], "minItems": 2},
            {"type": "number", "exclusiveMinimum": 0, "enum": [1, 2.5, None], "default": 1},
            {"type": "string", "format": "uri", "pattern": "^x", "minLength": 1, "title": "T"},
            {"type": "any", "not": {"type": "string"}, "if": {}, "patternProperties": {"x": {}}},
            True,
            False,
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
            st.lists(inner, max_size=2).map(lambda places: {"type": "array", "prefixItems": places}),
            st.lists(inner, max_size=2).map(lambda choices: {"oneOf": choices, "type": "object"}),
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
        *("properties", "required", "maxItems", "minLength", "maxLength", "pattern", "minimum", "maximum"),
    }
    assert set(schema.get("required", ())) <= schema.get("properties", {}).keys()
    assert ("items" in schema) == (schema["type"] == "ARRAY")
    for inner in schema.get("properties", {}).values():
        assert_in_subset(inner)
    if "items" in schema:
        assert_in_subset(schema["items"])


WORDS = {  # the reference of the API lists these, and no others
    *("$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items"),
    *("prefixItems", "minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties"),
    *("additionalProperties", "required", "propertyOrdering"),
}
JSON_TYPES = {"string", "number", "integer", "boolean", "array", "object", "null"}


def assert_in_json_subset(schema: Any) -> None:
    assert schema.keys() <= WORDS
    types = schema.get("type", [])
    assert {types} <= JSON_TYPES if isinstance(types, str) else JSON_TYPES.issuperset(types)
    assert all(type(value) in (str, int, float) for value in schema.get("enum", ()))
    assert set(schema.get("required", ())) <= schema.get("properties", {}).keys()
    for word in ("anyOf", "prefixItems"):
        assert word not in schema or schema[word]
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ()), *schema.get("prefixItems", ())]
    inner += [schema["items"]] if "items" in schema else []
    others = schema.get("additionalProperties")
    for one in [*inner, others] if isinstance(others, dict) else inner:
        assert_in_json_subset(one)


def parameters_of(model: str, schema: Any) -> dict[str, Any]:
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {"it": schema},
        "$defs": {"P": {"type": "object", "properties": {"again": {"$ref": "#/$defs/P"}}}},
    }
    body = asking(model, tools=(ToolSpec("t", "A tool.", parameters),))
    declared: dict[str, Any] = body["tools"][0]["functionDeclarations"][0]
    return declared


@given(schemas())
def test_any_schema_ends_in_the_subset(schema: Any) -> None:
    """Gemini accepts the schema of every tool (R9)."""
    assert_in_subset(parameters_of("gemini-2.0-flash", schema)["parameters"])
    assert_in_json_subset(parameters_of("gemini-3-pro", schema)["parametersJsonSchema"])


@pytest.mark.parametrize(
    ("schema", "theirs"),
    [
        ({"type": "object"}, {"type": "object"}),
        (
            {"type": "object", "additionalProperties": {"type": "string", "title": "T"}},
            {"type": "object", "additionalProperties": {"type": "string"}},
        ),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"const": "a"}, {"enum": ["a"], "type": "string"}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "integer", "enum": [1, 2]}),
        ({"enum": ["a", None]}, {"enum": ["a"], "type": ["string", "null"]}),
        ({"enum": [True, 1]}, {"description": "One of: true, 1"}),
        (
            {"type": "integer", "exclusiveMinimum": 0, "description": "How many."},
            {"type": "integer", "description": "How many. (exclusiveMinimum: 0)"},
        ),
        ({"oneOf": [{"type": "integer"}, POINT]}, {"anyOf": [{"type": "integer"}, POINT]}),
        ({"type": "array"}, {"type": "array", "items": {}}),
        (
            {"type": "array", "items": [{"type": "string"}, {"type": "number"}]},
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]},
        ),
        ({"allOf": [{"$ref": "#/$defs/P"}], "$defs": {"P": POINT}}, POINT),
        (
            TREE,
            {
                "type": "object",
                "properties": {"branches": {"type": "array", "items": {"type": "object"}}},
                "required": ["branches"],
            },
        ),
        ({}, {}),
    ],
)
def test_a_schema_keeps_the_words_they_read(schema: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert json_subset(schema) == theirs
