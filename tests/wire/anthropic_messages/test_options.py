"""Messages: tools, choices, thinking and cache marks."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.messages.parts import Reasoning, Text
from dragoman.messages.request import Request, ToolSpec
from tests.wire.anthropic_messages.bodies import (
    NAME,
    WITH_SEARCH,
    assistant,
    body_of,
    cache_marks,
    done,
    user,
)
from tests.wire.histories import (
    CLOCK,
    MODEL,
    WEATHER,
)


def asking(model: str = "claude-sonnet-4-5", **fields: Any) -> dict[str, Any]:
    return body_of(Request(model, (user("Hi"),), **fields))


def test_tools_and_options_take_their_places_and_extra_wins() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"maximum": {"type": "integer", "maximum": 9, "minLength": 1}},
        "required": ["maximum"],
    }
    request = Request(
        MODEL,
        (user("Hi"),),
        system="Be brief.",
        tools=(WEATHER, CLOCK),
        tool_choice="clock",
        options={
            "temperature": 1.5,
            "max_tokens": 10,
            "top_p": 0.9,
            "stop": ["END", "\n"],
            "parallel_tool_calls": False,
            "response_schema": {**schema},
            "unheard_of": 1,
        },
        extra={"max_tokens": 20, "metadata": {"user_id": "u"}},
    )
    mark = {"cache_control": {"type": "ephemeral"}}
    assert body_of(request) == {
        "model": MODEL,
        "stream": True,
        "max_tokens": 20,
        "system": [{"type": "text", "text": "Be brief.", **mark}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", **mark}]}],
        "tools": [
            {
                "name": "get_weather",
                "description": WEATHER.description,
                "input_schema": WEATHER.parameters,
            },
            {"name": "clock", "description": CLOCK.description, "input_schema": CLOCK.parameters, **mark},
        ],
        "tool_choice": {"type": "tool", "name": "clock", "disable_parallel_tool_use": True},
        "temperature": 1,
        "stop_sequences": ["END"],
        "output_config": {
            "format": {
                "type": "json_schema",
                "schema": {
                    "type": "object",
                    "properties": {"maximum": {"type": "integer"}},
                    "required": ["maximum"],
                    "additionalProperties": False,
                },
            }
        },
        "metadata": {"user_id": "u"},
    }


def test_a_providers_own_tools_come_beside_ours() -> None:
    body = asking(tools=(CLOCK,), extra=WITH_SEARCH)
    assert [tool["name"] for tool in body["tools"]] == ["clock", "web_search"]


@pytest.mark.parametrize(
    ("choice", "sent_as"),
    [("auto", {"type": "auto"}), ("none", {"type": "none"}), ("required", {"type": "any"}), (None, None)],
)
def test_a_tool_choice_is_said_in_their_words(choice: str | None, sent_as: object) -> None:
    assert asking(tools=(CLOCK,), tool_choice=choice).get("tool_choice") == sent_as
    assert "tool_choice" not in asking(tool_choice=choice)


def test_quirks_leave_out_what_a_server_refuses() -> None:
    request = Request(MODEL, (user("Hi"),), tools=(CLOCK,), tool_choice="required")
    request.options["parallel_tool_calls"] = False
    body = body_of(request, no_forced_choice=True, no_parallel_flag=True)
    assert body["tool_choice"] == {"type": "auto"}


def test_a_limit_is_always_named() -> None:
    assert asking("claude-3-haiku-20240307")["max_tokens"] == 4_096
    assert asking("anthropic/claude-sonnet-4.5")["max_tokens"] == 32_000
    assert asking("kimi-k2")["max_tokens"] == 8_192


def test_thinking_is_asked_for_as_each_generation_knows_it() -> None:
    high = {"reasoning_effort": "high"}
    assert asking("claude-sonnet-4-5", options=high)["thinking"] == {
        "type": "enabled",
        "budget_tokens": 20_000,
    }
    newer = asking("claude-opus-4-7", options=high | {"temperature": 0.3})
    assert newer["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert newer["output_config"] == {"effort": "high"}
    assert "temperature" not in newer
    assert "thinking" not in asking("claude-3-5-haiku-latest", options=high)
    assert "thinking" not in asking(options={"reasoning_effort": "none"})
    assert asking(options={"reasoning_budget": 2_000})["thinking"]["budget_tokens"] == 2_000
    assert asking(options=high | {"max_tokens": 5_000})["thinking"]["budget_tokens"] == 3_976


def test_a_forced_choice_goes_before_thinking() -> None:
    body = asking(tools=(CLOCK,), tool_choice="required", options={"reasoning_effort": "high"})
    assert body["tool_choice"] == {"type": "any"}
    assert "thinking" not in body


def test_a_model_does_not_think_over_results_of_calls_it_made_without_thinking() -> None:
    """R5: a budget is refused there. In the next turn it thinks again."""
    options: dict[str, Any] = {"reasoning_effort": "high"}
    loop = (user("Weather?"), assistant(done("a")))
    assert "thinking" not in body_of(Request(MODEL, loop, options=options))
    thought = (user("Weather?"), assistant(Reasoning("hm", "sig", NAME, MODEL), done("a")))
    assert "thinking" in body_of(Request(MODEL, thought, options=options))
    over = (*loop, assistant(Text("21 °C.")), user("Thanks."))
    assert "thinking" in body_of(Request(MODEL, over, options=options))


def test_the_prefix_and_the_last_two_user_turns_are_marked_for_the_cache() -> None:
    """R2"""
    messages = tuple(one for n in range(4) for one in (user(f"q{n}"), assistant(Text(f"a{n}"))))
    body = body_of(Request(MODEL, (*messages, user("last")), system="Be brief.", tools=(WEATHER, CLOCK)))
    marked = [turn["content"][-1]["text"] for turn in body["messages"] if cache_marks(turn)]
    assert marked == ["q3", "last"]
    assert ["cache_control" in tool for tool in body["tools"]] == [False, True]
    assert cache_marks(body) == 4


def test_alternatives_at_the_top_of_a_schema_are_laid_over_each_other() -> None:
    either = ToolSpec(
        "either",
        "One or the other.",
        {
            "anyOf": [
                {"$ref": "#/$defs/A"},
                {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]},
            ],
            "$defs": {"A": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}},
        },
    )
    schema = asking(tools=(either,))["tools"][0]["input_schema"]
    assert schema["type"] == "object"
    assert schema["properties"] == {"a": {"type": "string"}, "b": {"type": "integer"}}
    assert schema["required"] == []
    assert "anyOf" not in schema
