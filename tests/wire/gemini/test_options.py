"""Gemini: tools, choices and thinking."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.errors import BadRequest
from dragoman.messages.request import OutputSpec, Request
from tests.wire.gemini.bodies import asking, body_of, user
from tests.wire.histories import (
    CLOCK,
    MODEL,
    WEATHER,
)


def test_tools_and_options_take_their_places_and_extra_wins() -> None:
    request = Request(
        MODEL,
        (user("Hi"),),
        system="Be brief.",
        tools=(WEATHER, CLOCK),
        tool_choice="clock",
        options={
            "temperature": 0.5,
            "max_tokens": 10,
            "top_p": 0.9,
            "stop": "END",
            "reasoning_effort": "low",
            "parallel_tool_calls": False,
            "response_schema": {"type": "object", "properties": {"a": {"type": ["integer", "null"]}}},
            "unheard_of": 1,
        },
        extra={"generationConfig": {"temperature": 1, "seed": 7}, "tools": [{"googleSearch": {}}]},
    )
    assert body_of(request) == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "get_weather",
                        "description": WEATHER.description,
                        "parametersJsonSchema": WEATHER.parameters,
                    },
                    {"name": "clock", "description": CLOCK.description},
                ]
            },
            {"googleSearch": {}},
        ],
        "toolConfig": {
            "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["clock"]},
            "includeServerSideToolInvocations": True,
        },
        "generationConfig": {
            "temperature": 1,
            "topP": 0.9,
            "maxOutputTokens": 10,
            "stopSequences": ["END"],
            "responseMimeType": "application/json",
            "responseJsonSchema": {"type": "object", "properties": {"a": {"type": ["integer", "null"]}}},
            "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "low"},
            "seed": 7,
        },
    }


@pytest.mark.parametrize(("choice", "mode"), [("auto", "AUTO"), ("none", "NONE"), ("required", "ANY")])
def test_a_tool_choice_is_said_in_their_words(choice: str, mode: str) -> None:
    assert asking(tools=(CLOCK,), tool_choice=choice)["toolConfig"]["functionCallingConfig"] == {"mode": mode}
    assert "toolConfig" not in asking(tool_choice=choice)


def test_quirks_leave_out_what_a_server_refuses() -> None:
    request = Request(MODEL, (user("Hi"),), tools=(CLOCK,), tool_choice="clock")
    calling = body_of(request, no_forced_choice=True)["toolConfig"]["functionCallingConfig"]
    assert calling == {"mode": "AUTO"}


@pytest.mark.parametrize(
    ("model", "options", "thinking"),
    [
        ("gemini-3-pro", {"reasoning_effort": "max"}, {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-3-pro", {"reasoning_effort": "none"}, {"includeThoughts": False, "thinkingLevel": "low"}),
        (
            "gemini-3-flash",
            {"reasoning_effort": "none"},
            {"includeThoughts": False, "thinkingLevel": "minimal"},
        ),
        ("gemini-3-pro", {"reasoning_budget": 99}, {"includeThoughts": True, "thinkingBudget": 99}),
        ("gemini-2.5-flash", {"reasoning_effort": "low"}, {"includeThoughts": True, "thinkingBudget": 2_048}),
        ("gemini-2.5-flash", {"reasoning_effort": "none"}, {"includeThoughts": False, "thinkingBudget": 0}),
        ("gemini-2.5-pro", {"reasoning_effort": "none"}, {"includeThoughts": False, "thinkingBudget": 128}),
        ("gemini-2.0-flash", {"reasoning_effort": "high"}, None),
        ("gemini-3-pro", {}, None),
    ],
)
def test_thinking_is_asked_for_as_each_generation_knows_it(model: str, options: Any, thinking: Any) -> None:
    assert asking(model, options=options).get("generationConfig", {}).get("thinkingConfig") == thinking


def test_older_models_get_no_schema_beside_tools_because_they_refuse_both_together() -> None:
    """The error names the option. A requested answer type becomes text in the prompt (R9)."""
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    options = {"response_schema": schema}
    word = "responseJsonSchema"
    with pytest.raises(BadRequest, match=r"The option response_schema: gemini-2\.5-flash"):
        asking("gemini-2.5-flash", tools=(CLOCK,), options=options)
    typed = asking("gemini-2.5-flash", tools=(CLOCK,), options=options, output=OutputSpec(schema))
    assert "generationConfig" not in typed
    assert word in asking("gemini-2.5-flash", options=options)["generationConfig"]
    assert word in asking("gemini-3-pro", tools=(CLOCK,), options=options)["generationConfig"]


@pytest.mark.parametrize(
    ("model", "quirks"), [("gemini-2.0-flash", {}), ("gemini-3-pro", {"no_json_schema": True})]
)
def test_who_reads_no_json_schema_gets_the_older_form(model: str, quirks: Any) -> None:
    options: dict[str, Any] = {"response_schema": WEATHER.parameters}
    older = {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}, "required": ["city"]}
    tools = body_of(Request(model, (user("Hi"),), tools=(WEATHER,)), **quirks)["tools"]
    assert tools[0]["functionDeclarations"][0]["parameters"] == older
    config = body_of(Request(model, (user("Hi"),), options=options), **quirks)["generationConfig"]
    assert config["responseSchema"] == older


# ── Google's own tools, and the rest ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("wanted", "theirs"),
    [
        ("google_search", {"googleSearch": {}}),
        ("web_search", {"googleSearch": {}}),
        ("codeExecution", {"codeExecution": {}}),
        (
            {"type": "file_search", "fileSearchStoreNames": ["f"]},
            {"fileSearch": {"fileSearchStoreNames": ["f"]}},
        ),
        (
            {"type": "mcp", "name": "wiki", "url": "https://mcp.example", "authorization_token": "t"},
            {
                "mcpServers": [
                    {
                        "name": "wiki",
                        "streamableHttpTransport": {
                            "url": "https://mcp.example",
                            "headers": {"Authorization": "Bearer t"},
                        },
                    }
                ]
            },
        ),
        ({"urlContext": {}}, {"urlContext": {}}),
    ],
)
def test_tools_of_the_providers_own_are_asked_for_by_their_names(wanted: Any, theirs: Any) -> None:
    assert asking(options={"hosted_tools": [wanted]}) == asking() | {"tools": [theirs]}


def test_our_tools_beside_theirs_are_announced_where_that_is_possible() -> None:
    """R9: newer models refuse both together without the word for it, and Vertex refuses the word."""
    options: dict[str, Any] = {"hosted_tools": ["google_search"]}
    both = Request("gemini-3-pro", (user("Hi"),), tools=(CLOCK,), options={**options})
    assert body_of(both)["toolConfig"] == {"includeServerSideToolInvocations": True}
    assert "toolConfig" not in body_of(both, no_tool_parts=True)
    assert "toolConfig" not in asking("gemini-2.5-pro", tools=(CLOCK,), options=options)


def test_tiers_and_chances_of_words_are_asked_for_in_their_words() -> None:
    assert asking(options={"service_tier": "flex"})["serviceTier"] == "flex"
    assert asking(options={"service_tier": "default"})["serviceTier"] == "standard"
    assert asking(options={"logprobs": True})["generationConfig"] == {"responseLogprobs": True}
    assert asking(options={"logprobs": 3})["generationConfig"] == {"responseLogprobs": True, "logprobs": 3}
    assert "generationConfig" not in asking(options={"logprobs": False})


def test_what_stands_in_a_cache_is_not_named_again() -> None:
    """The API refuses a request that names both a cache and its contents (R9)."""
    cached = asking(system="Be brief.", tools=(CLOCK,), tool_choice="auto", extra={"cachedContent": "c/1"})
    assert cached == {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "cachedContent": "c/1"}
