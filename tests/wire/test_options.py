"""Options: layers, types, and handling of options that a wire does not know (R1, R9)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from pydantic import JsonValue

from dragoman.errors import BadRequest
from dragoman.messages.message import CallState, Text, ToolCall, ToolResult
from dragoman.messages.request import Request, RequestMessage, ToolSpec
from dragoman.providers.wires import WIRES
from dragoman.wire.endpoint import Quirks
from dragoman.wire.options import (
    COMMON,
    Extra,
    check_options,
    merge_options,
    own_fields,
    with_extra,
    with_tool_choice,
    without_removed,
)

PING = ToolSpec("ping", "Ping.", {"type": "object", "properties": {"a": {"type": "string"}}})
ASKED = RequestMessage("user", (Text("Hello?"),))


def check(options: dict[str, JsonValue], words: Collection[str] = COMMON, extra: Extra = ()) -> None:
    check_options(options, model="acme/m", words=words, extra=extra)


# ── layers ────────────────────────────────────────────────────────────────────────────────────────


def test_r1_the_later_layer_wins_and_objects_are_merged() -> None:
    below: dict[str, JsonValue] = {"temperature": 1, "reasoning": {"effort": "low", "summary": "auto"}}
    above: dict[str, JsonValue] = {"temperature": 0, "reasoning": {"effort": "high"}, "seed": 7}
    assert merge_options(below, above) == {
        "temperature": 0,
        "reasoning": {"effort": "high", "summary": "auto"},
        "seed": 7,
    }
    assert below["reasoning"] == {"effort": "low", "summary": "auto"}  # merging leaves the layers unchanged


def test_r1_none_removes_whatever_is_below_it_and_can_be_set_again_above() -> None:
    layers: list[dict[str, JsonValue]] = [
        {"a": 1, "b": {"c": 1, "d": 2}, "e": 1},
        {"a": None, "b": {"c": None}, "e": None},
        {"e": 2},
    ]
    assert without_removed(merge_options(*layers)) == {"b": {"d": 2}, "e": 2}
    # a caller can merge two layers before it knows the third
    assert without_removed(merge_options(layers[0], merge_options(*layers[1:]))) == {"b": {"d": 2}, "e": 2}


def test_r1_a_schema_is_one_value_in_which_null_has_a_meaning() -> None:
    schema: dict[str, JsonValue] = {"type": "object", "properties": {"a": {"default": None}}}
    merged = merge_options({"response_schema": {"type": "string"}}, {"response_schema": schema})
    assert without_removed(merged) == {"response_schema": schema}


# ── types ─────────────────────────────────────────────────────────────────────────────────────────

GOOD: list[dict[str, JsonValue]] = [
    {},
    {"temperature": 0, "top_p": 1, "top_k": 40, "seed": -1, "max_tokens": 1},
    {"stop": "END", "presence_penalty": -0.5, "frequency_penalty": 2},
    {"stop": ["a", "b"], "parallel_tool_calls": False, "tool_choice": "ping"},
    {"reasoning_effort": "high", "reasoning_budget": 0, "response_schema": {"type": "object"}},
    dict.fromkeys(COMMON),
]


@pytest.mark.parametrize("options", GOOD)
def test_r9_what_the_words_mean_is_taken(options: dict[str, JsonValue]) -> None:
    check(options)


BAD: dict[str, Any] = {
    "the option temperature: input should be a valid number, not '0.5'": {"temperature": "0.5"},
    "the option temperature: input should be a finite number, not nan": {"temperature": float("nan")},
    "the option temperature: input should be greater than or equal to 0, not -1": {"temperature": -1},
    "the option top_p: input should be less than or equal to 1, not 1.5": {"top_p": 1.5},
    "the option max_tokens: input should be a valid integer, not 1.5": {"max_tokens": 1.5},
    "the option max_tokens: input should be greater than 0, not 0": {"max_tokens": 0},
    "the option seed: input should be a valid integer, not True": {"seed": True},
    "the option stop[1]: input should be a valid string, not 3": {"stop": ["a", 3]},
    "the option parallel_tool_calls: input should be a valid boolean, not 'no'": {
        "parallel_tool_calls": "no"
    },
    "the option response_schema: input should be a valid dictionary, not 'x'": {"response_schema": "x"},
}


@pytest.mark.parametrize(("says", "options"), BAD.items(), ids=BAD)
def test_r9_a_wrong_type_is_refused_with_its_path(says: str, options: dict[str, JsonValue]) -> None:
    for extra in (True, False):
        with pytest.raises(BadRequest) as refused:
            check(options, extra=extra)
        assert str(refused.value) == says


# ── words ─────────────────────────────────────────────────────────────────────────────────────────

NEAREST = {
    "temprature": "temperature",
    "topP": "top_p",
    "effort": "reasoning_effort",
    "max_output_tokens": "max_tokens",
    "stopSequences": "stop",
    "response_format": "response_schema",
    "servicetier": "service_tier",
    "prompt_cache_retention": "cache_lifetime",
    "top_logprobs": "logprobs",
    "builtin_tools": "hosted_tools",
}


@pytest.mark.parametrize(("given", "meant"), NEAREST.items())
def test_r9_an_option_nobody_knows_is_refused_with_the_nearest_name(given: str, meant: str) -> None:
    with pytest.raises(BadRequest) as refused:
        check({given: 1}, extra=["service_tier"])
    assert str(refused.value) == f"acme/m has no option {given!r}. Did you mean {meant}?"


def test_r9_where_no_name_is_near_all_are_named() -> None:
    with pytest.raises(BadRequest, match=r"no option 'xyz'. It takes seed, temperature. .*`extra`"):
        check({"xyz": 1}, words={"temperature", "seed"})


def test_r9_a_common_word_that_the_wire_has_not_is_refused_too() -> None:
    with pytest.raises(BadRequest, match=r"acme/m has no option 'top_k'\. Did you mean top_p"):
        check({"top_k": 3}, words={"top_p"})
    check({"top_k": None}, words={"top_p"})  # it removes, and asks for nothing


def test_r9_what_the_provider_is_known_to_take_goes_into_the_body_as_it_is() -> None:
    options: dict[str, JsonValue] = {"top_p": 0.5, "top_k": 3, "min_p": "0.1", "old": None}
    for extra in (True, ["top_k", "min_p"]):
        check(options, words={"top_p"}, extra=extra)
        with pytest.raises(BadRequest, match="the option top_k"):  # a common word has one meaning everywhere
            check({"top_k": "3"}, words={"top_p"}, extra=extra)
    assert own_fields(options, {"top_p"}) == {"top_k": 3, "min_p": "0.1"}


def test_lists_and_groups_of_a_body_are_added_to() -> None:
    body = with_extra(
        {"tools": [1], "include": ["a"], "text": {"format": 1}, "model": "m"},
        {"tools": [2], "include": ["b"], "text": {"verbosity": "low"}, "model": "n"},
    )
    assert body == {
        "tools": [1, 2],
        "include": ["a", "b"],
        "text": {"format": 1, "verbosity": "low"},
        "model": "n",
    }


# ── every word a wire claims to have ──────────────────────────────────────────────────────────────

VALUES: dict[str, JsonValue] = {
    "temperature": 0.25,
    "top_p": 0.75,
    "top_k": 41,
    "seed": 4711,
    "stop": ["HALT"],
    "presence_penalty": 0.125,
    "frequency_penalty": 0.375,
    "max_tokens": 12345,
    "tool_choice": "required",
    "parallel_tool_calls": False,
    "reasoning_effort": "high",
    "reasoning_budget": 2048,
    "reasoning_summary": "auto",
    "response_schema": {"type": "object", "title": "Weather"},
    "hosted_tools": ["web_search", {"type": "mcp", "server_label": "docs"}],
    "logprobs": 3,
    "verbosity": "low",
    "service_tier": "flex",
    "prompt_cache_key": "ada",
    "cache_lifetime": "24h",
    "safety_identifier": "8f3c",
    "metadata": {"team": "red"},
    "truncation": "auto",
}
MODELS = {
    "anthropic_messages": "claude-sonnet-4-5",
    "gemini": "gemini-3-pro",
    "bedrock_converse": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
}
CASES = [(wire, option) for wire, made in WIRES.items() for option in sorted(made().options)]


def test_every_common_word_has_a_value_here_and_every_wire_has_only_common_words() -> None:
    assert VALUES.keys() == COMMON
    for wire in WIRES.values():
        assert wire().options <= COMMON


@pytest.mark.parametrize(("wire", "option"), CASES)
def test_r9_every_word_a_wire_has_changes_its_body(wire: str, option: str) -> None:
    """No option is accepted and then dropped (R9)."""
    model = MODELS.get(wire, "m")

    def body(**options: JsonValue) -> dict[str, JsonValue]:
        tools = () if option == "response_schema" else (PING,)
        request = Request(model, (ASKED,), tools=tools, tool_choice="auto", options=options)
        return WIRES[wire]().encode(with_tool_choice(request))

    assert body(**{option: VALUES[option]}) != body()


def test_r9_a_provider_may_have_its_own_name_for_a_seed() -> None:
    wire = WIRES["openai_chat"](quirks=Quirks(seed_field="random_seed"))
    assert wire.encode(Request("m", (ASKED,), options={"seed": 7}))["random_seed"] == 7


# ── tool_choice ───────────────────────────────────────────────────────────────────────────────────


def test_r1_a_tool_choice_holds_for_the_first_request_of_a_turn() -> None:
    """R1: forced again behind every result, a model could never answer."""
    options: dict[str, JsonValue] = {"tool_choice": "required", "seed": 7}
    call = ToolCall("call_1", "ping", state=CallState.COMPLETED, result=ToolResult("pong"))
    behind = RequestMessage("assistant", (call,))
    for messages, choice in (((ASKED,), "required"), ((ASKED, behind), "auto")):
        request = Request("m", messages, tools=(PING,), tool_choice="auto", options=options)
        chosen = with_tool_choice(request)
        assert (chosen.tool_choice, chosen.options) == (choice, {"seed": 7})
    assert options == {"tool_choice": "required", "seed": 7}


@pytest.mark.parametrize("wire", WIRES)
def test_r1_without_tools_there_is_no_tool_choice(wire: str) -> None:
    request = Request("m", (ASKED,), options={"tool_choice": "required", "parallel_tool_calls": False})
    body = WIRES[wire]().encode(with_tool_choice(request))
    assert body.keys().isdisjoint({"tool_choice", "toolConfig", "tools", "parallel_tool_calls"})
