"""Check OpenAI's strict mode: strict schemas are valid, and replies fit the original schema."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from dragoman.messages.events import CallInputEnd, Event, TextDelta
from dragoman.messages.request import ToolSpec
from dragoman.wire.schemas.strict import is_strict, restore_calls, restored, strict_form

TEXT: dict[str, Any] = {"type": "string"}


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def nested(depth: int) -> dict[str, Any]:
    return closed(a=nested(depth - 1)) if depth else TEXT


# ── generated schemas, and what fits them ─────────────────────────────────────────────────────────

PLAIN = st.sampled_from(
    [
        TEXT,
        {"type": "integer", "minimum": 0},
        {"type": "boolean", "default": True},
        {"type": ["string", "null"]},
        {"type": "string", "enum": ["a", "b"]},
        {"enum": ["a", "b"]},
        {"const": "a"},
        {"type": "null"},
        {"type": "string", "minLength": 2},
        {"type": "string", "format": "uri"},
        {"type": "integer", "default": 3},
        {"type": ["integer", "null"], "default": 3},
        {"$ref": "#/$defs/Leaf"},
        {"$ref": "#/$defs/Leaf", "description": "A leaf."},
        {},
        True,
    ]
)
FIT = st.sampled_from(
    [
        TEXT,
        {"type": "integer", "default": 3},
        {"type": ["string", "null"]},
        {"enum": ["a", "b"]},
        {"$ref": "#/$defs/Leaf", "description": "A leaf."},
    ]
)
NAMES = st.sampled_from(["a", "b", "c"])


def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.builds(
        _object,
        st.dictionaries(NAMES, inner, max_size=3),
        st.sets(NAMES),
        st.sampled_from([None, False, True, TEXT]),
        st.sampled_from(["object", ["object", "null"]]),
    )
    return st.one_of(
        objects,
        st.builds(lambda items: {"type": "array", "items": items, "maxItems": 2}, inner),
        st.builds(
            lambda word, branches: {word: branches},
            st.sampled_from(["anyOf", "anyOf", "anyOf", "oneOf", "allOf"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.sampled_from([{"type": "array"}, {"type": "object"}, {"not": TEXT}, {"if": TEXT, "then": TEXT}]),
    )


def _object(properties: dict[str, Any], required: set[str], more: Any, type: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"type": type, "properties": properties}
    if due := sorted(required & properties.keys()):
        made["required"] = due
    return made if more is None else {**made, "additionalProperties": more}


LEAF = {"type": "object", "properties": {"n": {"type": "integer"}, "next": {"$ref": "#/$defs/Leaf"}}}
SCHEMAS = st.recursive(PLAIN, deeper, max_leaves=8).map(
    lambda one: {**one, "$defs": {"Leaf": LEAF}} if isinstance(one, dict) else {"anyOf": [one]}
)
OBJECTS = st.builds(
    lambda properties, required: {**_object(properties, required, None, "object"), "$defs": {"Leaf": LEAF}},
    st.dictionaries(NAMES, st.recursive(PLAIN, deeper, max_leaves=6), min_size=1, max_size=3),
    st.sets(NAMES),
)


FITTING = st.builds(
    lambda properties, required: {**_object(properties, required, None, "object"), "$defs": {"Leaf": LEAF}},
    st.dictionaries(
        NAMES,
        st.recursive(
            FIT,
            lambda inner: st.one_of(
                st.builds(
                    _object,
                    st.dictionaries(NAMES, inner, max_size=3),
                    st.sets(NAMES),
                    st.sampled_from([None, False]),
                    st.sampled_from(["object", ["object", "null"]]),
                ),
                st.builds(lambda items: {"type": "array", "items": items}, inner),
                st.builds(lambda one: {"anyOf": [one, {"type": "null"}]}, inner),
                st.builds(lambda one: {"anyOf": [one, {"type": "boolean"}]}, inner),
            ),
            max_leaves=6,
        ),
        min_size=1,
        max_size=3,
    ),
    st.sets(NAMES),
)
"""Generate object schemas, most of which can be strict."""


def value_of(draw: st.DrawFn, node: dict[str, Any], root: dict[str, Any], depth: int = 0) -> Any:
    """A value that fits a strict schema."""
    if "$ref" in node:
        return value_of(draw, root["$defs"][node["$ref"].rpartition("/")[2]], root, depth + 1)
    if "anyOf" in node:
        branches = node["anyOf"]
        short = [one for one in branches if one == {"type": "null"}]
        return value_of(draw, draw(st.sampled_from(short if depth > 4 and short else branches)), root, depth)
    if "enum" in node:
        return draw(st.sampled_from(node["enum"]))
    if "const" in node:
        return node["const"]
    types = [node["type"]] if isinstance(node["type"], str) else node["type"]
    match draw(st.sampled_from(types)):
        case "object":
            return {name: value_of(draw, one, root, depth + 1) for name, one in node["properties"].items()}
        case "array":
            return [value_of(draw, node["items"], root, depth + 1) for _ in range(draw(st.integers(0, 2)))]
        case "null":
            return None
        case "string":
            return "text"
        case "boolean":
            return True
        case _:
            return draw(st.integers(0, 3))


# ── what OpenAI writes of strict mode, once more ──────────────────────────────────────────────────


REFUSED_WORDS = ("allOf", "oneOf", "not", "if", "default", "minLength", "prefixItems")


def breaches(node: Any, depth: int = 0) -> list[str]:
    """Return the documented rules that a schema breaks, independent of the tested code."""
    if not isinstance(node, dict):
        return ["not a schema"]
    found = [word for word in REFUSED_WORDS if word in node]
    if depth == 0 and (node.get("type") != "object" or "anyOf" in node):
        found.append("the root is not an object")
    if "$ref" in node:
        return found + (["beside a reference"] if len(node) > 1 else [])
    if "anyOf" not in node and "type" not in node:
        found.append("no type")
    types = node.get("type")
    if isinstance(types, list) and {"object", "array"} & {*types}:
        found.append("an object among types")
    if types == "object":
        if node.get("additionalProperties") is not False:
            found.append("open")
        if {*node.get("properties", ())} != {*node.get("required", ())}:
            found.append("optional")
    if types == "array" and "items" not in node:
        found.append("an array of anything")
    inner = [*node.get("properties", {}).values(), *node.get("anyOf", ()), *node.get("$defs", {}).values()]
    inner += [node["items"]] if "items" in node else []
    return found + [fault for one in inner for fault in breaches(one, depth + 1)]


@given(st.one_of(SCHEMAS, OBJECTS))
def test_what_is_called_strict_breaks_no_rule(schema: dict[str, Any]) -> None:
    """R9"""
    if is_strict(schema):
        assert breaches(schema) == []
    for optional in (True, False):
        form = strict_form(schema, optional=optional)
        if form is not None:
            assert is_strict(form)
            assert breaches(form) == []


@given(FITTING, st.data())
def test_what_fits_the_strict_form_fits_the_schema_once_it_is_restored(
    schema: dict[str, Any], data: st.DataObject
) -> None:
    """R9: and without restoring, where nothing is optional."""
    form = strict_form(schema)
    assume(form is not None)
    assert form is not None
    value = data.draw(st.composite(lambda draw: value_of(draw, form, form))())
    Draft202012Validator(form).validate(value)
    back = restored(value, schema)
    Draft202012Validator(schema).validate(back)
    assert restored(back, schema) == back
    if strict_form(schema, optional=False) is not None:
        assert back == value


REFUSED: dict[str, dict[str, Any]] = {
    "allOf": closed(a={"allOf": [TEXT]}),
    "oneOf": closed(a={"oneOf": [TEXT, {"type": "null"}]}),
    "not": closed(a={"not": TEXT}),
    "if": closed(a={"type": "string", "if": TEXT, "then": TEXT}),
    "anyOf at the root": {"anyOf": [closed(a=TEXT), closed(b=TEXT)]},
    "an array at the root": {"type": "array", "items": TEXT},
    "an object or null": closed(a={**closed(b=TEXT), "type": ["object", "null"]}),
    "an array of anything": closed(a={"type": "array"}),
    "anything": closed(a={}),
    "a default": closed(a={"type": "string", "default": "x"}),
    "optional": {**closed(a=TEXT, b=TEXT), "required": ["a"]},
    "open": {**closed(a=TEXT), "additionalProperties": True},
    "words beside a reference": closed(a={"$ref": "#/$defs/A", "description": "A."}) | {"$defs": {"A": TEXT}},
    "a reference to nowhere": closed(a={"$ref": "#/$defs/A"}),
    "too deep": nested(10),
    "a pattern that looks ahead": closed(a={"type": "string", "pattern": "^(?=a)"}),
    "long values": closed(a={"type": "string", "enum": [f"{n:0100}" for n in range(251)]}),
    "too many values": closed(a={"type": "string", "enum": [str(n) for n in range(1001)]}),
}


@pytest.mark.parametrize("schema", REFUSED.values(), ids=REFUSED.keys())
def test_what_openai_refuses_is_not_called_strict(schema: dict[str, Any]) -> None:
    """R9"""
    assert not is_strict(schema)


def test_what_is_optional_becomes_nullable_and_a_null_for_nothing_goes() -> None:
    """R9: a null that the schema allows stays."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "city": TEXT,
            "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
            "day": {"type": ["string", "null"]},
            "near": {"type": ["object", "null"], "properties": {"km": {"type": "integer"}}, "required": []},
        },
        "required": ["city"],
    }
    assert strict_form(schema) == closed(
        city=TEXT,
        unit={"anyOf": [{"type": "string", "enum": ["C", "F"]}, {"type": "null"}]},
        day={"type": ["string", "null"]},
        near={"anyOf": [closed(km={"type": ["integer", "null"]}), {"type": "null"}]},
    )
    assert strict_form(schema, optional=False) is None
    answer: dict[str, Any] = {"city": "Lyon", "unit": None, "day": None, "near": {"km": None}}
    kept: dict[str, Any] = {"city": "Lyon", "day": None, "near": {}}
    assert restored(answer, schema) == kept
    events: list[Event] = [TextDelta("x")]
    events += [CallInputEnd("c", "weather", answer), CallInputEnd("d", "other", answer)]
    tools = (ToolSpec("weather", "", schema),)
    assert restore_calls(events, tools) == [events[0], CallInputEnd("c", "weather", kept), events[2]]
