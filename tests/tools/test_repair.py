"""C5: repairs that lose nothing and leave no choice, and words a model can act on where there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, JsonValue

from dragoman import ToolFailed, tool
from dragoman.messages.message import CallState
from dragoman.tools.repair import incomplete_arguments, repair_arguments, repair_name, unknown_tool
from dragoman.wire.scripted import calls, calls_with, says
from tests.runtimes import calls_of, play

# ── names ─────────────────────────────────────────────────────────────────────────────────────────

NAMES = ["add", "read_file", "web-search", "files_add"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("add", "add"),
        ("Add", "add"),
        ("ADD", "add"),
        ("readFile", "read_file"),
        ("read-file", "read_file"),
        ("Read File", "read_file"),
        ("web_search", "web-search"),
        ("functions.add", "add"),
        ("default_api:add", "add"),
        ("tools/read_file", "read_file"),
        ("files.add", "files_add"),
        ("files:add", "files_add"),
        ("add<|channel|>commentary", "add"),
        ("functions.add:0", "add"),
        ("Read_File:12", "read_file"),
        ("add()", "add"),
        ("`add`", "add"),
        ('"web-search"', "web-search"),
    ],
)
def test_a_name_is_mended_if_only_its_spelling_differs(written: str, meant: str) -> None:
    """C5: a namespace that is part of another tool's name counts as that name first."""
    assert repair_name(written, NAMES) == meant


@pytest.mark.parametrize("written", ["ad", "addd", "adds", "read_flie", "file_read", "", "add.x", "."])
def test_a_name_that_is_only_near_is_not_mended(written: str) -> None:
    """C5: never fuzzy"""
    assert repair_name(written, NAMES) is None


def test_a_name_that_could_mean_two_tools_is_not_mended() -> None:
    """C5"""
    assert repair_name("READFILE", ["read_file", "ReadFile"]) is None
    assert repair_name("ReadFile", ["read_file", "ReadFile"]) == "ReadFile"


@given(st.sampled_from(NAMES), st.data())
def test_any_mix_of_case_and_separators_is_the_same_name(name: str, data: st.DataObject) -> None:
    """C5"""
    letters = [c for c in name if c not in "-_"]
    written = "".join(
        data.draw(st.sampled_from([c, c.upper()])) + data.draw(st.sampled_from(["", "-", "_", " "]))
        for c in letters
    )
    assert repair_name(written, NAMES) == name


# ── arguments ─────────────────────────────────────────────────────────────────────────────────────


class Spot(BaseModel):
    x: int
    label: str = ""


@tool
def place(  # noqa: PLR0917 - one parameter of each kind
    count: int = 0,
    text: str = "",
    ratio: float = 1.0,
    spot: Spot | None = None,
    tags: list[str] = [],  # noqa: B006
    extra: dict[str, Any] = {},  # noqa: B006
    either: str | int = "",
    kind: Literal["a", "b"] = "a",
) -> str:
    """Place something."""
    return text


def repaired(**arguments: JsonValue) -> dict[str, JsonValue]:
    return repair_arguments(arguments, place.parameters)[0]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"text": {"a": [1]}}, {"text": '{"a": [1]}'}),
        ({"text": ["ä"]}, {"text": '["ä"]'}),
        ({"spot": '{"x": 1}'}, {"spot": {"x": 1}}),
        ({"tags": '["a", "b"]'}, {"tags": ["a", "b"]}),
        ({"extra": '{"deep": [1]}'}, {"extra": {"deep": [1]}}),
        ({"spot": {"x": 1, "label": {"b": 2}}}, {"spot": {"x": 1, "label": '{"b": 2}'}}),
        ({"tags": [{"a": 1}, "b"]}, {"tags": ['{"a": 1}', "b"]}),
        ({"spot": '{"x": 1, "label": ["l"]}'}, {"spot": {"x": 1, "label": '["l"]'}}),
        ({"count": 5.0}, {"count": 5}),
        ({"count": 2.0**53 - 1}, {"count": 2**53 - 1}),
        ({"text": ["a"], "tags": "[]"}, {"text": '["a"]', "tags": []}),
        ({"arguments": {"count": 1}}, {"count": 1}),
        ({"parameters": {"tags": '["a"]'}}, {"tags": ["a"]}),
        ({"input": '{"count": 1}'}, {"count": 1}),
        ({"kwargs": {}}, {}),
    ],
)
def test_arguments_are_mended_where_nothing_is_lost(
    written: dict[str, JsonValue], meant: dict[str, JsonValue]
) -> None:
    """C5: an object where a text was due, its text where an object was due, 5.0 for a whole number, one level
    too many."""
    assert repaired(**written) == meant


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ({"count": "5"}, 'count: Input should be a valid integer, got "5"'),
        ({"count": True}, "count: Input should be a valid integer, got true"),
        ({"count": 5.5}, "count: Input should be a valid integer, got 5.5"),
        ({"count": 2.0**53}, "count: Input should be a valid integer, got 90071992547409"),
        ({"count": None}, "count: Input should be a valid integer, got null"),
        ({"ratio": "1.5"}, 'ratio: Input should be a valid number, got "1.5"'),
        ({"text": 5}, "text: Input should be a valid string, got 5"),
        ({"spot": {"label": "l"}}, "spot.x: Field required"),
        ({"spot": "nowhere"}, "spot: "),
        ({"spot": "[1]"}, 'spot: Input should be an object, got "[1]"'),
        ({"tags": "a, b"}, 'tags: Input should be a valid array, got "a, b"'),
        ({"tags": ["a", 5]}, "tags.1: Input should be a valid string, got 5"),
        ({"kind": "c"}, "kind: Input should be 'a' or 'b', got \"c\""),
        ({"either": {"a": 1}}, "either.str: Input should be a valid string"),
        ({"extra": "[" * 10_000}, "extra: Input should be "),
        ({"extra": '{"a": NaN}'}, "extra: Input should be "),
        ({"colour": "red"}, "colour: Extra inputs are not permitted"),
        ({"arguments": {"count": "5"}}, "arguments: Extra inputs are not permitted"),
        ({"arguments": {"count": 1}, "text": "a"}, "arguments: Extra inputs are not permitted"),
        ({"arguments": {"arguments": {"count": 1}}}, "arguments: Extra inputs are not permitted"),
        ({"input": "one"}, "input: Extra inputs are not permitted"),
        ({"call": {"count": 1}}, "call: Extra inputs are not permitted"),
    ],
)
def test_a_value_of_another_kind_is_explained_and_never_guessed(
    written: dict[str, JsonValue], told: str
) -> None:
    """The check is strict, and the model receives the place, the expected type and its own value (C5)."""
    with pytest.raises(ToolFailed) as refused:
        repaired(**written)
    assert told in str(refused.value)
    assert str(refused.value).startswith("The call did not run")


