"""Check bodies of hard histories against the types of the providers' client libraries (R5).

The libraries are not dependencies. Without them, these tests have nothing to compare with.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from dragoman.messages.message import Citation, Part, ProviderItem, Reasoning, Text
from dragoman.messages.request import Request, RequestMessage, ToolSpec
from dragoman.providers.wires import WIRES
from tests.sweeps import examples
from tests.wire.anthropic_messages.bodies import FOUND, SEARCH
from tests.wire.gemini.test_schema import schemas
from tests.wire.histories import ATTACHMENTS, MODEL, requests
from tests.wire.sdk_types import problems

pytestmark = pytest.mark.slow

# ── what the histories of all wires lack ──────────────────────────────────────────────────────────

RESULT = {"type": "web_search_result", "title": "A", "url": "https://a.example", "encrypted_content": "E="}
PAGE: dict[str, Any] = {
    "type": "web_search_result_location",
    "cited_text": "rain",
    "encrypted_index": "Eo8B==",
    "title": "A",
    "url": "https://a.example",
}
CHARS: dict[str, Any] = {
    "type": "char_location",
    "cited_text": "rain",
    "document_index": 0,
    "document_title": None,
    "start_char_index": 0,
    "end_char_index": 4,
    "file_id": None,
}
ITEMS: dict[str, list[dict[str, Any]]] = {
    "anthropic_messages": [SEARCH, FOUND | {"content": [RESULT]}, {"type": "something_new", "x": 1}],
    "gemini": [
        {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "cw=="},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["rain"]}}},
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}, "thoughtSignature": "dA=="},
        {"webSearchQueries": ["rain"]},
    ],
}
CITED = (
    Citation("https://a.example", "A", "rain", 3, 7, {**PAGE}),
    Citation(None, None, "rain", 3, 7, {**CHARS}),
    Citation("https://b.example", "B", start=0, end=2, opaque={"type": "url_citation"}),
)
HOSTED: dict[str, list[Any]] = {
    "anthropic_messages": [
        *("web_search", "web_fetch", "code_execution"),
        {"type": "mcp", "name": "wiki", "url": "https://mcp.example"},
    ],
    "gemini": ["google_search", "code_execution", "url_context"],
}
OPTIONS: dict[str, SearchStrategy[Any]] = {
    "temperature": st.sampled_from([0, 0.5]),
    "top_p": st.just(0.5),
    "top_k": st.just(40),
    "stop": st.just(["END"]),
    "max_tokens": st.sampled_from([16, 64_000]),
    "reasoning_effort": st.sampled_from(["none", "high"]),
    "reasoning_budget": st.just(4096),
    "response_schema": st.just({"type": "object", "properties": {"a": {"type": "string"}}}),
}
OF_WIRE: dict[str, dict[str, SearchStrategy[Any]]] = {
    "anthropic_messages": {
        "service_tier": st.sampled_from(["auto", "standard"]),
        "cache_lifetime": st.sampled_from(["5m", "1h"]),
        "safety_identifier": st.just("u-1"),
        "parallel_tool_calls": st.booleans(),
    },
    "gemini": {
        "service_tier": st.sampled_from(["flex", "default"]),
        "logprobs": st.sampled_from([True, 2]),
        "seed": st.just(7),
        "presence_penalty": st.just(0.5),
    },
}
MODELS = {
    "anthropic_messages": ["claude-sonnet-4-5", "claude-opus-4-7", "claude-3-haiku-20240307"],
    "gemini": ["gemini-3-pro", "gemini-2.5-flash", "gemini-2.0-flash"],
}


def kind_of(item: dict[str, Any]) -> str:
    return str(item.get("type") or next(iter(item)))


@cache
def options(wire: str) -> SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {}, optional={**OPTIONS, **OF_WIRE[wire], "hosted_tools": st.just(HOSTED[wire])}
    )


@st.composite
def hard_requests(draw: st.DrawFn, wire: str) -> Request:
    """A request with all that a conversation may hold: items, sources, strange tools, options."""
    request = draw(requests())
    model = draw(st.sampled_from(MODELS[wire]))
    own: list[Part] = [ProviderItem(kind_of(one), "", wire, model, one) for one in ITEMS[wire]]
    reply = RequestMessage("assistant", (*own, Text("It rains.", CITED)))
    at = draw(st.integers(0, len(request.messages)))
    messages = tuple(_of_model(one, model) for one in request.messages)
    parameters: dict[str, Any] = {"type": "object", "properties": {"it": draw(schemas())}}
    tool = ToolSpec("strange", "A tool.", parameters, ({"it": 1}, {}))
    return replace(
        request,
        model=model,
        messages=(*messages[:at], reply, *messages[at:]),
        tools=(*request.tools, tool) if draw(st.booleans()) else request.tools,
        tool_choice=draw(st.sampled_from([None, "auto", "required", "strange"])),
        options=draw(options(wire)),
    )


def _of_model(message: RequestMessage, model: str) -> RequestMessage:
    """Return the message as if this model had written it, so that its reasoning goes back to it."""
    parts = [
        replace(part, model=model) if isinstance(part, Reasoning) and part.model == MODEL else part
        for part in message.parts
    ]
    return replace(message, parts=tuple(parts))


# ── by wire ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
@settings(max_examples=examples(50, 1500), deadline=None)
@given(hard_requests("anthropic_messages"))
def test_a_body_of_messages_has_the_types_of_their_client(request: Request) -> None:
    """R5"""
    params = pytest.importorskip("anthropic.types.beta.message_create_params")
    body = WIRES["anthropic_messages"]().encode(request, ATTACHMENTS)
    body["betas"] = body.pop("anthropic_beta", [])
    for older in ("temperature", "top_p", "top_k"):  # missing in the types, and accepted by older models
        body.pop(older, None)
    assert problems(body, params.MessageCreateParamsStreaming) == []


@pytest.mark.long
@settings(max_examples=examples(50, 1500), deadline=None)
@given(hard_requests("gemini"))
def test_a_body_of_gemini_has_the_types_of_their_client(request: Request) -> None:
    """R5"""
    sdk: Any = pytest.importorskip("google.genai.types")
    body = WIRES["gemini"]().encode(request, ATTACHMENTS)
    lists = {"contents": sdk.Content, "tools": sdk.Tool}
    fields = {
        "systemInstruction": sdk.Content,
        "toolConfig": sdk.ToolConfig,
        "generationConfig": sdk.GenerationConfig,
    }
    for name, held in body.items():
        if name == "serviceTier":
            assert held in {tier.value for tier in sdk.ServiceTier}
            continue
        for one in held if isinstance(held, list) else [held]:
            (lists | fields)[name].model_validate(one)
