"""Check bodies of hard histories against Amazon's types, and read our frames with its library (R5, W1).

The library is not a dependency. Without it, these tests have nothing to compare with.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dragoman.messages.message import ProviderItem, Reasoning, Text
from dragoman.messages.request import Request, RequestMessage, ToolSpec
from dragoman.wire.bedrock_converse import WIRE
from tests.sweeps import examples
from tests.wire.bedrock_converse.bodies import FRAMES, MODELS, NAME, REPLY, body_of
from tests.wire.gemini.test_schema import schemas
from tests.wire.histories import MODEL, is_accepted, requests

pytestmark = pytest.mark.slow

OPTIONS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.sampled_from([0, 2]),
        "top_p": st.just(0.5),
        "top_k": st.just(40),
        "stop": st.just(["END"]),
        "max_tokens": st.sampled_from([16, 64_000]),
        "reasoning_effort": st.sampled_from(["none", "high"]),
        "reasoning_budget": st.just(4096),
        "response_schema": st.just({"type": "object", "properties": {"a": {"type": "string"}}}),
        "service_tier": st.sampled_from(["flex", "standard"]),
        "cache_lifetime": st.sampled_from(["5m", "1h"]),
        "metadata": st.just({"team": "red", "n": 1}),
        "hosted_tools": st.just(["nova_grounding"]),
    },
)
ITEMS: list[dict[str, Any]] = [
    {"toolUse": {"toolUseId": "t1", "name": "nova_grounding", "type": "server_tool_use", "input": {}}},
    {"toolResult": {"toolUseId": "t1", "content": [{"text": "wet"}], "type": "nova_grounding_result"}},
]


@cache
def request_shape() -> Any:
    loaders = pytest.importorskip("botocore.loaders")
    model = pytest.importorskip("botocore.model")
    described = loaders.Loader().load_service_model("bedrock-runtime", "service-2")
    return model.ServiceModel(described).shape_for("ConverseStreamRequest")


def problems(value: Any, shape: Any, path: str = "body") -> list[str]:
    """Return the errors in a value. A field missing in the shape is an error, at any depth."""
    match shape.type_name:
        case "structure" if not shape.members:  # any JSON
            return []
        case "structure":
            if not isinstance(value, dict):
                return [f"{path}: no object"]
            found = [f"{path}: no field {name}" for name in shape.required_members if name not in value]
            found += [f"{path}: {name} is unknown" for name in value.keys() - shape.members.keys()]
            if shape.is_tagged_union and len(value) != 1:
                found.append(f"{path}: {len(value)} fields in the place of one")
            for name in value.keys() & shape.members.keys():
                found += problems(value[name], shape.members[name], f"{path}.{name}")
            return found
        case "list":
            inner = [
                one for n, item in enumerate(value) for one in problems(item, shape.member, f"{path}[{n}]")
            ]
            return inner + _size(len(value), shape, path)
        case "map":
            return [
                one for name, item in value.items() for one in problems(item, shape.value, f"{path}.{name}")
            ]
        case "string" | "blob":
            if not isinstance(value, str):
                return [f"{path}: no text"]
            enum = getattr(shape, "enum", None)
            found = [] if not enum or value in enum else [f"{path}: {value!r} is none of theirs"]
            pattern = shape.metadata.get("pattern")
            fits = pattern is None or re.fullmatch(pattern, value)
            return (
                found + _size(len(value), shape, path) + ([] if fits else [f"{path}: {value!r} does not fit"])
            )
        case "boolean":
            return [] if isinstance(value, bool) else [f"{path}: no truth"]
        case _:
            whole = shape.type_name in ("integer", "long")
            right = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
            return _size(value, shape, path) if right else [f"{path}: no number"]


def _size(size: float, shape: Any, path: str) -> list[str]:
    least, most = shape.metadata.get("min", size), shape.metadata.get("max", size)
    return [] if least <= size <= most else [f"{path}: {size} is not between {least} and {most}"]


def _of_model(message: RequestMessage, model: str) -> RequestMessage:
    """Return the message as if this model had written it, so that its reasoning goes back to it."""
    own = (
        replace(part, model=model) if isinstance(part, Reasoning) and part.model == MODEL else part
        for part in message.parts
    )
    return replace(message, parts=tuple(own))


@st.composite
def hard_requests(draw: st.DrawFn) -> Request:
    request, model = draw(requests()), draw(st.sampled_from(MODELS))
    own = [ProviderItem(next(iter(one)), "", NAME, model, one) for one in ITEMS]
    sealed = Reasoning("", None, NAME, model, {"redactedContent": "EtgB"})
    reply = RequestMessage("assistant", (sealed, *own, Text("It rains.")))
    at = draw(st.integers(0, len(request.messages)))
    messages = tuple(_of_model(one, model) for one in request.messages)
    parameters: dict[str, Any] = {"type": "object", "properties": {"it": draw(schemas())}}
    tool = ToolSpec("strange", "A tool.", parameters, ({"it": 1}, {}))
    return replace(
        request,
        model=model,
        messages=(*messages[:at], reply, *messages[at:]),
        tools=(*request.tools, tool) if draw(st.booleans()) else request.tools,
        tool_choice=draw(st.sampled_from([None, "auto", "none", "required", "strange"])),
        options=draw(OPTIONS),
    )


@settings(max_examples=examples(50, 1500), deadline=None)
@given(hard_requests())
def test_a_body_has_the_shapes_of_their_library(request: Request) -> None:
    """R5"""
    assume(is_accepted(WIRE(), request.options, request.model))
    assert problems({"modelId": "m", **body_of(request)}, request_shape()) == []


def test_a_field_that_is_not_theirs_is_found() -> None:
    """R5: the check can fail."""
    wrong = {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "Hi", "mood": "good"}]}]}
    assert sorted(problems(wrong, request_shape())) == [
        "body.messages[0].content[0]: 2 fields in the place of one",
        "body.messages[0].content[0]: mood is unknown",
    ]


def test_the_frames_of_these_tests_are_read_by_their_library() -> None:
    """The loopback servers send the frames that Amazon sends, checksums included (W1)."""
    buffer = pytest.importorskip("botocore.eventstream").EventStreamBuffer()
    buffer.add_data(REPLY)
    read = [(one.headers[":event-type"], one.headers[":message-type"]) for one in buffer]
    assert read == [(next(iter(frame)), "event") for frame in FRAMES]
