"""Responses: items that stream, and items that come whole."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from dragoman.errors import ContextOverflow
from dragoman.messages.message import Citation, ProviderItem, Reasoning, Text, ToolCall
from dragoman.messages.usage import Usage
from dragoman.wire.openai_responses import WIRE
from dragoman.wire.wire import Wire
from tests.wire.cuts import cuts
from tests.wire.histories import (
    MODEL,
)
from tests.wire.openai_responses.bodies import SEALED_THOUGHT, call, happens, message, over, read, thought
from tests.wire.replies import UNFINISHED, decode, sse

STREAMED = (
    happens("created", response={"status": "in_progress", "error": None}),
    happens("output_item.added", 0, item=thought()),
    happens("reasoning_summary_part.added", 0, summary_index=0),
    happens("reasoning_summary_text.delta", 0, summary_index=0, delta="Where is "),
    happens("reasoning_summary_text.delta", 0, summary_index=0, delta="München?"),
    happens("output_item.done", 0, item=SEALED_THOUGHT),
    happens("output_item.added", 1, item=message()),
    happens("output_text.delta", 1, delta="One "),
    happens("output_text.delta", 1, delta="moment 🐉."),
    happens("output_text.done", 1, text="One moment 🐉."),
    happens("output_item.done", 1, item=message("One moment 🐉.")),
    happens("output_item.added", 2, item=call("get_weather", "")),
    happens("function_call_arguments.delta", 2, delta='{"city":'),
    happens("function_call_arguments.delta", 2, delta='"München"}'),
    happens("function_call_arguments.done", 2, arguments='{"city":"München"}'),
    happens("output_item.done", 2, item=call("get_weather", '{"city":"München"}')),
    happens("output_item.added", 3, item=call("clock", "")),
    happens("output_item.done", 3, item=call("clock", "{}")),
    over(usage={"input_tokens": 9, "output_tokens": 5}),
)
PARTS = (
    Reasoning("Where is München?", wire="openai_responses", model=MODEL, opaque=SEALED_THOUGHT),
    Text("One moment 🐉."),
    ToolCall("call_r_0", "get_weather", {"city": "München"}, provider_id="call_get_weather"),
    ToolCall("call_r_1", "clock", {}, provider_id="call_clock"),
)


def test_it_is_a_wire() -> None:
    wire: Wire = WIRE()
    assert wire.name == "openai_responses"


def test_a_reply_becomes_parts_in_the_order_in_which_it_came() -> None:
    assert read(*STREAMED).parts == PARTS
    assert read(*STREAMED).end.finish == "tool_calls"


@given(cuts(sse(*STREAMED)))
def test_any_cut_of_the_bytes_gives_the_same_events(pieces: list[bytes]) -> None:
    """W1"""
    assert decode(WIRE(), pieces) == read(*STREAMED)


ITEMS = (
    thought(encrypted_content="gAAAAAB==", summary=[{"type": "summary_text", "text": "Where is München?"}]),
    message("One ", "moment 🐉."),
    call("get_weather", '{"city":"München"}'),
    call("clock", "{}"),
)


@pytest.mark.parametrize("numbered", [True, False])
def test_items_may_come_only_when_they_are_done(numbered: bool) -> None:
    done = [
        happens("output_item.done", place if numbered else None, item=item)
        for place, item in enumerate(ITEMS)
    ]
    parts = read(*done, over(output=[*ITEMS])).parts
    assert parts[1:] == PARTS[1:]
    assert parts[0] == Reasoning("Where is München?", None, "openai_responses", MODEL, ITEMS[0])


def test_items_may_come_only_with_the_end() -> None:
    assert read(over(output=[*ITEMS])).parts[1:] == PARTS[1:]


def test_without_places_items_are_told_apart_by_their_names() -> None:
    nameless = ({key: value for key, value in frame.items() if key != "output_index"} for frame in STREAMED)
    ids = {0: "rs_1", 1: "msg_1", 2: "fc_get_weather", 3: "fc_clock"}
    named = [
        new if "item" in new else new | {"item_id": ids.get(old.get("output_index", -1))}
        for new, old in zip(nameless, STREAMED, strict=True)
    ]
    assert read(*named).parts == PARTS


def test_arguments_may_begin_before_the_call_has_a_name() -> None:
    reply = read(
        happens("function_call_arguments.delta", 0, delta='{"city":'),
        happens("function_call_arguments.delta", 0, delta='"Rome"}'),
        happens("output_item.done", 0, item=call("get_weather", '{"city":"Rome"}')),
        over(),
    )
    assert [(end.tool, end.arguments) for end in reply.calls] == [("get_weather", {"city": "Rome"})]
    assert reply.provider_ids == ["call_get_weather"]


def test_a_thought_that_ends_after_the_answer_began_loses_nothing() -> None:
    words = [{"type": "reasoning_text", "text": "hm"}]
    reply = read(
        happens("reasoning_text.delta", 0, delta="hm"),
        happens("output_text.delta", 1, delta="Hi"),
        happens("output_item.done", 1, item=message("Hi")),
        happens("output_item.done", 0, item=thought(content=words)),
        over(),
    )
    assert (reply.reasoning, reply.text) == ("hm", "Hi")
    assert reply.parts[-1] == Reasoning("", None, "openai_responses", MODEL, thought(content=words))


def test_parts_of_a_summary_are_thoughts_of_their_own() -> None:
    reply = read(
        happens("reasoning_summary_part.added", 0, summary_index=0),
        happens("reasoning_summary_text.delta", 0, delta="First."),
        happens("reasoning_summary_part.added", 0, summary_index=1),
        happens("reasoning_summary_text.delta", 0, delta="Then."),
        happens("output_item.done", 0, item=SEALED_THOUGHT),
    )
    assert [part.text for part in reply.parts if isinstance(part, Reasoning)] == ["First.", "Then."]


def test_a_thought_that_is_only_a_name_is_not_kept() -> None:
    """Dragoman asks the provider to store nothing, so an ID alone would refer to nothing."""
    assert read(happens("output_item.done", 0, item=thought()), over()).parts == ()


def test_what_happens_on_their_side_is_survived() -> None:
    searched = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    reply = read(
        happens("output_item.added", 0, item=searched),
        happens("web_search_call.searching", 0),
        {"keepalive": True},
        happens("output_item.done", 0, item=searched),
        happens("mcp_call_arguments.delta", 1, delta="{"),
        happens("output_text.annotation.added", 2, annotation={}),
        happens("output_text.delta", 2, delta="Hi"),
        over(output=[searched, message("Hi")]),
        b"[DONE]",
    )
    item, text = reply.parts
    assert isinstance(item, ProviderItem)
    assert (item.kind, item.opaque) == ("web_search_call", searched)
    assert text == Text("Hi")
    assert reply.end.finish == "stop"


def test_a_message_keeps_its_phase_and_its_sources() -> None:
    """A source from the stream is not listed again when the message is done (W1)."""
    note: dict[str, Any] = {
        "type": "url_citation",
        "url": "https://a.example",
        "title": "A",
        "start_index": 0,
        "end_index": 2,
    }
    file: dict[str, Any] = {"type": "file_citation", "file_id": "file_1", "filename": "a.pdf", "index": 2}
    said = {**message("Hi"), "phase": "commentary"}
    said["content"] = [{"type": "output_text", "text": "Hi", "annotations": [note, file]}]
    delta = happens("output_text.delta", 0, delta="Hi")
    added = happens("output_text.annotation.added", 0, annotation=note)
    for frames in ((delta, added), ()):
        reply = read(*frames, happens("output_item.done", 0, item=said), over())
        url = Citation("https://a.example", "A", None, 0, 2, note)
        assert reply.parts == (Text("Hi", (url, Citation(None, "a.pdf", opaque=file)), "commentary"),)
    torn = read(
        happens("output_text.delta", 0, delta="Hi"),
        happens("output_text.annotation.added", 0, annotation=note),
        happens("output_item.done", 0, item={"type": "message"}),
        over(),
    )
    assert torn.parts == (Text("Hi", (url,)),)


def test_a_call_that_takes_a_text_has_it_as_its_input() -> None:
    """W1"""
    item = {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "*** Begin"}
    reply = read(
        happens("output_item.added", 0, item={**item, "input": ""}),
        happens("custom_tool_call_input.delta", 0, delta="*** Begin"),
        happens("output_item.done", 0, item=item),
        over(),
    )
    assert reply.parts == (ToolCall("call_r_0", "patch", {"input": "*** Begin"}, provider_id="c"),)
    assert reply.end.finish == "tool_calls"


def test_a_refusal_is_text() -> None:
    assert read(happens("refusal.delta", 0, delta="I will not."), over()).text == "I will not."
    whole = {"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]}
    assert read(happens("output_item.done", 0, item=whole), over()).text == "I will not."


@pytest.mark.parametrize(
    ("frames", "finish", "word"),
    [
        ([over()], "stop", "completed"),
        ([over("incomplete", incomplete_details={"reason": "max_output_tokens"})], "length", "incomplete"),
        ([over("incomplete", incomplete_details={"reason": "content_filter"})], "filter", "incomplete"),
        ([over("incomplete")], "unknown", "incomplete"),
    ],
)
def test_the_finish_is_told_in_our_words_and_kept_in_theirs(
    frames: list[object], finish: str, word: str
) -> None:
    reply = read(happens("output_text.delta", 0, delta="Hi"), *frames)
    assert (reply.end.finish, reply.finish_word) == (finish, word)


@pytest.mark.parametrize("frames", [[], [b"[DONE]"]], ids=["nothing", "a borrowed [DONE]"])
def test_a_stream_that_ends_before_the_reply_does_is_an_error_that_keeps_what_came(
    frames: list[object],
) -> None:
    """T8"""
    reply = read(
        happens("output_text.delta", 0, delta="Hi"),
        happens("output_item.added", 1, item=call("get_weather", "")),
        happens("function_call_arguments.delta", 1, delta='{"city"'),
        *frames,
    )
    assert reply.error is not None
    assert (reply.error.message, reply.error.retryable) == (UNFINISHED, True)
    assert reply.parts[0] == Text("Hi")
    assert [(end.arguments, end.raw) for end in reply.calls] == [(None, '{"city"')]


@pytest.mark.parametrize("arguments", ["", '{"city": "Par'])
def test_a_call_that_was_cut_off_has_no_arguments(arguments: str) -> None:
    """C4"""
    reply = read(
        happens("output_item.added", 0, item=call("get_weather", "")),
        happens("function_call_arguments.delta", 0, delta=arguments),
        happens("output_item.done", 0, item=call("get_weather", arguments, status="incomplete")),
        over("incomplete", incomplete_details={"reason": "max_output_tokens"}),
    )
    assert [(end.arguments, end.raw) for end in reply.calls] == [(None, arguments)]
    assert reply.end.finish == "length"


def test_usage_is_read_from_the_end() -> None:
    """T11"""
    tokens = {
        "input_tokens": 9,
        "output_tokens": 5,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens_details": {"reasoning_tokens": 3},
    }
    assert read(over(usage=tokens)).end.usage == Usage(9, 5, cached=4, reasoning=3)
    assert read(over(usage=None)).end.usage == Usage()


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "error", "code": "server_error", "message": "the backend died", "param": None},
        {"type": "error", "error": {"code": "server_error", "message": "the backend died"}},
        {"error": {"code": "server_error", "message": "the backend died"}},
        over("failed", error={"code": "server_error", "message": "the backend died"}),
        happens("completed", response={"error": {"code": "server_error", "message": "the backend died"}}),
    ],
)
def test_an_error_inside_a_stream_that_began_well_is_raised(frame: dict[str, Any]) -> None:
    """W3"""
    reply = read(happens("output_text.delta", 0, delta="Hi"), frame)
    assert reply.text == "Hi"
    assert reply.error is not None
    assert (reply.error.message, reply.error.retryable) == ("the backend died", True)


def test_an_overflow_inside_a_stream_is_told_as_one() -> None:
    error = {"code": "context_length_exceeded", "message": "too long"}
    assert isinstance(read(over("failed", error=error)).error, ContextOverflow)
