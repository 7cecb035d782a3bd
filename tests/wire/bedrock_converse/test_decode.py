"""Decode Converse replies of every Bedrock model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from dragoman.messages.events import FileAdded, ProviderData
from dragoman.messages.message import Citation, ProviderItem, Reasoning, Text, ToolCall
from dragoman.messages.usage import Usage
from dragoman.wire.bedrock_converse import WIRE
from dragoman.wire.wire import Wire
from tests.wire.bedrock_converse.bodies import FRAMES, NAME, REPLY, called, delta, ended, read, start, stop
from tests.wire.cuts import cuts
from tests.wire.histories import MODEL
from tests.wire.replies import UNFINISHED, decode


def test_it_is_a_wire() -> None:
    wire: Wire = WIRE()
    assert wire.name == NAME


def test_a_reply_becomes_parts_in_the_order_in_which_it_came() -> None:
    assert decode(WIRE(), [REPLY]).parts == (
        Reasoning("Where is München?", "EqQB+/=", NAME, MODEL),
        Reasoning("", None, NAME, MODEL, {"redactedContent": "EtgB"}),
        Text("One moment 🐉."),
        ToolCall("call_r_0", "get_weather", {"city": "München"}, provider_id="tooluse_3"),
        ToolCall("call_r_1", "clock", {}, provider_id="tooluse_4"),
    )


@given(cuts(REPLY))
def test_any_cut_of_the_bytes_gives_the_same_events(pieces: list[bytes]) -> None:
    """W1"""
    assert decode(WIRE(), pieces) == decode(WIRE(), [REPLY])


def test_usage_counts_cached_tokens_as_input() -> None:
    """T11"""
    assert read(*FRAMES).end.usage == Usage(111, 30, cached=100, cache_written=7)


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "context"),
        ("guardrail_intervened", "filter"),
        ("content_filtered", "filter"),
        ("malformed_tool_use", "malformed"),
        ("malformed_model_output", "error"),
        ("eos", "unknown"),
    ],
)
def test_the_finish_is_told_in_our_words_and_kept_in_theirs(word: str, finish: str) -> None:
    reply = read(delta(0, text="Hi"), stop(0), ended(word))
    assert (reply.end.finish, reply.finish_word) == (finish, word)


@pytest.mark.parametrize("word", ["end_turn", "tool_use", "eos", "malformed_tool_use"])
def test_calls_are_there_whatever_the_finish_says(word: str) -> None:
    """C4"""
    reply = read(*called("clock", "{}"), ended(word))
    assert (reply.end.finish, [call.tool for call in reply.calls]) == ("tool_calls", ["clock"])


def test_a_stream_that_ends_before_the_reply_does_is_an_error_that_keeps_what_came() -> None:
    """T8, C4"""
    reply = read(delta(0, text="Hi"), stop(0), *called("clock", index=1))
    assert reply.error is not None
    assert (reply.error.message, reply.error.retryable) == (UNFINISHED, True)
    assert (reply.parts[0], [end.arguments for end in reply.calls]) == (Text("Hi"), [None])


@pytest.mark.parametrize("word", ["max_tokens", "tool_use"])
def test_a_call_that_was_cut_off_has_no_arguments(word: str) -> None:
    """C4: whether the finish admits it or not."""
    (end,) = read(*called("get_weather", '{"city": "Par'), ended(word)).calls
    assert (end.arguments, end.raw) == (None, '{"city": "Par')


def test_thoughts_that_follow_each_other_keep_their_signatures_apart() -> None:
    """Their signatures stay separate, also if the stream does not end the first part of reasoning (W4)."""
    thought = {"text": "a"}, {"signature": "A="}, {"text": "b"}, {"signature": "B="}
    frames = [delta(at // 2, reasoningContent=one) for at, one in enumerate(thought)]
    assert read(*frames, delta(2, text="Hi"), ended("end_turn")).parts == (
        Reasoning("a", "A=", NAME, MODEL),
        Reasoning("b", "B=", NAME, MODEL),
        Text("Hi"),
    )


def test_a_thought_without_a_signature_is_kept_as_one_of_this_wire() -> None:
    reply = read(delta(0, reasoningContent={"text": "hm"}), stop(0), delta(1, text="Hi"), ended("end_turn"))
    assert reply.parts == (Reasoning("hm", None, NAME, MODEL), Text("Hi"))


def test_what_is_sealed_in_pieces_is_one_thing() -> None:
    pieces = [delta(0, reasoningContent={"redactedContent": one}) for one in ("YQ==", "Yg==")]
    (thought,) = read(*pieces, stop(0), ended("end_turn")).parts
    assert thought == Reasoning("", None, NAME, MODEL, {"redactedContent": "YWI="})


def test_sources_are_told_with_the_words_they_are_for() -> None:
    """W4"""
    source: dict[str, Any] = {
        "title": "A",
        "sourceContent": [{"text": "rain"}],
        "location": {"web": {"url": "https://a.example", "domain": "a.example"}},
    }
    reply = read(
        *(delta(0, text="It says "), stop(0), delta(1, text="rain"), delta(1, citation=source), stop(1)),
        ended("end_turn"),
    )
    cited = Citation("https://a.example", "A", "rain", 8, 12, source)
    assert reply.parts == (Text("It says rain", (cited,)),)


def test_what_amazons_own_tools_did_is_no_call_of_ours() -> None:
    """Amazon's own tool calls are kept as received, and Dragoman does not run them (W4, C4)."""
    use = {"toolUseId": "t1", "name": "nova_grounding", "type": "server_tool_use"}
    result = {"toolUseId": "t1", "type": "nova_grounding_result", "status": "success"}
    reply = read(
        start(0, toolUse=use),
        delta(0, toolUse={"input": '{"query": "rain"}'}),
        stop(0),
        start(1, toolResult=result),
        delta(1, toolResult=[{"text": "wet"}]),
        stop(1),
        delta(2, text="Rain."),
        ended("end_turn"),
    )
    called: dict[str, Any] = {"toolUse": {**use, "input": {"query": "rain"}}}
    answered: dict[str, Any] = {"toolResult": {**result, "content": [{"text": "wet"}]}}
    assert reply.parts == (
        ProviderItem("toolUse", "nova_grounding: rain", NAME, MODEL, called),
        ProviderItem("toolResult", "wet", NAME, MODEL, answered),
        Text("Rain."),
    )
    assert not reply.calls


def test_a_picture_that_a_model_made_is_a_file() -> None:
    """M4"""
    frames = start(0, image={"format": "png"}), delta(0, image={"source": {"bytes": "iVBORw=="}}), stop(0)
    (added,) = (one for one in read(*frames, ended("end_turn")).events if isinstance(one, FileAdded))
    assert (added.file.media_type, added.file.url) == ("image/png", "data:image/png;base64,iVBORw==")


def test_what_we_have_no_word_for_reaches_the_plugins() -> None:
    """H4: padding and times are of no use to anybody."""
    reply = read(
        delta(0, text="Hi"),
        {"somethingNew": {"x": 1}},
        ended("end_turn", additionalModelResponseFields={"stop_sequence": "END"}),
        {"metadata": {"usage": {}, "metrics": {"latencyMs": 1}, "serviceTier": {"type": "flex"}}},
    )
    assert [event.data for event in reply.events if isinstance(event, ProviderData)] == [
        {"somethingNew": {"x": 1, "p": "abcdefghij"}},
        {"additionalModelResponseFields": {"stop_sequence": "END"}},
        {"serviceTier": {"type": "flex"}},
    ]
