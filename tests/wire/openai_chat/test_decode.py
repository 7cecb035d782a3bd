"""Decode chat completions from the many servers of this wire."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from dragoman.errors import ContextOverflow
from dragoman.messages.message import Citation, Reasoning, Text, ToolCall
from dragoman.messages.request import RequestMessage
from dragoman.messages.usage import Usage
from dragoman.wire.openai_chat import WIRE
from dragoman.wire.wire import Wire
from tests.wire.cuts import cuts
from tests.wire.histories import (
    MODEL,
)
from tests.wire.openai_chat.bodies import DONE, call, chunk, read, sent
from tests.wire.replies import decode, sse


def test_it_is_a_wire() -> None:
    wire: Wire = WIRE()
    assert wire.name == "openai_chat"


REPLY = sse(
    chunk(role="assistant", content=""),
    chunk(reasoning_content="Where is "),
    chunk(reasoning_content="München?"),
    chunk(content="\n\n"),
    chunk(content="One "),
    chunk(content="moment 🐉."),
    chunk(tool_calls=[call("get_weather", "", id="a")]),
    chunk(tool_calls=[{"index": 0, "function": {"arguments": '{"city":"München"}'}}]),
    chunk(tool_calls=[call("clock", "{}", index=1, id="b")]),
    chunk("tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}},
    DONE,
)


def test_a_reply_becomes_parts_in_the_order_in_which_it_came() -> None:
    assert decode(WIRE(), [REPLY]).parts == (
        Reasoning("Where is München?", wire="openai_chat", model=MODEL, field_name="reasoning_content"),
        Text("\n\nOne moment 🐉."),
        ToolCall("call_r_0", "get_weather", {"city": "München"}, provider_id="a"),
        ToolCall("call_r_1", "clock", {}, provider_id="b"),
    )


@given(cuts(REPLY))
def test_any_cut_of_the_bytes_gives_the_same_events(pieces: list[bytes]) -> None:
    """W1"""
    assert decode(WIRE(), pieces) == decode(WIRE(), [REPLY])


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "filter"),
        ("error", "error"),
        ("eos", "stop"),
        ("SAFETY", "safety"),
        ("banana", "unknown"),
        (None, "unknown"),
    ],
)
def test_the_finish_is_told_in_our_words_and_kept_in_theirs(word: str | None, finish: str) -> None:
    reply = read(chunk(content="Hi"), chunk(word))
    assert (reply.end.finish, reply.finish_word) == (finish, word)


@pytest.mark.parametrize("word", ["stop", "tool_calls", "function_call", "eos", None])
def test_calls_are_there_whatever_the_finish_says(word: str | None) -> None:
    """C4"""
    reply = read(chunk(tool_calls=[call("clock", "{}")]), chunk(word), DONE)
    assert reply.end.finish == "tool_calls"
    assert [(end.tool, end.arguments) for end in reply.calls] == [("clock", {})]


COUNTS = {"prompt_tokens": 9, "completion_tokens": 5}
COUNTED: dict[str, Any] = {"choices": [], "usage": COUNTS}


@pytest.mark.parametrize(
    ("ending", "unfinished"),
    [
        ([], True),
        ([COUNTED, chunk(content="!")], True),
        ([chunk(content="!") | {"usage": COUNTS}], True),
        ([COUNTED], False),
        ([DONE], False),
        ([chunk("stop")], False),
        ([chunk("eos")], False),
    ],
    ids=[
        "nothing",
        "counts early",
        "counts with the text",
        "counts last",
        "[DONE]",
        "stop",
        "a strange word",
    ],
)
def test_a_reply_that_nobody_says_is_over_is_told_as_unfinished(
    ending: list[object], unfinished: bool
) -> None:
    """W3"""
    end = read(chunk(content="Hi"), *ending).end
    assert end.unfinished is unfinished
    assert not unfinished or end.finish == "unknown"


def test_a_whole_call_in_an_unfinished_reply_is_whole_and_the_finish_stays_unknown() -> None:
    """C4"""
    reply = read(chunk(tool_calls=[call("clock", "{}"), call("get_weather", '{"city": ', index=1)]))
    assert [end.arguments for end in reply.calls] == [{}, None]
    assert (reply.end.finish, reply.end.unfinished) == ("unknown", True)


@pytest.mark.parametrize(
    "ending", [[chunk("length"), DONE], [chunk("content_filter")], [], [chunk("tool_calls")]]
)
def test_a_call_that_was_cut_off_has_no_arguments(ending: list[object]) -> None:
    """C4: whether the finish admits it or not."""
    (end,) = read(chunk(tool_calls=[call("get_weather", '{"city": "Par')]), *ending).calls
    assert (end.arguments, end.raw) == (None, '{"city": "Par')


def test_a_call_that_was_cut_off_before_its_arguments_does_not_run_without_them() -> None:
    """C4"""
    started = chunk(tool_calls=[call("delete_all", "", id="a")])
    for ending in ([chunk("length"), DONE], []):
        (end,) = read(started, *ending).calls
        assert (end.arguments, end.raw) == (None, "")
    assert read(started, chunk("tool_calls"), DONE).calls[0].arguments == {}


@pytest.mark.parametrize(
    "pieces",
    [
        [call("get_weather", '{"city": "Rome"}'), call("clock", "")],
        [
            {"id": "a", "function": {"name": "get_weather", "arguments": {"city": "Rome"}}},
            call("clock", "{}", id="b"),
        ],
        [
            {"function": {"name": "get_weather", "arguments": '"{\\"city\\": \\"Rome\\"}"'}},
            call("clock", "null"),
        ],
    ],
)
@pytest.mark.parametrize("in_one_chunk", [True, False])
def test_parallel_calls_are_told_apart_without_a_useful_index(pieces: list[Any], in_one_chunk: bool) -> None:
    """W3"""
    chunks = [chunk(tool_calls=pieces)] if in_one_chunk else [chunk(tool_calls=[piece]) for piece in pieces]
    calls = read(*chunks, chunk("stop"), DONE).calls
    assert [(end.tool, end.arguments) for end in calls] == [("get_weather", {"city": "Rome"}), ("clock", {})]


def test_blank_lines_before_a_call_are_no_answer() -> None:
    reply = read(chunk(reasoning="hm"), chunk(content="\n\n"), chunk(tool_calls=[call("clock", "{}")]))
    assert reply.text == ""


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_comes_in_a_field_of_its_own(field: str) -> None:
    """W4"""
    reply = read(
        chunk(**{field: "h", "content": None}), chunk(**{field: "m"}), chunk(content="Hi"), chunk("stop")
    )
    assert reply.parts == (Reasoning("hm", wire="openai_chat", model=MODEL, field_name=field), Text("Hi"))


def test_reasoning_that_is_told_in_two_fields_at_once_is_told_once() -> None:
    assert read(chunk(reasoning="hm", reasoning_content="hm")).reasoning == "hm"


def test_openrouters_details_are_merged_by_index_and_kept_for_replay() -> None:
    """W4: a signature may come alone, and signed data has no words."""

    def detail(index: int, **fields: str) -> dict[str, Any]:
        return {"type": "reasoning.text", "index": index, "format": None, **fields}

    signed = {"type": "reasoning.encrypted", "data": "b64=", "index": 2, "id": "rs_1"}
    reply = read(
        chunk(reasoning=None, reasoning_details=[detail(0, text="", signature="")]),
        chunk(reasoning="Fir", reasoning_details=[detail(0, text="Fir")]),
        chunk(reasoning="st.", reasoning_details=[detail(0, text="st.")]),
        chunk(reasoning_details=[detail(0, signature="sig+/=")]),
        chunk(reasoning_details=[detail(1, text="Then.")]),
        chunk(reasoning_details=[signed]),
        chunk(content="Hi"),
        chunk("stop"),
    )
    details = [detail(0, text="First.", signature="sig+/="), detail(1, text="Then."), signed]
    assert reply.parts == (
        Reasoning("First.Then.", wire="openai_chat", model=MODEL, opaque=[*details]),
        Text("Hi"),
    )
    assert sent(RequestMessage("assistant", reply.parts))[0]["reasoning_details"] == details


def test_sealed_thoughts_without_words_are_kept_too() -> None:
    signed: dict[str, Any] = {"type": "reasoning.encrypted", "data": "b64=", "index": 0}
    reply = read(
        chunk(reasoning_details=[signed]), chunk(tool_calls=[call("clock", "{}")]), chunk("tool_calls")
    )
    assert reply.parts[0] == Reasoning("", wire="openai_chat", model=MODEL, opaque=[signed])


def test_mistral_sends_content_as_a_list() -> None:
    """W4"""
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "closed": True}
    reply = read(
        chunk(content=[thinking]), chunk(content=[{"type": "text", "text": "H"}]), chunk(content="i")
    )
    assert reply.parts == (
        Reasoning("hm", wire="openai_chat", model=MODEL, field_name="thinking"),
        Text("Hi"),
    )


def test_think_tags_in_text_are_left_to_whoever_splits_them() -> None:
    assert read(chunk(content="<think>hm</think>Hi")).parts == (Text("<think>hm</think>Hi"),)


def test_a_refusal_is_text() -> None:
    assert read(chunk(refusal="I will not."), chunk("stop")).text == "I will not."


def test_usage_counts_wherever_it_comes_and_the_last_one_wins() -> None:
    """W3, T11"""
    early = {"prompt_tokens": 9, "completion_tokens": 1}
    last = {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "total_tokens": 14,
        "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 3},
        "cost": 0.25,
    }
    usage = Usage(9, 5, cached=4, cache_written=2, reasoning=3, cost=0.25)
    inside = chunk("stop")
    inside["choices"][0]["usage"] = last
    for frames in (
        [chunk(content="Hi") | {"usage": early}, chunk("stop") | {"usage": last}, DONE],
        [{"choices": [], "usage": last}, chunk(content="Hi"), chunk("stop") | {"usage": None}],
        [chunk("stop"), {"usage": last}],
        [chunk(content="Hi"), inside],
    ):
        assert read(*frames).end.usage == usage
    assert read(chunk(content="Hi")).end.usage == Usage()


def test_output_counts_reasoning_also_where_a_provider_counts_it_apart() -> None:
    """T11"""
    apart = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 17}
    apart["completion_tokens_details"] = {"reasoning_tokens": 3}  # type: ignore[assignment]
    assert read(chunk("stop") | {"usage": apart}).end.usage == Usage(9, 8, reasoning=3)


ERROR = {"message": "the backend died", "code": 502}


@pytest.mark.parametrize(
    "failed",
    [
        {"error": ERROR},
        chunk(content="") | {"error": ERROR},
        {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error", "error": ERROR}]},
        {"object": "error", **ERROR},
    ],
)
def test_an_error_inside_a_stream_that_began_well_is_raised(failed: dict[str, Any]) -> None:
    """W3"""
    reply = read(chunk(content="Hi"), failed, DONE)
    assert reply.text == "Hi"
    assert reply.error is not None
    assert (reply.error.message, reply.error.status, reply.error.retryable) == ("the backend died", 502, True)


def test_an_overflow_inside_a_stream_is_told_as_one() -> None:
    error = read({"error": {"message": "too long", "code": "context_length_exceeded"}}).error
    assert isinstance(error, ContextOverflow)


def test_of_several_replies_only_the_first_is_read() -> None:
    """W1: `n` above 1 makes the pieces of several replies alternate."""

    def piece(index: int, text: str) -> dict[str, Any]:
        return {"choices": [{"index": index, "delta": {"content": text}, "finish_reason": None}]}

    both = {"choices": [piece(1, "no")["choices"][0], piece(0, "b")["choices"][0]]}
    assert read(piece(1, "no"), piece(0, "a"), piece(1, "no"), both, piece(0, "c"), DONE).text == "abc"
    assert (
        read(piece(1, "a"), piece(2, "no"), piece(1, "b"), DONE).text == "ab"
    )  # a server that counts from one


def test_a_call_of_the_time_before_there_could_be_several_is_a_call() -> None:
    """W1: `function_call`, in pieces."""
    pieces = [{"name": "clock", "arguments": ""}, {"arguments": '{"zone":'}, {"arguments": '"UTC"}'}]
    reply = read(*(chunk(function_call=piece) for piece in pieces), chunk("function_call"), DONE)
    assert reply.parts == (ToolCall("call_r_0", "clock", {"zone": "UTC"}),)
    assert reply.end.finish == "tool_calls"


def test_sources_are_kept_with_the_text() -> None:
    """W1: annotations of the answer, and the lists that come again in every chunk."""
    note: dict[str, Any] = {
        "type": "url_citation",
        "url_citation": {"url": "https://a.example", "title": "A", "end_index": 2},
    }
    (text,) = read(chunk(content="Hi"), chunk(annotations=[note]), chunk(annotations=[note]), DONE).parts
    assert text == Text("Hi", (Citation("https://a.example", "A", end=2, opaque=note),))
    found = {"citations": ["https://a.example"]}
    titled = {"search_results": [{"url": "https://b.example", "title": "B"}]}
    (text,) = read(chunk(content="Hi") | found, chunk(content="!") | found | titled, DONE).parts
    assert text == Text("Hi!", (Citation("https://a.example"), Citation("https://b.example", "B")))
