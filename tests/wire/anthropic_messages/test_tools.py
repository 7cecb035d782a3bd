"""Messages: strict tool schemas, and examples for the model."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.messages.request import Request, ToolSpec
from dragoman.wire.schemas.fields import fits, inlined
from tests.wire.anthropic_messages.bodies import body_of, unmarked, user
from tests.wire.gemini.test_schema import TREE, schemas
from tests.wire.histories import CLOCK, WEATHER

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def declared(*tools: ToolSpec, model: str = "claude-sonnet-4-5", **quirks: Any) -> list[dict[str, Any]]:
    body = body_of(Request(model, (user("Hi"),), tools=tools), **quirks)
    return [unmarked(tool) for tool in body["tools"]]


def taking(schema: dict[str, Any], *, due: bool = True) -> ToolSpec:
    required: dict[str, Any] = {"required": ["it"]} if due else {}
    return ToolSpec("t", "A tool.", {"type": "object", "properties": {"it": schema}, **required})


# ── strict ────────────────────────────────────────────────────────────────────────────────────────


def test_a_model_is_held_to_the_schemas_of_its_tools() -> None:
    """Strict mode is on for Anthropic's newer models, at servers that accept it (R9)."""
    assert declared(WEATHER) == [
        {
            "name": "get_weather",
            "description": WEATHER.description,
            "input_schema": {**CITY, "additionalProperties": False},
            "strict": True,
        }
    ]
    loose = {"name": "get_weather", "description": WEATHER.description, "input_schema": WEATHER.parameters}
    for model in ("claude-opus-4-1", "claude-3-7-sonnet-latest", "kimi-k2"):
        assert declared(WEATHER, model=model) == [loose]
    assert declared(WEATHER, no_strict=True) == [loose]


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"type": "string", "title": "T", "format": "uuid"}, {"type": "string", "format": "uuid"}),
        (
            {"type": "integer", "minimum": 1, "description": "How many."},
            {"type": "integer", "description": "How many. (minimum: 1)"},
        ),
        ({"type": ["string", "null"], "default": None}, {"type": ["string", "null"]}),
        ({"enum": ["a", 1, None]}, {"enum": ["a", 1, None]}),
        ({"const": "a"}, {"enum": ["a"]}),
        (
            {"oneOf": [{"type": "integer"}, {"type": "null"}]},
            {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        ),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 2},
            {"type": "array", "items": {"type": "string"}, "description": "(minItems: 2)"},
        ),
        ({"allOf": [{"type": "string"}], "description": "d"}, {"type": "string", "description": "d"}),
        (
            {"type": ["object", "null"], "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {"a": {"type": "string"}},
                        "required": ["a"],
                        "additionalProperties": False,
                    },
                    {"type": "null"},
                ]
            },
        ),
    ],
)
def test_a_schema_is_put_in_the_words_of_strict_ones(schema: dict[str, Any], strict: dict[str, Any]) -> None:
    (tool,) = declared(taking(schema))
    assert tool["strict"] is True
    assert tool["input_schema"]["properties"] == {"it": strict}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "array"},
        {"type": "array", "prefixItems": [{"type": "string"}]},
        {"enum": [["a"]]},
        {"type": "string", "not": {"const": "a"}},
        {"allOf": [{"type": "string"}, {"minLength": 1}]},
        TREE,
    ],
)
def test_one_that_would_mean_something_else_goes_out_as_it_is(schema: dict[str, Any]) -> None:
    tool = taking(schema)
    assert declared(tool)[0] == {
        "name": "t",
        "description": "A tool.",
        "input_schema": tool.parameters,
    }


