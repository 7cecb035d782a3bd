"""Fields of a provider that no event of ours stands for reach the plugins that watch the stream (H4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman import Plugin, Runtime, TurnView
from dragoman.messages.events import Event, ProviderData
from dragoman.messages.fold import DraftView, fold
from dragoman.messages.message import Citation, Text
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys
from dragoman.providers.wires import WIRES
from tests.loopback import delta, loopback, stream, usage
from tests.runtimes import events_of
from tests.wire.replies import Reply, decode, sse


def read(wire: str, *frames: dict[str, Any]) -> Reply:
    return decode(WIRES[wire](), [sse(frame) for frame in frames])


def data_of(reply: Reply) -> list[dict[str, Any]]:
    return [event.data for event in reply.events if isinstance(event, ProviderData)]


# ── to a plugin ───────────────────────────────────────────────────────────────────────────────────


class Watching(Plugin):
    """Records a provider's extra fields, and the text of the reply at that moment."""

    def __init__(self) -> None:
        self.seen: list[tuple[dict[str, Any], str]] = []

    def on_stream_data(self, event: Event, draft: DraftView, turn: TurnView) -> None:
        if isinstance(event, ProviderData):
            self.seen.append((event.data, draft.message.text))


async def test_h4_a_plugin_sees_the_fields_of_a_chunk_after_it_was_folded(tmp_path: Path) -> None:
    """The plugin sees the message including that chunk, and the extra fields are not stored (H4)."""
    cited = {"citations": ["https://a.example"]}
    plugin = Watching()
    reply = stream(delta(content="It "), choice({}, content="rains.") | cited, usage())
    async with loopback(reply) as server:
        catalog = load_catalog().with_provider(Provider("acme", "Acme", server.url))
        keys = Keys(environment={}, use_keyring=False)
        async with (
            Models("acme/m", catalog=catalog, keys=keys) as models,
            Runtime(tmp_path / "chat.db", model=models, plugins=[plugin]) as runtime,
        ):
            turn = await runtime.send("And?")
            events = await events_of(turn)
            result = await turn.result()
    assert plugin.seen == [(cited, "It rains.")]
    assert result.messages[-1].parts == (Text("It rains.", (Citation("https://a.example"),)),)
    assert [message.parts for message in fold(events)] == [result.messages[-1].parts]


# ── chat completions ──────────────────────────────────────────────────────────────────────────────


def choice(fields: dict[str, Any], **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None, **fields}]}


def test_h4_ordinary_chunks_bring_no_such_event() -> None:
    head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "obfuscation": "xyz"}
    frames = [
        head | choice({"logprobs": None}, role="assistant", content=""),
        head | choice({"logprobs": None}, content="Hi", refusal=None, reasoning_content=None),
        head | choice({}, content=" there") | {"usage": None},
        head | {"choices": [{"delta": {}, "finish_reason": "stop"}]},
        head | {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}},
    ]
    assert data_of(read("openai_chat", *frames)) == []


def test_h4_what_is_the_same_in_every_chunk_comes_once_and_a_change_comes_again() -> None:
    tiers = ["default", "default", "default"]
    same = [
        choice({}, content=char) | {"service_tier": tier} for char, tier in zip("abc", tiers, strict=True)
    ]
    assert data_of(read("openai_chat", *same)) == [{"service_tier": "default"}]

    sources = [["a"], ["a"], ["a", "b"]]
    cited = [choice({}, content="x") | {"citations": one} for one in sources]
    assert data_of(read("openai_chat", *cited)) == [{"citations": ["a"]}, {"citations": ["a", "b"]}]


def test_h4_log_probabilities_come_with_every_chunk_that_has_them() -> None:
    chances = {"content": [{"token": "a", "logprob": -0.1}]}
    frames = [choice({"logprobs": one}, content="a") for one in (None, chances, chances, None, chances)]
    assert data_of(read("openai_chat", *frames)) == [{"logprobs": chances}] * 3


