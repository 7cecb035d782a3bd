"""Check every request field by field against OpenAI's own types, for any history.

The library is not a dependency. Without it, these tests have nothing to compare with.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ConfigDict, JsonValue, TypeAdapter, ValidationError
from typing_extensions import is_typeddict  # theirs are of that kind

from dragoman.messages.request import Request
from dragoman.wire import openai_chat, openai_responses
from dragoman.wire.endpoint import Quirks
from dragoman.wire.wire import Wire
from tests.wire.histories import ATTACHMENTS, requests

pytestmark = pytest.mark.slow

if find_spec("openai") is None:
    pytest.skip("OpenAI's library is not installed", allow_module_level=True)

OPTIONS: dict[str, JsonValue] = {
    "temperature": 0.5,
    "max_tokens": 100,
    "reasoning_effort": "low",
    "verbosity": "low",
    "service_tier": "flex",
    "prompt_cache_key": "ada",
    "cache_lifetime": "24h",
    "safety_identifier": "8f3c",
    "metadata": {"team": "red"},
    "logprobs": 2,
    "parallel_tool_calls": False,
    "response_schema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
}
CUSTOM: JsonValue = {"type": "custom", "name": "clock"}
CUSTOM_CHAT: JsonValue = {"type": "custom", "custom": {"name": "patch"}}
# Fields for compatible servers. OpenAI never receives them, because it returns no such reasoning.
FOREIGN = frozenset({"reasoning_content", "reasoning", "reasoning_details", "extra_content"})


@cache
def adapters() -> dict[str, TypeAdapter[Any]]:
    """The types of whole bodies. A field they do not have is an error, at any depth."""
    chat = import_module("openai.types.chat.completion_create_params")
    responses = import_module("openai.types.responses.response_create_params")
    for name, module in [*sys.modules.items()]:
        if name.startswith("openai.types"):
            for made in vars(module).values():
                if is_typeddict(made):
                    made.__pydantic_config__ = ConfigDict(extra="forbid")
    return {
        "openai_chat": TypeAdapter(chat.CompletionCreateParamsStreaming),
        "openai_responses": TypeAdapter(responses.ResponseCreateParamsStreaming),
    }


def walk(value: Any) -> None:
    """Iterate over everything: the types check an iterable only when it is consumed."""
    if isinstance(value, dict):
        for one in value.values():
            walk(one)
    elif not isinstance(value, str | int | float | None):
        for one in value:
            walk(one)


def without_foreign(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        dropped = FOREIGN if {"role", "function"} & value.keys() else ()
        return {name: without_foreign(one) for name, one in value.items() if name not in dropped}
    return [*map(without_foreign, value)] if isinstance(value, list) else value


WIRES: list[tuple[Wire, list[JsonValue], dict[str, JsonValue]]] = [
    (openai_chat.WIRE(Quirks(strict_tools=True)), [CUSTOM_CHAT], {"seed": 7, "stop": ["HALT"]}),
    (
        openai_responses.WIRE(Quirks(strict_tools=True)),
        ["web_search", CUSTOM],
        {"truncation": "auto", "reasoning_summary": "auto"},
    ),
]


@pytest.mark.parametrize(("wire", "hosted", "more"), WIRES, ids=lambda one: getattr(one, "name", ""))
@given(request=requests(), plain=st.booleans())
def test_any_history_fits_the_official_types(
    wire: Wire, hosted: list[JsonValue], more: dict[str, JsonValue], request: Request, plain: bool
) -> None:
    """R5, R9"""
    if not plain:
        request = replace(request, options={**OPTIONS, **more, "hosted_tools": hosted})
    body = without_foreign(wire.encode(request, ATTACHMENTS))
    walk(adapters()[wire.name].validate_python(body))


def test_a_field_that_is_not_theirs_is_found() -> None:
    """R9: the check can fail."""
    for name, messages in (("openai_chat", "messages"), ("openai_responses", "input")):
        body = {"model": "m", "stream": True, messages: [{"role": "user", "content": "Hi", "mood": "good"}]}
        with pytest.raises(ValidationError):
            walk(adapters()[name].validate_python(body))
