"""Decode Messages replies from Anthropic and compatible servers."""

from __future__ import annotations

import pytest
from hypothesis import given

from dragoman.errors import ContextOverflow
from dragoman.messages.message import Citation, ProviderItem, Reasoning, Text, ToolCall
from dragoman.messages.usage import Usage
from dragoman.wire.anthropic_messages import WIRE
from dragoman.wire.wire import Wire
from tests.wire.anthropic_messages.bodies import (
    FOUND,
    NAME,
    REPLY,
    SEARCH,
    called,
    delta,
    ended,
    read,
    start,
    stop,
    text_block,
)
from tests.wire.cuts import cuts
from tests.wire.histories import (
    MODEL,
)
from tests.wire.replies import UNFINISHED, decode


def test_it_is_a_wire() -> None:
    wire: Wire = WIRE()
    assert wire.name == NAME


def test_a_reply_becomes_parts_in_the_order_in_which_it_came() -> None:
    assert decode(WIRE(), [REPLY]).parts == (
        Reasoning("Where is München?", "EqQB+/=", NAME, MODEL),
        Reasoning("", None, NAME, MODEL, {"type": "redacted_thinking", "data": "EtgB=="}),
        Text("One moment 🐉."),
        ToolCall("call_r_0", "get_weather", {"city": "München"}, provider_id="toolu_3"),
        ToolCall("call_r_1", "clock", {}, provider_id="toolu_4"),
    )


@given(cuts(REPLY))
def test_any_cut_of_the_bytes_gives_the_same_events(pieces: list[bytes]) -> None:
    """W1"""
    assert decode(WIRE(), pieces) == decode(WIRE(), [REPLY])


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "context"),
        ("pause_turn", "pause"),
        ("compaction", "pause"),
        ("refusal", "refusal"),
        ("eos", "unknown"),
    ],
)
def test_the_finish_is_told_in_our_words_and_kept_in_theirs(word: str, finish: str) -> None:
    reply = read(*text_block("Hi"), ended(word))
    assert (reply.end.finish, reply.finish_word) == (finish, word)


@pytest.mark.parametrize("word", ["end_turn", "tool_use", "eos"])
def test_calls_are_there_whatever_the_finish_says(word: str) -> None:
    """C4"""
    reply = read(*called("clock", "{}"), ended(word))
    assert reply.end.finish == "tool_calls"
    assert [(end.tool, end.arguments) for end in reply.calls] == [("clock", {})]


@pytest.mark.parametrize(
    "frames", [[], [ended(None)], [{"type": "ping"}]], ids=["nothing", "no word", "a ping"]
)
def test_a_stream_that_ends_before_the_reply_does_is_an_error_that_keeps_what_came(
    frames: list[object],
) -> None:
    """T8"""
    reply = read(*text_block("Hi"), *called("clock", "", index=1), *frames)
    assert reply.error is not None
    assert (reply.error.message, reply.error.retryable) == (UNFINISHED, True)
    assert reply.parts[0] == Text("Hi")
    assert [end.arguments for end in reply.calls] == [None]


@pytest.mark.parametrize("end", [ended("end_turn"), {"type": "message_stop"}], ids=["the word", "the stop"])
def test_a_reply_is_finished_when_it_says_how_or_that_it_is(end: object) -> None:
    """Some proxies leave out the one or the other."""
    reply = read(*text_block("Hi"), end)
    assert reply.error is None
    assert reply.end.finish in ("stop", "unknown")


@pytest.mark.parametrize("ending", [[stop(0), ended("max_tokens")], [stop(0), ended("tool_use")], []])
def test_a_call_that_was_cut_off_has_no_arguments(ending: list[object]) -> None:
    """C4: whether the finish admits it or not."""
    (end,) = read(*called("get_weather", '{"city": "Par')[:-1], *ending).calls
    assert (end.arguments, end.raw) == (None, '{"city": "Par')


def test_a_call_that_was_cut_off_before_its_arguments_does_not_run_without_them() -> None:
    """The wire closes the block of a call that was cut off, and the call fails (C4)."""
    for ending in ([ended("max_tokens")], []):
        (end,) = read(*called("delete_all", ""), *ending).calls
        assert (end.arguments, end.raw) == (None, "")
    assert read(*called("delete_all", ""), ended("tool_use")).calls[0].arguments == {}


@pytest.mark.parametrize(
    "frames",
    [
        called("get_weather", '{"city": "Rome"}'),
        called("get_weather", "", '{"city"', ': "Rome"}'),
        called("get_weather", input={"city": "Rome"}),
        called("get_weather", '"{\\"city\\": \\"Rome\\"}"'),
    ],
    ids=["whole", "in pieces", "announced", "double-encoded"],
)
def test_arguments_come_in_several_ways(frames: list[object]) -> None:
    """W3"""
    (end,) = read(*frames, ended("tool_use")).calls
    assert end.arguments == {"city": "Rome"}


