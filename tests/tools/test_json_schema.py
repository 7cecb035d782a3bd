"""Check parameters with a foreign JSON schema: checked and repaired like those of a function (C4, C5)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from dragoman.errors import ConfigError, ToolFailed
from dragoman.tools.json_schema import JsonParameters
from dragoman.tools.repair import repair_arguments
from dragoman.tools.schema import problems

SCHEMA: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "path": {"type": "string", "pattern": "^(a+)+$"},
        "depth": {"type": "integer", "minimum": 1, "default": 3},
        "lines": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
        "how": {"enum": ["all", "none"]},
        "what": {"type": ["string", "integer"]},
        "always": {"const": 5},
        "where": {"type": "object", "properties": {"line": {"type": "integer"}}, "required": ["line"]},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def wrong(arguments: dict[str, Any], schema: dict[str, Any] | None = None) -> str:
    with pytest.raises(ValidationError) as caught:
        JsonParameters("tool", schema or SCHEMA).validate(arguments)
    return problems(caught.value)


def test_what_fits_is_passed_on_as_it_came() -> None:
    given: dict[str, Any] = {"path": "aa", "lines": None, "where": {"line": 1}}
    assert JsonParameters("tool", SCHEMA).validate({**given}).root == given


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "path: Field required"),
        ({"path": 1}, "path: Input should be a valid string, got 1"),
        ({"path": "a", "depth": 0}, "depth: Input should fit the schema's minimum 1, got 0"),
        ({"path": "a", "depth": True}, "depth: Input should be a valid integer, got true"),
        ({"path": "a", "lines": [1, "x"]}, 'lines.1: Input should be a valid integer, got "x"'),
        ({"path": "a", "how": "some"}, "how: Input should be one of 'all', 'none', got \"some\""),
        ({"path": "a", "always": 6}, "always: Input should be 5, got 6"),
        ({"path": "a", "what": []}, "what: Input should be of type string or integer, got []"),
        ({"path": "a", "where": {}}, "where.line: Field required"),
        ({"path": "a", "more": 1}, "more: Extra inputs are not permitted, got 1"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(arguments: dict[str, Any], said: str) -> None:
    assert wrong(arguments) == said


def test_each_fault_is_told_once() -> None:
    schema = {"type": "object", "properties": {}, "required": ["a", "b"]}
    assert wrong({}, schema) == "a: Field required\nb: Field required"


@pytest.mark.parametrize(
    ("written", "repaired"),
    [
        ({"path": {"a": 1}}, {"path": '{"a": 1}'}),
        ({"path": "a", "lines": "[1, 2]"}, {"path": "a", "lines": [1, 2]}),
        ({"path": "a", "where": '{"line": 5}'}, {"path": "a", "where": {"line": 5}}),
    ],
)
def test_what_can_be_mended_without_loss_is(written: dict[str, Any], repaired: dict[str, Any]) -> None:
    assert repair_arguments(written, JsonParameters("tool", SCHEMA))[0] == repaired


def test_what_cannot_be_mended_is_told_with_the_names_there_are() -> None:
    with pytest.raises(ToolFailed, match="The parameters are: path, depth, lines, how, what, always, where"):
        repair_arguments({"path": "a", "paths": "b"}, JsonParameters("tool", SCHEMA))


def test_the_regular_expressions_of_strangers_are_not_run() -> None:
    """This one would take longer than anybody waits."""
    JsonParameters("tool", SCHEMA).validate({"path": "a" * 40 + "!"})
    schema = {"type": "object", "patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}
    JsonParameters("tool", schema).validate({"a" * 40 + "!": 1})


def test_values_are_compared_once_each_and_as_json_means_them() -> None:
    """C4: a list of objects, each compared with all others, would hold up everybody for minutes."""
    items = {"type": "array", "uniqueItems": True}
    schema = {"properties": {"all": items, "one": {"enum": [1, None, {"a": [True]}]}}}
    parameters = JsonParameters("tool", schema)
    parameters.validate({"all": [{"number": number} for number in range(20_000)]})
    parameters.validate({"all": [1, True, "1", [1], {"a": 1}, {"a": True}, None], "one": {"a": [True]}})
    parameters.validate({"one": 1.0})
    assert "uniqueItems" in wrong({"all": [{"a": 1, "b": 2}, {"b": 2.0, "a": 1}]}, schema)
    for other in (True, {"a": [1]}, 0, "1"):
        assert "should be one of" in wrong({"one": other}, schema)


def test_of_many_faults_some_are_told() -> None:
    schema = {"properties": {"all": {"type": "array", "items": {"type": "string"}}}}
    assert wrong({"all": [*range(100_000)]}, schema).count("\n") < 30


def test_no_reference_leads_out_of_the_schema() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}}
    assert "The tool's schema cannot be followed" in wrong({"a": 1}, schema)


def test_references_inside_the_schema_are_followed() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/number"}},
        "$defs": {"number": {"type": "integer"}},
    }
    assert wrong({"a": "x"}, schema) == 'a: Input should be a valid integer, got "x"'


def test_the_model_is_shown_an_object_with_properties_and_no_dialect() -> None:
    shown = JsonParameters("tool", {"$schema": "x", "description": "nothing"}).schema
    assert shown == {"description": "nothing", "type": "object", "properties": {}}
    assert JsonParameters("tool", SCHEMA).default("depth") == 3
    assert JsonParameters("tool", SCHEMA).default("path") is None


def test_a_schema_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"invalid JSON Schema at properties\.a\.type"):
        JsonParameters("tool", {"type": "object", "properties": {"a": {"type": "strin"}}})
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"items": deep}
    with pytest.raises(ConfigError, match="The JSON Schema of tool 'tool' has too many levels"):
        JsonParameters("tool", {"properties": {"a": deep}})
    with pytest.raises(ConfigError, match="the properties of its schema must be an object"):
        JsonParameters("tool", {"type": "object", "properties": [1]})
