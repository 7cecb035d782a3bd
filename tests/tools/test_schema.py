"""Check the schema that a signature produces for the model (C6), and construction errors that name their
place."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from dragoman import ConfigError, ToolContext, tool
from dragoman.tools.schema import descriptions, plain_schema, summary
from tests.tools.bench import text_of


class Place(BaseModel):
    """Somewhere."""

    city: str
    country: str = "AT"


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


def properties_of(function: Callable[..., Any]) -> dict[str, Any]:
    found = tool(function).parameters.schema["properties"]
    assert isinstance(found, dict)
    return found


# ── types ─────────────────────────────────────────────────────────────────────────────────────────


def test_plain_types_make_a_plain_schema() -> None:
    """The schema allows no other properties (C6)."""

    def search(query: str, limit: int = 10, exact: bool = False) -> str:
        """Search."""
        return query

    assert tool(search).parameters.schema == {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "default": 10},
            "exact": {"type": "boolean", "default": False},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def test_titles_are_left_out_and_properties_called_title_are_not() -> None:
    """C6"""
    texts = {"type": "array", "title": "Texts", "items": {"type": "string", "title": "Text"}}
    plain = plain_schema({"properties": {"title": texts, "properties": {"title": "Others"}}})
    assert plain == {
        "properties": {"title": {"type": "array", "items": {"type": "string"}}, "properties": {}}
    }


def test_a_tool_that_takes_nothing_still_has_properties() -> None:
    """C6: some providers refuse an object schema without them."""
    assert tool(name="now", description="The time.")(lambda: "noon").parameters.schema == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


async def test_nested_models_are_described_and_arrive_as_objects() -> None:
    """C6"""

    @tool
    def weather(place: Place, days: list[date], unit: Unit = Unit.CELSIUS) -> str:
        """The weather."""
        return f"{place.city}/{place.country} {days[0].year} {unit.name}"

    schema = weather.parameters.schema
    assert schema["$defs"]["Place"]["properties"]["city"] == {"type": "string"}  # type: ignore[index,call-overload]
    assert (
        await text_of(weather, place={"city": "Graz"}, days=["2024-02-29"], unit="f")
        == "Graz/AT 2024 FAHRENHEIT"
    )


async def test_types_that_stand_beside_the_tool_in_a_function_are_found() -> None:
    """The annotations of this module are strings, and `Point` is defined only in here (C6)."""

    class Point(BaseModel):
        x: int

    @tool
    def move(to: Point, how: Literal["walk", "run"] = "walk") -> str:
        """Move."""
        return f"{how} to {to.x}"

    assert await text_of(move, to={"x": 3}) == "walk to 3"


def test_what_a_tool_returns_need_not_be_known() -> None:
    """A return type imported only for type checkers does not matter (C6)."""

    def look() -> OnlyForTypeCheckers:  # type: ignore[name-defined]  # noqa: F821
        """Look."""

    assert tool(look).name == "look"


def test_pydantics_titles_are_left_out_and_a_tools_own_are_not() -> None:
    """This also holds if a parameter, or a value in a default, has the name of a schema keyword (C6)."""

    def book(title: str, properties: Place, options: dict[str, str] = {"title": "none"}) -> str:  # noqa: B006
        """Write a book."""
        return title

    found = properties_of(book)
    assert found["title"] == {"type": "string"}
    assert found["options"]["default"] == {"title": "none"}
    assert "title" not in found["properties"]


async def test_a_parameter_may_be_named_like_something_pydantic_has() -> None:
    """C6"""

    @tool
    def post(json: dict[str, int], schema: str, model_config: str, _private: int = 1) -> str:
        """Post.

        Args:
            json: the body
        """
        return f"{json} {schema} {model_config} {_private}"

    assert post.parameters.names == ["json", "schema", "model_config", "_private"]
    assert post.parameters.schema["properties"]["json"]["description"] == "the body"  # type: ignore[index,call-overload]
    assert await text_of(post, json={"a": 1}, schema="s", model_config="m", _private=2) == "{'a': 1} s m 2"


async def test_an_alias_lets_a_parameter_be_called_what_python_forbids() -> None:
    """C6"""

    @tool
    def mail(from_: Annotated[str, Field(alias="from")]) -> str:
        """Send a mail."""
        return from_

    assert mail.parameters.names == ["from"]
    assert await text_of(mail, **{"from": "ada"}) == "ada"


# ── descriptions ──────────────────────────────────────────────────────────────────────────────────


def test_descriptions_come_from_the_signature_and_from_the_docstring() -> None:
    """C6: where both say something, the signature is nearer."""

    def find(
        name: Annotated[str, Field(min_length=1, description="said in the signature")],
        place: Annotated[str, Field(max_length=9)] = "here",
        times: int = Field(1, ge=1),
    ) -> str:
        """Find it.

        Args:
            name: said in the docstring
            place: where to look,
                and where not
            times (int): how often
        """
        return name

    found = properties_of(find)
    assert found["name"] == {"type": "string", "minLength": 1, "description": "said in the signature"}
    assert found["place"]["description"] == "where to look, and where not"
    assert found["place"]["maxLength"] == 9
    assert found["times"] == {"type": "integer", "minimum": 1, "default": 1, "description": "how often"}
    assert tool(find).description == "Find it."


@pytest.mark.parametrize(
    "docstring",
    [
        "Do.\n\nArgs:\n    a: one\n    b (str): two\n        lines\n\nReturns:\n    c: nothing",
        "Do.\n\nParameters:\n\n    a: one\n    b: two\n      lines\n",
        "Do.\n\n:param a: one\n:param str b: two\n    lines\n:returns: nothing",
        "Do.\n\n:param int a: one\n:param b: two lines\n\nMore.",
    ],
)
def test_two_ways_to_write_a_parameter_list_are_read(docstring: str) -> None:
    """C6"""
    assert descriptions(docstring) == {"a": "one", "b": "two lines"}
    assert summary(docstring) == "Do."


def test_a_docstring_without_a_list_is_all_description() -> None:
    text = "Ask at: the door.\n\nArgs are not listed here."
    assert (summary(text), descriptions(text)) == (text, {})


# ── what cannot be described ──────────────────────────────────────────────────────────────────────


class Odd:
    """Nothing that pydantic knows."""


def untyped(a: int, b) -> str:  # type: ignore[no-untyped-def]
    """No type."""
    return str(a)


def variadic(a: int, *more: int) -> str:
    """Any number."""
    return str(a)


def keywords(a: int, **more: int) -> str:
    """Any name."""
    return str(a)


def positional(a: int, /) -> str:
    """No name."""
    return str(a)


def odd(a: int, b: Odd) -> str:
    """No schema."""
    return str(a)


def callback(a: int, b: Callable[[], int]) -> str:
    """A function is not valid JSON."""
    return str(a)


def unknown(a: int, b: list[Nowhere]) -> str:  # type: ignore[name-defined]  # noqa: F821
    """No such type."""
    return str(a)


@pytest.mark.parametrize(
    ("function", "parameter"),
    [
        (untyped, "'b' has no type"),
        (variadic, "more: .*ordinary"),
        (keywords, "more: .*ordinary"),
        (positional, "a: .*ordinary"),
        (odd, "cannot describe parameter 'b'"),
        (callback, "cannot describe parameter 'b'"),
        (unknown, "parameter 'b' is unknown: name 'Nowhere'"),
    ],
)
def test_a_signature_that_cannot_be_offered_is_refused_by_name(
    function: Callable[..., str], parameter: str
) -> None:
    """C6"""
    with pytest.raises(ConfigError, match=rf"^Tool '{function.__name__}': .*{parameter}"):
        tool(function)


def test_a_model_that_cannot_be_offered_is_refused_by_field() -> None:
    """C6"""

    class Both(BaseModel):
        a: int
        b: Callable[[], int]

        def run(self, context: ToolContext) -> str:
            return context.call

    with pytest.raises(ConfigError, match="Tool 'both': pydantic cannot describe parameter 'b'"):
        tool(Both)