def test_h4_fields_of_a_delta_and_of_a_choice_come_under_their_own_names() -> None:
    note = {"type": "url_citation", "url": "https://a.example"}
    frames = [
        choice({}, content="x"),
        choice({}, annotations=[note]),
        choice({}, annotations=[note]),
        choice({"content_filter_results": {"hate": {"filtered": False}}}, content="y"),
        choice({"content_filter_results": {"hate": {"filtered": False}}}, content="z"),
    ]
    reply = read("openai_chat", *frames)
    assert reply.text == "xyz"
    assert data_of(reply) == [
        {"annotations": [note]},
        {"annotations": [note]},
        {"content_filter_results": {"hate": {"filtered": False}}},
    ]


def test_h4_counts_that_we_have_no_place_for_come_at_the_end() -> None:
    counts = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, "num_sources_used": 4}
    reply = read("openai_chat", choice({}, content="x"), {"choices": [], "usage": counts})
    assert data_of(reply) == [{"usage": {"num_sources_used": 4}}]
    assert reply.events[-2].type == "provider.data"


# ── the other wires ───────────────────────────────────────────────────────────────────────────────


def test_h4_responses_bring_what_their_own_tools_do_annotations_and_the_tier() -> None:
    note = {"type": "response.output_text.annotation.added", "annotation": {"url": "https://a.example"}}
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    ended = {"status": "completed", "service_tier": "flex", "instructions": "Be kind.", "tools": [1]}
    reply = read(
        "openai_responses",
        {"type": "response.created", "response": {}},
        {"type": "response.web_search_call.searching", "item_id": "ws_1"},
        {"type": "response.output_item.done", "output_index": 0, "item": search},
        {
            "type": "response.output_text.delta",
            "output_index": 1,
            "delta": "Hi",
            "logprobs": [{"token": "Hi"}],
        },
        {"type": "response.output_text.delta", "output_index": 1, "delta": "!", "logprobs": []},
        note,
        {"type": "response.completed", "response": ended},
    )
    assert reply.text == "Hi!"
    assert data_of(reply) == [
        {"type": "response.web_search_call.searching", "item_id": "ws_1"},
        {"item": search},
        {"logprobs": [{"token": "Hi"}]},
        note,
        {"service_tier": "flex"},
    ]


def test_h4_messages_bring_containers_and_tiers() -> None:
    reply = read(
        "anthropic_messages",
        {
            "type": "message_start",
            "message": {"id": "m", "usage": {"input_tokens": 1, "service_tier": "batch"}},
        },
        {"type": "ping"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Rain."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "container": {"id": "c"}}},
        {"type": "message_stop"},
    )
    assert reply.text == "Rain."
    assert data_of(reply) == [
        {"container": {"id": "c"}},
        {"usage": {"service_tier": "batch"}},
    ]


def test_h4_gemini_brings_ratings_and_chances_of_words() -> None:
    def candidate(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"parts": [*parts]}, **fields}], "modelVersion": "g"}

    ratings = [{"category": "HARM", "probability": "LOW"}]
    reply = read(
        "gemini",
        candidate({"text": "It "}),
        candidate(
            {"text": "rains."}, safetyRatings=ratings, groundingMetadata={"webSearchQueries": ["rain"]}
        ),
        candidate({"text": ""}, safetyRatings=ratings, avgLogprobs=-0.1, finishReason="STOP"),
    )
    assert reply.text == "It rains."
    assert data_of(reply) == [{"safetyRatings": ratings}, {"avgLogprobs": -0.1}]


@pytest.mark.parametrize("wire", WIRES)
def test_h4_half_a_character_in_such_a_field_does_no_harm(wire: str) -> None:
    """The field can be stored like everything else (H4, W3)."""
    frames = {
        "openai_chat": b'{"choices": [], "note": "\\ud83d"}',
        "openai_responses": b'{"type": "response.note", "note": "\\ud83d"}',
        "anthropic_messages": b'{"type": "note", "note": "\\ud83d"}',
        "gemini": b'{"candidates": [], "note": "\\ud83d"}',
        "bedrock_converse": b'{"metadata": {"note": "\\ud83d"}}',
    }
    events = [*WIRES[wire]().decoder("msg_r").feed(frames[wire])]
    (seen,) = (event for event in events if isinstance(event, ProviderData))
    assert (seen.data["note"], seen.wire) == ("\N{REPLACEMENT CHARACTER}", wire)