def test_blocks_that_are_open_at_the_same_time_are_told_apart() -> None:
    one, two = called("get_weather", '{"city": ', '"Rome"}'), called("clock", "{}", index=1)
    calls = read(*(frame for pair in zip(one, [*two, two[-1]], strict=True) for frame in pair)).calls
    assert {(end.tool, str(end.arguments)) for end in calls} == {
        ("get_weather", "{'city': 'Rome'}"),
        ("clock", "{}"),
    }


CITE = {
    "type": "web_search_result_location",
    "cited_text": "rain",
    "url": "https://a.example",
    "title": "A",
    "encrypted_index": "Eo8B==",
}


def test_texts_with_citations_are_one_text_that_knows_its_sources() -> None:
    """W4: which words rest on them, and their own form of each."""
    reply = read(
        *text_block("It says 🐉: "),
        start(1, "text", text="", citations=[]),
        delta(1, "citations_delta", citation=CITE),
        delta(1, "text_delta", text="rain"),
        stop(1),
        *text_block(".", 2),
        ended("end_turn"),
    )
    source = Citation("https://a.example", "A", "rain", 11, 15, {**CITE})
    assert reply.parts == (Text("It says 🐉: rain.", (source,)),)


def test_a_thought_of_which_only_the_signature_is_shown_is_kept() -> None:
    """W4"""
    reply = read(start(0, "thinking", thinking=""), delta(0, "signature_delta", signature="sig"), stop(0))
    assert reply.parts == (Reasoning("", "sig", NAME, MODEL),)


def test_a_thought_that_broke_off_has_no_signature() -> None:
    reply = read(start(0, "thinking", thinking=""), delta(0, "thinking_delta", thinking="hm"))
    assert reply.parts == (Reasoning("hm", None, NAME, MODEL),)


def test_what_the_servers_own_tools_did_is_kept_as_it_came() -> None:
    reply = read(
        start(0, "server_tool_use", id="srvtoolu_1", name="web_search", input={}),
        delta(0, "input_json_delta", partial_json=""),
        delta(0, "input_json_delta", partial_json='{"query": "rain"}'),
        stop(0),
        {**start(1, ""), "content_block": FOUND},
        stop(1),
        *text_block("Rain.", 2),
        start(3, "compaction", content=None),
        delta(3, "compaction_delta", content="in short"),
        stop(3),
        start(4, "something_new", x=1),
        delta(4, "something_delta", y=2),
        stop(4),
        {"type": "something_else"},
        ended("end_turn"),
    )
    assert reply.parts == (
        ProviderItem("server_tool_use", "web_search: rain", NAME, MODEL, {**SEARCH}),
        ProviderItem("web_search_tool_result", "x", NAME, MODEL, {**FOUND}),
        Text("Rain."),
        ProviderItem("compaction", "in short", NAME, MODEL, {"type": "compaction", "content": "in short"}),
        ProviderItem("something_new", "", NAME, MODEL, {"type": "something_new", "x": 1}),
    )
    assert not reply.calls


def test_usage_counts_cached_tokens_as_input_and_the_last_totals_win() -> None:
    """T11"""
    begun = {"input_tokens": 4, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 7}
    reply = read(
        {"type": "message_start", "message": {"usage": begun | {"output_tokens": 1}}},
        ended("end_turn", output_tokens=30, output_tokens_details={"thinking_tokens": 20}, input_tokens=None),
    )
    assert reply.end.usage == Usage(111, 30, cached=100, cache_written=7, reasoning=20)
    assert read(*text_block("Hi"), {"type": "message_stop"}).end.usage == Usage()


def test_an_error_inside_a_stream_that_began_well_is_raised() -> None:
    """W3"""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    reply = read(*text_block("Hi"), error)
    assert reply.text == "Hi"
    assert reply.error is not None
    assert (reply.error.message, reply.error.kind, reply.error.retryable) == (
        "Overloaded",
        "overloaded",
        True,
    )


def test_an_overflow_inside_a_stream_is_told_as_one() -> None:
    error = {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"}
    assert isinstance(read({"type": "error", "error": error}).error, ContextOverflow)


def test_what_an_imitator_leaves_out_is_nothing() -> None:
    """W3"""
    reply = read(
        {"type": "message_start", "message": None},
        start(0, "text"),
        delta(0, "text_delta", text="Hi"),
        delta(0, "text_delta", text=None),
        {"type": "content_block_delta", "index": 0},
        start(1, "tool_use", id="toolu_1", name="clock"),
        delta(1, "input_json_delta", partial_json=None),
        delta(1, "input_json_delta", partial_json="{}"),
        stop(1),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    )
    assert reply.text == "Hi"
    assert [(end.tool, end.arguments) for end in reply.calls] == [("clock", {})]
