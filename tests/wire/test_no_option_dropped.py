"""On every wire, an accepted option is in the body unchanged, or an error names it (R9)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from dragoman.errors import BadRequest
from dragoman.messages.message import File, Part, Text
from dragoman.messages.request import Request, RequestMessage, ToolSpec
from dragoman.wire import (
    anthropic_messages,
    bedrock_converse,
    gemini,
    openai_chat,
    openai_images,
    openai_responses,
)
from dragoman.wire.endpoint import Quirks
from dragoman.wire.files.file_parts import Attachments
from dragoman.wire.media.imagen import Imagen
from dragoman.wire.openai_audio.speech import OpenAISpeech
from dragoman.wire.openai_audio.transcription import OpenAITranscription
from dragoman.wire.options import with_tool_choice
from dragoman.wire.wire import MediaWire, Wire
from tests.sweeps import examples

PING = ToolSpec("ping", "Ping.", {"type": "object", "properties": {"a": {"type": "string"}}})
BLOBS = {name: f"blob-{name}" for name in ("cat.png", "mask.png", "memo.wav")}
ATTACHMENTS = Attachments(dict.fromkeys(BLOBS.values(), "AAAA"))
FILES = tuple(
    File("audio/wav" if name.endswith("wav") else "image/png", blob=blob, name=name)
    for name, blob in BLOBS.items()
)

CHAT: dict[str, list[JsonValue]] = {
    "temperature": [0.25, 1.75],
    "top_p": [0.875],
    "top_k": [37],
    "seed": [4711],
    "stop": ["END", ["END", "FIN"], [" "], [""]],
    "presence_penalty": [0.375],
    "frequency_penalty": [0.625],
    "max_tokens": [40, 4321],
    "tool_choice": ["none", "required", "ping"],
    "parallel_tool_calls": [True, False],
    "reasoning_effort": ["minimal", "low", "high", "max", "hihg"],
    "reasoning_budget": [500, 2345, 99_999],
    "reasoning_summary": ["detailed"],
    "response_schema": [{"type": "object", "properties": {"a": {"type": "string"}}}],
    "hosted_tools": [["web_search"]],
    "logprobs": [True, 0, 3],
    "verbosity": ["low"],
    "service_tier": ["priority"],
    "prompt_cache_key": ["key-1"],
    "cache_lifetime": ["1h"],
    "safety_identifier": ["user-1"],
    "metadata": [{"team": "red"}, {"user_id": "user-2"}],
    "truncation": ["auto"],
}
MEDIA: dict[str, list[JsonValue]] = {
    "n": [1, 3],
    "size": ["auto", "1024x1024", "2048x2048", "1536x1024"],
    "aspect_ratio": ["16:9"],
    "quality": ["high"],
    "background": ["opaque"],
    "format": ["png", "jpeg", "mp3", "wav"],
    "compression": [55],
    "moderation": ["low"],
    "style": ["vivid"],
    "seed": [4711],
    "partial_images": [0, 2, 3],
    "fidelity": ["high"],
    "mask": ["mask.png", "cat.png", "none.png"],
    "language": ["de"],
    "temperature": [0.25],
    "timestamps": ["word"],
    "voice": ["nova"],
    "speed": [1.5],
    "instructions": ["slowly"],
}
EXACT = {  # these mean the same everywhere: nothing translates them
    *("temperature", "top_p", "top_k", "seed", "stop", "presence_penalty", "frequency_penalty"),
    *("max_tokens", "reasoning_budget", "safety_identifier", "prompt_cache_key", "cache_lifetime"),
    *("n", "quality", "background", "compression", "style", "partial_images", "voice", "speed", "language"),
}
REFUSING = Quirks(no_forced_choice=True, no_parallel_flag=True, json_edits=True)
CLAUDES = ("claude-3-haiku", "claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-4-8", "imitator")
WIRES: list[tuple[Any, tuple[str, ...]]] = [
    (openai_chat.WIRE, ("gpt-5",)),
    (openai_responses.WIRE, ("gpt-5",)),
    (anthropic_messages.WIRE, CLAUDES),
    (gemini.WIRE, ("gemini-2.0-flash", "gemini-2.5-flash", "gemini-2.5-pro", "gemini-3-pro")),
    (
        bedrock_converse.WIRE,
        (
            *("anthropic.claude-3-haiku", "anthropic.claude-sonnet-4-5", "anthropic.claude-opus-4-8"),
            *("amazon.nova-2-lite", "amazon.nova-lite", "openai.gpt-oss", "deepseek.r1", "meta.llama"),
        ),
    ),
    (openai_images.WIRE, ("gpt-image-1", "painter")),
    (OpenAITranscription, ("whisper-1", "listener")),
    (OpenAISpeech, ("tts-1",)),
    (Imagen, ("imagen-4.0",)),
]
CASES = [
    pytest.param(
        wire(quirks=quirks),
        model,
        id=f"{wire().name} {model} {'refusing' if quirks.no_parallel_flag else ''}",
    )
    for wire, models in WIRES
    for model in models
    for quirks in (Quirks(), REFUSING)
]


def leaves(value: JsonValue) -> Iterator[JsonValue]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from leaves(one)
    else:
        yield value


def body_of(wire: Wire, model: str, options: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    parts: tuple[Part, ...] = (Text("Hello?"),)
    media = isinstance(wire, MediaWire)
    if media:
        masks = not getattr(wire, "quirks", Quirks()).json_edits
        parts += tuple(file for file in FILES if masks or file.name != "mask.png")
    request = Request(
        model,
        (RequestMessage("user", parts),),
        tools=() if media else (PING,),
        options={**options},
    )
    request = with_tool_choice(request)
    return wire.encode(wire.select(request) if isinstance(wire, MediaWire) else request, ATTACHMENTS)


@pytest.mark.parametrize(("wire", "model"), CASES)
@settings(max_examples=examples(40, 1000), deadline=None)
@given(data=st.data())
def test_r9_an_accepted_option_is_in_the_body(wire: Wire, model: str, data: st.DataObject) -> None:
    """Nothing drops, clips or replaces it on the way (R9)."""
    values = MEDIA if isinstance(wire, MediaWire) else CHAT
    known = sorted(wire.options & values.keys())
    names = data.draw(st.lists(st.sampled_from(known), unique=True, max_size=4))
    options = {name: data.draw(st.sampled_from(values[name])) for name in names}
    refused, body = "", {}
    try:
        wire.check_options(options, model=model, extra=())
        body = body_of(wire, model, options)
    except BadRequest as error:
        refused = str(error)
    if refused:
        assert any(name in refused for name in names), refused
        return
    found = [*leaves(body)]
    for name, value in options.items():
        if name in EXACT:
            assert all(one in found for one in leaves(value)), (name, body)
        elif value not in found and value != "auto":
            without = {other: kept for other, kept in options.items() if other != name}
            assert json.dumps(body_of(wire, model, without)) != json.dumps(body), name


TOGETHER: list[tuple[Any, str, dict[str, JsonValue], tuple[str, ...]]] = [
    (
        anthropic_messages.WIRE,
        "claude-sonnet-4-5",
        {"temperature": 0.5, "top_p": 0.5},
        ("temperature", "top_p"),
    ),
    (anthropic_messages.WIRE, "claude-sonnet-4-5", {"temperature": 1.5}, ("temperature",)),
    (
        anthropic_messages.WIRE,
        "claude-sonnet-4-5",
        {"reasoning_effort": "low", "top_k": 5},
        ("reasoning_effort", "top_k"),
    ),
    (
        anthropic_messages.WIRE,
        "claude-sonnet-4-5",
        {"reasoning_budget": 5000, "max_tokens": 4000},
        ("reasoning_budget", "max_tokens"),
    ),
    (bedrock_converse.WIRE, "meta.llama", {"temperature": 2}, ("temperature",)),
    (
        bedrock_converse.WIRE,
        "amazon.nova-2-lite",
        {"reasoning_effort": "high", "max_tokens": 10},
        ("reasoning_effort", "max_tokens"),
    ),
    (
        gemini.WIRE,
        "gemini-2.5-flash",
        {"reasoning_effort": "low", "reasoning_budget": 9},
        ("_effort", "_budget"),
    ),
    (openai_images.WIRE, "painter", {"n": 2, "partial_images": 1}, ("n and partial_images",)),
    (Imagen, "imagen-4.0", {"size": "1024x1024", "aspect_ratio": "16:9"}, ("size", "aspect_ratio")),
    (Imagen, "imagen-4.0", {"compression": 50}, ("compression", "format")),
]


@pytest.mark.parametrize(("wire", "model", "options", "named"), TOGETHER)
def test_r9_what_a_provider_does_not_take_together_is_refused_by_name(
    wire: Any, model: str, options: dict[str, JsonValue], named: tuple[str, ...]
) -> None:
    with pytest.raises(BadRequest) as refused:
        wire().check_options(options, model=model, extra=())
    assert all(name in str(refused.value) for name in named)