def test_an_object_under_a_name_that_the_tool_has_stays_where_it_is() -> None:
    """C5"""

    @tool
    def run(input: dict[str, Any], count: int = 0) -> str:
        """Run it."""
        return ""

    arguments: dict[str, JsonValue] = {"input": {"count": 1}}
    assert repair_arguments(arguments, run.parameters)[0] == arguments
    with pytest.raises(ToolFailed, match="input: Input should be an object"):
        repair_arguments({"input": 1}, run.parameters)


def test_a_parameter_that_does_not_exist_is_answered_with_those_that_do() -> None:
    """C5"""
    with pytest.raises(ToolFailed, match="The parameters are: count, text, ratio, spot"):
        repaired(colour="red")


def test_a_long_list_is_mended_in_one_pass_and_its_faults_are_counted() -> None:
    """C5: one pass for each item would hold up everybody: minutes for a list of ten thousand numbers."""
    many: list[JsonValue] = [{"a": 1}] * 5000
    assert repaired(tags=many)["tags"] == ['{"a": 1}'] * 5000
    with pytest.raises(ToolFailed, match=r"tags\.19: .*\n… and 4980 more"):
        repaired(tags=[*range(5000)])


def test_long_values_are_told_in_short() -> None:
    """C5"""
    with pytest.raises(ToolFailed) as refused:
        repaired(count="9" * 100_000)
    assert len(str(refused.value)) < 500


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["count", "text", "spot", "tags", "extra", "either"]), json_values))
def test_whatever_a_model_sends_it_fits_or_is_refused(arguments: dict[str, JsonValue]) -> None:
    """Valid arguments are not changed (C4, C5)."""
    try:
        meant, model = repair_arguments(arguments, place.parameters)
    except ToolFailed:
        return
    assert place.parameters.validate(meant) == model
    assert meant.keys() == arguments.keys()


# ── what a model reads ────────────────────────────────────────────────────────────────────────────


def test_an_unknown_tool_is_answered_with_the_names_there_are() -> None:
    """C5"""
    assert unknown_tool("ad", ["add", "sub"]) == "Unknown tool 'ad'. The tools are: add, sub."
    assert unknown_tool("ad", []) == "Unknown tool 'ad'. There are no tools now."


def test_arguments_that_are_cut_off_are_shown_to_the_model() -> None:
    """C4"""
    assert incomplete_arguments('{"a": 1').endswith('They were: {"a": 1')
    assert len(incomplete_arguments("x" * 10_000)) < 700


async def test_in_a_turn_bad_calls_are_results_and_mended_ones_run(tmp_path: Path) -> None:
    """C5, C7"""
    script = [
        calls("functions.Place", tags='["a"]', text="x")
        + calls("plaec")
        + calls("place", count="5")
        + calls_with("place", '{"count": '),
        says("I see"),
    ]
    result = await play(tmp_path, script, tools=[place])
    first, unknown, misfit, torn = calls_of(result.messages)
    assert (first.tool, first.arguments, first.state) == (
        "place",
        {"tags": ["a"], "text": "x"},
        CallState.COMPLETED,
    )
    told = [call.result.text for call in (unknown, misfit, torn) if call.result is not None]
    assert [call.state for call in (unknown, misfit, torn)] == [CallState.FAILED] * 3
    assert "The tools are: place" in told[0]
    assert "count: Input should be a valid integer" in told[1]
    assert "not one complete JSON object" in told[2]
    assert result.text == "I see"