def test_no_more_are_strict_than_a_request_may_hold() -> None:
    """The API builds one grammar from all strict schemas (R9)."""
    assert sum("strict" in tool for tool in declared(*[WEATHER] * 30)) == 20
    maybe = taking({"type": "string"}, due=False)
    assert sum("strict" in tool for tool in declared(*[maybe] * 9, *[maybe] * 9)) == 18
    five: dict[str, Any] = {f"p{n}": {"type": "string"} for n in range(5)}
    loose = ToolSpec("five", "", {"type": "object", "properties": five})
    assert ["strict" in tool for tool in declared(*[loose] * 5, WEATHER)] == [True] * 4 + [False, True]
    union = taking({"type": ["string", "null"]})
    assert sum("strict" in tool for tool in declared(*[union] * 18)) == 16


STRICT_WORDS = {
    *("type", "description", "format", "enum", "anyOf", "items", "minItems", "properties", "required"),
    "additionalProperties",
}


def assert_strict(schema: Any) -> None:
    """Check the documented rules of strict schemas."""
    assert schema.keys() <= STRICT_WORDS
    assert schema.keys() & {"type", "enum", "anyOf"}
    assert all(not isinstance(value, dict | list) for value in schema.get("enum", ()))
    assert schema.get("minItems", 0) in (0, 1)
    if schema.get("type") == "object":
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) <= schema["properties"].keys()
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    for one in [*inner, schema["items"]] if "items" in schema else inner:
        assert_strict(one)


@given(schemas())
def test_any_schema_is_strict_in_their_words_or_goes_out_as_it_is(schema: Any) -> None:
    """R9"""
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {"it": schema},
        "$defs": {"P": {"type": "object", "properties": {"again": {"$ref": "#/$defs/P"}}}},
    }
    (tool,) = declared(ToolSpec("t", "A tool.", parameters))
    if "strict" in tool:
        assert_strict(tool["input_schema"])
    else:
        assert tool["input_schema"] == parameters


# ── examples ──────────────────────────────────────────────────────────────────────────────────────


def shown(*examples: Any, model: str = "claude-sonnet-4-5", **quirks: Any) -> dict[str, Any]:
    tool = ToolSpec(WEATHER.name, "The weather.", WEATHER.parameters, examples)
    return declared(tool, model=model, **quirks)[0]


def test_examples_have_a_place_of_their_own() -> None:
    """R9: where the server knows it."""
    tool = shown({"city": "Rome"})
    assert (tool["description"], tool["input_examples"]) == ("The weather.", [{"city": "Rome"}])
    for older in (shown({"city": "Rome"}, model="kimi-k2"), shown({"city": "Rome"}, no_examples=True)):
        assert "input_examples" not in older
        assert older["description"] == 'The weather.\n\nExamples of arguments:\n{"city":"Rome"}'


def test_an_example_that_does_not_fit_would_spoil_the_request_and_stands_in_the_description() -> None:
    tool = shown({"city": "Rome"}, {"town": "Rome"}, {"city": 3})
    assert tool["input_examples"] == [{"city": "Rome"}]
    assert tool["description"].endswith('Examples of arguments:\n{"town":"Rome"}\n{"city":3}')


def test_an_example_has_to_fit_the_schema_that_goes_out() -> None:
    """A strict schema is closed, so an example with an extra field fits only the schema that is not strict
    (R9)."""
    more = {"city": "Rome", "days": 3}
    assert "input_examples" not in shown(more)
    assert shown(more, no_strict=True)["input_examples"] == [more]


VALUES = st.recursive(
    st.sampled_from([None, True, 0, 1, 2.5, "", "a", "x1"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(["a", "b", "type"]), inner, max_size=2)
    ),
    max_leaves=5,
)


@given(schemas(), VALUES)
def test_what_fits_by_our_check_fits_by_the_letter(schema: Any, value: Any) -> None:
    """R9: it may be too careful, and never too kind."""
    if isinstance(schema, dict) and "$ref" not in str(schema) and fits(value, inlined(schema)):
        jsonschema.Draft202012Validator(schema).validate(value)


def test_a_tool_without_parameters_is_strict_too() -> None:
    assert declared(CLOCK)[0]["input_schema"] == {
        **CLOCK.parameters,
        "required": [],
        "additionalProperties": False,
    }
