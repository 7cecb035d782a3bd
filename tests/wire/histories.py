"""Conversations as they really end up: calls in every state, parts of every kind, several providers."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from functools import cache

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pydantic import JsonValue

from dragoman.errors import BadRequest
from dragoman.messages.message import (
    Arguments,
    CallState,
    Citation,
    Error,
    File,
    Json,
    Part,
    ProviderItem,
    Reasoning,
    Summary,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.messages.request import Request, RequestMessage, ToolSpec
from dragoman.wire.files.file_parts import Attachments
from dragoman.wire.wire import Wire

MODEL = "acme/model"  # the requested model
OTHER_MODEL = "other/model"  # the model before the user switched

WEATHER = ToolSpec(
    "get_weather",
    "The weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)

CLOCK = ToolSpec("clock", "What time it is.", {"type": "object", "properties": {}})

BLOBS = {"sha-image": b"\x89PNG", "sha-sound": b"RIFF", "sha-text": "für später".encode(), "sha-pdf": b"%PDF"}


ATTACHMENTS = Attachments(
    {name: b64encode(data).decode() for name, data in BLOBS.items()}, {"sha-text": "für später"}
)

IMAGE = File("image/png", blob="sha-image", name="cat.png")
FILES = (
    IMAGE,
    File("image/jpeg", url="https://example.org/dog.jpg"),
    File("audio/wav", blob="sha-sound"),
    File("application/pdf", blob="sha-pdf", name="report.pdf"),
    File("text/plain", blob="sha-text", name="note.txt"),
    File("video/mp4", url="https://example.org/film.mp4"),
)

# The signed reasoning data of each wire, which must go back unchanged.
SIGNED: dict[str, tuple[str | None, Json]] = {
    "openai_chat": (
        None,
        [
            {"type": "reasoning.text", "text": "hm", "signature": "sig+/=", "index": 0},
            {"type": "reasoning.encrypted", "data": "b64==", "index": 1},
        ],
    ),
    "openai_responses": (
        None,
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAAB=="},
    ),
    "anthropic_messages": ("EqQBCkYI+/=", None),
    "gemini": ("CiIBVKhc7g==", None),
    "bedrock_converse": ("EqQBCkgI+/=", None),
}

texts = st.sampled_from(["Hello.", "What is the weather?", "Look:\n```\n<think>\n```", "ü 🐉", "", "  \n"])
arguments: SearchStrategy[Arguments] = st.sampled_from(
    [{}, {"city": "Paris"}, {"city": "北京", "days": [1, 2.5]}]
)
ids = st.one_of(
    st.integers(0, 3).map(lambda n: f"call_reply_{n}"),  # few, so that some come twice
    st.just("toolu with spaces, and much longer than any provider would ever accept of us"),
)


@st.composite
def calls(draw: st.DrawFn) -> ToolCall:
    """A call in any state. Its arguments may have been no JSON, or changed by a person."""
    state = draw(st.sampled_from(CallState))
    result = None
    if state.settled or (state is CallState.REVIEWING and draw(st.booleans())):
        result = ToolResult(
            draw(st.sampled_from(["21 °C", "", f"the call was {state}"])),
            attachments=draw(st.sampled_from([(), (IMAGE,), (IMAGE, FILES[1])])),
            note=draw(st.sampled_from([None, "A person changed the arguments."])),
        )
    raw = draw(st.sampled_from([None, None, '{"city": "Par', "not JSON"]))
    return ToolCall(
        draw(ids),
        draw(st.sampled_from([WEATHER.name, CLOCK.name, "made up!"])),
        draw(arguments) if raw is None else {},
        raw=raw,
        state=state,
        result=result,
        provider_id=draw(st.sampled_from([None, "", "call_0", "fc_bfb39741"])),
        signature=draw(st.sampled_from([None, "CiIBVKhc7g=="])),
        signed_by=draw(st.sampled_from([None, OTHER_MODEL])),
        original=draw(st.one_of(st.none(), arguments)) if raw is None else None,
    )


@st.composite
def thoughts(draw: st.DrawFn) -> Reasoning:
    """Reasoning of any wire, signed or not, or of none: made from tags in the text."""
    wire = draw(st.sampled_from([*SIGNED, "tags", None]))
    signed = draw(st.sampled_from([True, True, False]))
    signature, opaque = SIGNED.get(wire or "", (None, None)) if signed else (None, None)
    model = draw(st.sampled_from([MODEL, MODEL, OTHER_MODEL]))
    name = draw(st.sampled_from([None, "reasoning_content", "reasoning"])) if wire == "openai_chat" else None
    text = draw(st.sampled_from(["hm", "", "I should look."]))
    return Reasoning(text, signature, wire, model, opaque, field_name=name)


SEARCH: Json = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "rain"},
}
SOURCE = Citation("https://example.org/rain", "Rain", start=0, end=2)


@st.composite
def items(draw: st.DrawFn) -> ProviderItem:
    """Generate a result of a provider's tool, for the requested model or another one."""
    model = draw(st.sampled_from([MODEL, OTHER_MODEL]))
    return ProviderItem("web_search_call", "rain", "openai_responses", model, SEARCH)


def replies() -> SearchStrategy[RequestMessage]:
    """Replies of models."""
    part: SearchStrategy[Part] = st.one_of(
        texts.map(Text),
        st.builds(Text, texts, st.sampled_from([(), (SOURCE,)]), st.sampled_from([None, "commentary"])),
        items(),
        thoughts(),
        thoughts(),
        calls(),
        calls(),
        st.just(Error("the provider hung up")),
        st.just(IMAGE),
    )
    return st.lists(part, max_size=6).map(lambda parts: RequestMessage("assistant", tuple(parts)))


def questions() -> SearchStrategy[RequestMessage]:
    """Messages of people, and summaries."""
    part: SearchStrategy[Part] = st.one_of(
        texts.map(Text), st.sampled_from(FILES), st.just(Summary("They spoke of rain.", None))
    )
    return st.lists(part, min_size=1, max_size=3).map(lambda parts: RequestMessage("user", tuple(parts)))


def histories() -> SearchStrategy[tuple[RequestMessage, ...]]:
    """Messages in any order. The last is a person's, and says something."""
    before = st.lists(st.one_of(questions(), replies(), replies()), max_size=6)
    return before.map(lambda sent: (*sent, RequestMessage("user", (Text("And now?"),))))


@cache
def requests() -> SearchStrategy[Request]:
    """Made once: to put a strategy together takes longer than to draw from it."""
    return st.builds(
        Request,
        model=st.just(MODEL),
        messages=histories(),
        system=st.sampled_from(["", "Be brief."]),
        tools=st.sampled_from([(), (WEATHER,), (WEATHER, CLOCK)]),
        tool_choice=st.sampled_from([None, "auto"]),
    )


def calls_of(request: Request) -> Iterator[ToolCall]:
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ToolCall) and message.role == "assistant":
                yield part


def is_accepted(wire: Wire, options: Mapping[str, JsonValue], model: str) -> bool:
    """Return whether a model accepts these options (R9)."""
    try:
        wire.check_options(options, model=model, extra=())
    except BadRequest:
        return False
    return True
