"""Gemini: what it sends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from dragoman.errors import ContextOverflow
from dragoman.messages.parts import Part, Text, ToolCall
from dragoman.messages.usage import Usage
from dragoman.wire.gemini import WIRE
from dragoman.wire.wire import Wire
from tests.wire.cuts import cuts
from tests.wire.gemini.bodies import REPLY, call, chunk, read, text, thought
from tests.wire.histories import MODEL
from tests.wire.replies import UNFINISHED, decode


def test_it_is_a_wire() -> None:
    wire: Wire = WIRE()
    assert wire.name == "gemini"


def test_a_reply_becomes_parts_in_the_order_in_which_it_came() -> None:
    assert decode(WIRE(), [REPLY]).parts == (
        thought("Where is München?"),
        Text("One moment 🐉."),
        thought("", "CiIB+/=="),
        ToolCall("call_r_0", "get_weather", {"city": "München"}, signature="sig", signed_by=MODEL),
        ToolCall("call_r_1", "get_weather", {"city": "Rome"}),
        ToolCall("call_r_2", "clock", {}),
    )


@given(cuts(REPLY))
def test_any_cut_of_the_bytes_gives_the_same_events(pieces: list[bytes]) -> None:
    """W1"""
    assert decode(WIRE(), pieces) == decode(WIRE(), [REPLY])


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "safety"),
        ("RECITATION", "recitation"),
        ("PROHIBITED_CONTENT", "filter"),
        ("OTHER", "error"),
        ("BRAND_NEW", "unknown"),
    ],
)
def test_the_finish_is_told_in_our_words_and_kept_in_theirs(word: str, finish: str) -> None:
    reply = read(chunk(text("Hi")), chunk(finish=word))
    assert (reply.end.finish, reply.finish_word) == (finish, word)


@pytest.mark.parametrize("word", ["STOP", "BRAND_NEW"])
def test_calls_are_there_whatever_the_finish_says(word: str) -> None:
    """C4"""
    reply = read(chunk(call("clock", {}), finish=word))
    assert reply.end.finish == "tool_calls"
    assert [(end.tool, end.arguments) for end in reply.calls] == [("clock", {})]


def test_a_stream_that_ends_before_the_reply_does_is_an_error_that_keeps_what_came() -> None:
    """T8"""
    counts = {"usageMetadata": {"promptTokenCount": 9}}
    reply = read(chunk(text("Hi", thoughtSignature="s")), chunk(call("clock", {})), counts)
    assert reply.error is not None
    assert (reply.error.message, reply.error.retryable) == (UNFINISHED, True)
    assert reply.parts[:2] == (Text("Hi"), thought("", "s"))


def test_a_prompt_that_was_blocked_is_a_reply_that_is_finished() -> None:
    reply = read({"promptFeedback": {"blockReason": "SAFETY"}})
    assert (reply.error, reply.end.finish) == (None, "safety")


def test_an_id_is_kept_where_there_is_one() -> None:
    named = {"functionCall": {"name": "clock", "args": {}, "id": "96c1su3s"}}
    assert read(chunk(named, call("clock", {}), finish="STOP")).provider_ids == ["96c1su3s", None]


@pytest.mark.parametrize(
    "message",
    [
        "Malformed function call: print(default_api.get_weather(city='Ro",
        "Malformed function call: call:default_api:get_weather{city:Rome",
        "Malformed function call: get_weather(city=Rome)",
    ],
)
def test_a_call_they_could_not_read_becomes_a_call_that_the_model_may_mend(message: str) -> None:
    """C5: it is not run, and not lost."""
    reply = read(chunk(finish="MALFORMED_FUNCTION_CALL", finishMessage=message))
    (end,) = reply.calls
    assert (end.tool, end.arguments, end.raw) == ("get_weather", None, message)
    assert reply.end.finish == "tool_calls"


def test_a_call_they_could_not_read_and_do_not_name_is_an_end_of_its_own() -> None:
    reply = read(chunk(finish="MALFORMED_FUNCTION_CALL"))
    assert (reply.calls, reply.end.finish) == ([], "malformed")


@pytest.mark.parametrize(
    ("frames", "parts"),
    [
        ([chunk(text("Hi", thoughtSignature="s"))], (Text("Hi"), thought("", "s"))),
        ([chunk(text("H")), chunk(text("i", thoughtSignature="s"))], (Text("Hi"), thought("", "s"))),
        ([chunk(text("Hi")), chunk({"thoughtSignature": "s"})], (Text("Hi"), thought("", "s"))),
        ([chunk(text("", thoughtSignature="s"))], (thought("", "s"),)),
        (
            [chunk(text("hm", thought=True, thoughtSignature="s")), chunk(text("Hi"))],
            (thought("hm", "s"), Text("Hi")),
        ),
    ],
    ids=["with the text", "with its last piece", "alone", "alone, without text", "with a thought"],
)
def test_a_signature_is_kept_wherever_it_comes_and_never_cuts_a_text(
    frames: list[Any], parts: tuple[Part, ...]
) -> None:
    """W4"""
    assert read(*frames).parts == parts


def test_what_their_own_tools_did_is_survived() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "1"}}
    result = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
    assert read(chunk(code), chunk(result), chunk(text("One.")), {"candidates": [{}]}).parts == (
        Text("One."),
    )


def test_a_question_that_is_blocked_is_filtered() -> None:
    reply = read({"promptFeedback": {"blockReason": "OTHER"}, "usageMetadata": {"promptTokenCount": 4}})
    assert (reply.end.finish, reply.finish_word, reply.end.usage) == ("filter", "OTHER", Usage(4))


def test_usage_counts_thoughts_as_output_and_comes_with_any_chunk() -> None:
    """T11"""
    early = {"usageMetadata": {"promptTokenCount": 9, "thoughtsTokenCount": 4}}
    late = {"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 5, "cachedContentTokenCount": 2}}
    reply = read(chunk(text("Hi")) | early, chunk(finish="STOP"), late)
    assert reply.end.usage == Usage(9, 9, cached=2, reasoning=4)


def test_an_error_inside_a_stream_that_began_well_is_raised() -> None:
    """W3"""
    error = {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}
    reply = read(chunk(text("Hi")), {"error": error})
    assert reply.text == "Hi"
    assert reply.error is not None
    assert (reply.error.kind, reply.error.retryable) == ("overloaded", True)


def test_an_overflow_inside_a_stream_is_told_as_one() -> None:
    message = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
    assert isinstance(read({"error": {"code": 400, "message": message}}).error, ContextOverflow)
