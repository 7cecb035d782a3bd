"""Messages: what Anthropic and its imitators send, and the many rules by which they refuse a history."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import ContextOverflow
from dragoman.messages.parts import CallState, File, Part, Reasoning, Text, ToolCall, ToolResult
from dragoman.messages.request import Request, RequestMessage, ToolSpec
from dragoman.messages.usage import Usage
from dragoman.wire.anthropic_messages import WIRE
from dragoman.wire.anthropic_messages.shapes import THINKING
from dragoman.wire.lowering import NO_RESULT, result_text
from dragoman.wire.quirks import Quirks
from dragoman.wire.wire import Wire
from tests.wire.cuts import cuts
from tests.wire.histories import (
    ATTACHMENTS,
    CLOCK,
    FILES,
    IMAGE,
    MODEL,
    OTHER_MODEL,
    SIGNED,
    WEATHER,
    calls_of,
    requests,
)
from tests.wire.replies import UNFINISHED, Reply, decode, sse

NAME = "anthropic_messages"
SIGNATURE = SIGNED[NAME][0]


def start(index: int, type: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": type, **fields}}


def delta(index: int, type: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": type, **fields}}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def ended(word: str | None, **usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": word}, "usage": usage}


def text_block(text: str, index: int = 0) -> list[dict[str, Any]]:
    return [start(index, "text", text=""), delta(index, "text_delta", text=text), stop(index)]


def called(name: str, *pieces: str, index: int = 0, **fields: Any) -> list[dict[str, Any]]:
    return [
        start(index, "tool_use", id=f"toolu_{index}", name=name, **{"input": {}, **fields}),
        *(delta(index, "input_json_delta", partial_json=piece) for piece in pieces),
        stop(index),
    ]


def read(*frames: object) -> Reply:
    return decode(WIRE(), [sse(*frames)])


# ── decode ────────────────────────────────────────────────────────────────────────────────────────


def test_it_is_a_wire() -> None:
    wire: Wire = WIRE()
    assert wire.name == NAME


REPLY = sse(
    {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}},
    start(0, "thinking", thinking="", signature=""),
    {"type": "ping"},
    delta(0, "thinking_delta", thinking="Where is "),
    delta(0, "thinking_delta", thinking="München?"),
    delta(0, "signature_delta", signature="EqQB"),
    delta(0, "signature_delta", signature="+/="),
    stop(0),
    start(1, "redacted_thinking", data="EtgB=="),
    stop(1),
    *text_block("One moment 🐉.", 2),
    *called("get_weather", "", '{"city":', ' "München"}', index=3),
    *called("clock", "", index=4),
    ended("tool_use", output_tokens=5),
    {"type": "message_stop"},
)


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
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "length"),
        ("refusal", "filter"),
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
    """C4: its block is closed all the same."""
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


def test_texts_with_citations_are_one_text() -> None:
    reply = read(
        *text_block("It says: "),
        start(1, "text", text="", citations=[]),
        delta(1, "citations_delta", citation={"cited_text": "rain", "url": "https://example.org"}),
        delta(1, "text_delta", text="rain"),
        stop(1),
        *text_block(".", 2),
        ended("end_turn"),
    )
    assert reply.parts == (Text("It says: rain."),)


def test_a_thought_of_which_only_the_signature_is_shown_is_kept() -> None:
    """W4"""
    reply = read(start(0, "thinking", thinking=""), delta(0, "signature_delta", signature="sig"), stop(0))
    assert reply.parts == (Reasoning("", "sig", NAME, MODEL),)


def test_a_thought_that_broke_off_has_no_signature() -> None:
    reply = read(start(0, "thinking", thinking=""), delta(0, "thinking_delta", thinking="hm"))
    assert reply.parts == (Reasoning("hm", None, NAME, MODEL),)


SEARCH: dict[str, Any] = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "rain"},
}
FOUND: dict[str, Any] = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"url": "x"}],
}


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
        Reasoning("", None, NAME, MODEL, {**SEARCH}),
        Reasoning("", None, NAME, MODEL, {**FOUND}),
        Text("Rain."),
        Reasoning("", None, NAME, MODEL, {"type": "compaction", "content": "in short"}),
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


# ── encode ────────────────────────────────────────────────────────────────────────────────────────


def body_of(request: Request, **quirks: Any) -> dict[str, Any]:
    return WIRE(Quirks(**quirks)).encode(request, ATTACHMENTS)


def sent(*messages: RequestMessage, **extra: Any) -> list[dict[str, Any]]:
    messages_sent: list[dict[str, Any]] = body_of(Request(MODEL, messages, extra=extra))["messages"]
    return [
        {**message, "content": [unmarked(one) for one in message["content"]]} for message in messages_sent
    ]


def unmarked(block: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key != "cache_control"}


def user(text: str) -> RequestMessage:
    return RequestMessage("user", (Text(text),))


def assistant(*parts: Part) -> RequestMessage:
    return RequestMessage("assistant", parts)


def done(id: str, text: str = "21 °C", **fields: Any) -> ToolCall:
    return ToolCall(
        id, "get_weather", {"city": "Rome"}, state=CallState.COMPLETED, result=ToolResult(text), **fields
    )


def blocks_of(body: dict[str, Any], type: str) -> list[dict[str, Any]]:
    return [block for turn in body["messages"] for block in turn["content"] if block["type"] == type]


def assert_valid(request: Request, body: dict[str, Any]) -> None:
    """What the API checks before it reads a history (R5)."""
    expected = list(calls_of(request))
    seen: set[str] = set()
    waiting: list[str] = []
    for place, turn in enumerate(body["messages"]):
        assert turn["role"] == ("user", "assistant")[place % 2], "the sides alternate, the person's first"
        assert turn["content"]
        for block in turn["content"]:
            if block["type"] == "tool_result":
                assert turn["role"] == "user"
                assert block["tool_use_id"] == waiting.pop(0)
                assert block["content"][0]["text"] == result_text(expected.pop(0))
                assert not block.get("is_error") or len(block["content"]) == 1
            elif turn["role"] == "user":
                assert not waiting, "the results come first, and all of them"
                assert block["type"] in ("text", "image", "document")
            elif block["type"] == "tool_use":
                assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", block["name"])
                assert re.fullmatch(r"[A-Za-z0-9_-]+", block["id"])
                assert block["id"] not in seen
                assert isinstance(block["input"], dict)
                seen.add(block["id"])
                waiting.append(block["id"])
            else:
                assert block["type"] in ("text", *THINKING)
            assert block["type"] != "text" or block["text"].strip()
        assert turn["role"] == "user" or turn["content"][-1]["type"] not in THINKING
    assert body["messages"][-1]["role"] == "user"
    assert not waiting
    assert not expected, "every call is sent"
    assert ("tools" in body) or not seen, "calls come with tools"


def cache_marks(value: object) -> int:
    if isinstance(value, list):
        return sum(map(cache_marks, value))
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(map(cache_marks, value.values()))
    return 0


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "reasoning_effort": st.sampled_from(["none", "minimal", "high"]),
        "reasoning_budget": st.sampled_from([512, 4096, 100_000]),
        "max_tokens": st.sampled_from([16, 1500, 64_000]),
        "temperature": st.sampled_from([0, 0.5, 2]),
        "top_p": st.just(0.5),
    },
)


@given(
    requests(),
    OPTIONS,
    st.sampled_from([None, "auto", "required", "clock"]),
    st.sampled_from([MODEL, "claude-x"]),
)
def test_any_history_becomes_valid(request: Request, options: Any, choice: str | None, model: str) -> None:
    """R5, R2, C2"""
    request.options, request.tool_choice, request.model = options, choice, model
    body = body_of(request)
    assert_valid(request, body)
    assert cache_marks(body) <= 4
    assert_thinking_is_allowed(body)
    assert body_of(request) == body  # R2: the same bytes for the same history


def assert_thinking_is_allowed(body: dict[str, Any]) -> None:
    """The rules that hold while a model thinks."""
    thinking = body.get("thinking")
    if thinking is None:
        return
    assert body.get("tool_choice", {}).get("type") not in ("any", "tool")
    assert body.keys().isdisjoint({"temperature", "top_p"})
    if thinking["type"] == "enabled":
        assert 1024 <= thinking["budget_tokens"] < body["max_tokens"]
        last = body["messages"][-2:]
        if any(block["type"] == "tool_result" for block in last[-1]["content"]):
            assert last[0]["content"][0]["type"] in THINKING


@given(requests())
def test_thoughts_go_back_only_where_they_came_from_and_as_they_came(request: Request) -> None:
    """R5"""
    ours = [
        part
        for message in request.messages
        for part in message.parts
        if isinstance(part, Reasoning) and part.wire == NAME and part.model == MODEL and part.signature
    ]
    thoughts = blocks_of(body_of(request), "thinking")
    stored = iter(ours)
    for thought in thoughts:  # some have nothing behind them that could be said; the rest is in order
        assert any(thought == thinking(part.text) for part in stored)


def thinking(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": SIGNATURE}


def test_sealed_thoughts_are_replayed_byte_for_byte_and_in_order() -> None:
    """R5"""
    redacted = {"type": "redacted_thinking", "data": "EtgB=="}
    reply = decode(WIRE(), [REPLY])
    body = body_of(Request(MODEL, (user("Weather?"), assistant(*reply.parts))))
    assert [block["type"] for block in body["messages"][1]["content"]] == [
        *THINKING,
        "text",
        "tool_use",
        "tool_use",
    ]
    assert body["messages"][1]["content"][:2] == [
        {"type": "thinking", "thinking": "Where is München?", "signature": "EqQB+/="},
        redacted,
    ]
    body = body_of(Request(OTHER_MODEL, (user("Weather?"), assistant(*reply.parts))))
    assert not blocks_of(body, "thinking") + blocks_of(body, "redacted_thinking")


def test_all_results_follow_their_calls_at_once_and_before_what_the_person_says() -> None:
    assert sent(
        user("Weather?"), assistant(Text("One moment."), done("a"), done("b", "22 °C")), user("So?")
    ) == [
        {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "One moment."},
                {"type": "tool_use", "id": "a", "name": "get_weather", "input": {"city": "Rome"}},
                {"type": "tool_use", "id": "b", "name": "get_weather", "input": {"city": "Rome"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "21 °C"}]},
                {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "22 °C"}]},
                {"type": "text", "text": "So?"},
            ],
        },
    ]


def test_a_call_that_did_not_succeed_says_so() -> None:
    failed = ToolCall("c", "clock", state=CallState.FAILED, result=ToolResult("no clock"))
    result = sent(user("Time?"), assistant(failed))[-1]["content"][0]
    assert (result["is_error"], result["content"]) == (True, [{"type": "text", "text": "no clock"}])
    unfinished = sent(user("Time?"), assistant(ToolCall("c", "clock")))[-1]["content"][0]
    assert (unfinished["is_error"], unfinished["content"][0]["text"]) == (True, NO_RESULT)


def test_pictures_stand_in_the_result_that_brought_them() -> None:
    result = ToolResult("see picture", attachments=(IMAGE,))
    shown = ToolCall("c", "draw", state=CallState.COMPLETED, result=result)
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}
    assert sent(user("Draw."), assistant(shown))[-1]["content"][0]["content"] == [
        {"type": "text", "text": "see picture"},
        {"type": "image", "source": source},
    ]


def test_files_are_sent_in_the_form_each_kind_has_here() -> None:
    (message,) = sent(RequestMessage("user", FILES))
    assert message["content"] == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/dog.jpg"}},
        {"type": "text", "text": "[a file, audio/wav, cannot be shown here]"},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
            "title": "report.pdf",
        },
        {"type": "text", "text": "[note.txt]\nfür später"},
        {"type": "text", "text": "[a file, video/mp4 at https://example.org/film.mp4, cannot be shown here]"},
    ]


def test_a_picture_inside_its_address_is_sent_as_bytes() -> None:
    (message,) = sent(RequestMessage("user", (File("image/gif", url="data:image/gif;base64,R0lGOD=="),)))
    assert message["content"][0]["source"] == {
        "type": "base64",
        "media_type": "image/gif",
        "data": "R0lGOD==",
    }


def test_a_history_begins_and_ends_with_the_person() -> None:
    assert [turn["role"] for turn in sent(assistant(Text("Welcome.")))] == ["user", "assistant", "user"]
    assert [turn["role"] for turn in sent()] == ["user"]


def test_tools_that_are_gone_are_declared_but_cannot_be_called() -> None:
    body = body_of(Request(MODEL, (user("Weather?"), assistant(done("a")), user("Sum up."))))
    assert [tool["name"] for tool in body["tools"]] == ["get_weather"]
    assert body["tool_choice"] == {"type": "none"}
    assert "tools" not in body_of(Request(MODEL, (user("Hi"),)))


# ── the provider's own tools ──────────────────────────────────────────────────────────────────────


def own(*blocks: dict[str, Any]) -> list[Part]:
    return [Reasoning("", None, NAME, MODEL, block) for block in blocks]


WITH_SEARCH = {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}


def types(turns: list[dict[str, Any]]) -> list[list[str]]:
    return [[block["type"] for block in turn["content"]] for turn in turns]


def test_what_the_servers_own_tools_did_goes_back_while_they_are_asked_for() -> None:
    reply = assistant(*own(SEARCH, FOUND), Text("Rain."))
    assert types(sent(user("Weather?"), reply, user("Thanks."), **WITH_SEARCH))[1] == [
        "server_tool_use",
        "web_search_tool_result",
        "text",
    ]
    assert types(sent(user("Weather?"), reply, user("Thanks.")))[1] == ["text"]


def test_a_paused_reply_is_sent_back_to_go_on_from() -> None:
    paused = assistant(Text("I look."), *own(SEARCH))
    assert types(sent(user("Weather?"), paused, **WITH_SEARCH)) == [["text"], ["text", "server_tool_use"]]
    waiting = assistant(*own(SEARCH), done("a"))  # its result comes after that of our own tool
    assert types(sent(user("Weather?"), waiting, **WITH_SEARCH))[1:] == [
        ["server_tool_use", "tool_use"],
        ["tool_result"],
    ]
    later = assistant(*own(FOUND), Text("Rain."))
    assert types(sent(user("Weather?"), waiting, later, user("Thanks."), **WITH_SEARCH))[3] == [
        "web_search_tool_result",
        "text",
    ]


def test_half_of_a_server_call_is_left_out_once_the_conversation_has_moved_on() -> None:
    torn = assistant(Text("I look."), *own(SEARCH))
    assert types(sent(user("Weather?"), torn, user("Never mind."), **WITH_SEARCH))[1] == ["text"]
    orphan = assistant(*own(FOUND), Text("Rain."))
    assert types(sent(user("Weather?"), orphan, user("Thanks."), **WITH_SEARCH))[1] == ["text"]


# ── tools and options ─────────────────────────────────────────────────────────────────────────────


def asking(model: str = "claude-sonnet-4-5", **fields: Any) -> dict[str, Any]:
    return body_of(Request(model, (user("Hi"),), **fields))


def test_tools_and_options_take_their_places_and_extra_wins() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"maximum": {"type": "integer", "maximum": 9, "minLength": 1}},
        "required": ["maximum"],
    }
    request = Request(
        MODEL,
        (user("Hi"),),
        system="Be brief.",
        tools=(WEATHER, CLOCK),
        tool_choice="clock",
        options={
            "temperature": 1.5,
            "max_tokens": 10,
            "top_p": 0.9,
            "stop": ["END", "\n"],
            "parallel_tool_calls": False,
            "response_schema": {**schema},
            "unheard_of": 1,
        },
        extra={"max_tokens": 20, "metadata": {"user_id": "u"}},
    )
    mark = {"cache_control": {"type": "ephemeral"}}
    assert body_of(request) == {
        "model": MODEL,
        "stream": True,
        "max_tokens": 20,
        "system": [{"type": "text", "text": "Be brief.", **mark}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", **mark}]}],
        "tools": [
            {
                "name": "get_weather",
                "description": WEATHER.description,
                "input_schema": WEATHER.parameters,
            },
            {"name": "clock", "description": CLOCK.description, "input_schema": CLOCK.parameters, **mark},
        ],
        "tool_choice": {"type": "tool", "name": "clock", "disable_parallel_tool_use": True},
        "temperature": 1,
        "stop_sequences": ["END"],
        "output_config": {
            "format": {
                "type": "json_schema",
                "schema": {
                    "type": "object",
                    "properties": {"maximum": {"type": "integer"}},
                    "required": ["maximum"],
                    "additionalProperties": False,
                },
            }
        },
        "metadata": {"user_id": "u"},
    }


def test_a_providers_own_tools_come_beside_ours() -> None:
    body = asking(tools=(CLOCK,), extra=WITH_SEARCH)
    assert [tool["name"] for tool in body["tools"]] == ["clock", "web_search"]


@pytest.mark.parametrize(
    ("choice", "sent_as"),
    [("auto", {"type": "auto"}), ("none", {"type": "none"}), ("required", {"type": "any"}), (None, None)],
)
def test_a_tool_choice_is_said_in_their_words(choice: str | None, sent_as: object) -> None:
    assert asking(tools=(CLOCK,), tool_choice=choice).get("tool_choice") == sent_as
    assert "tool_choice" not in asking(tool_choice=choice)


def test_quirks_leave_out_what_a_server_refuses() -> None:
    request = Request(MODEL, (user("Hi"),), tools=(CLOCK,), tool_choice="required")
    request.options["parallel_tool_calls"] = False
    body = body_of(request, no_forced_choice=True, no_parallel_flag=True)
    assert body["tool_choice"] == {"type": "auto"}


def test_a_limit_is_always_named() -> None:
    assert asking("claude-3-haiku-20240307")["max_tokens"] == 4_096
    assert asking("anthropic/claude-sonnet-4.5")["max_tokens"] == 32_000
    assert asking("kimi-k2")["max_tokens"] == 8_192


def test_thinking_is_asked_for_as_each_generation_knows_it() -> None:
    high = {"reasoning_effort": "high"}
    assert asking("claude-sonnet-4-5", options=high)["thinking"] == {
        "type": "enabled",
        "budget_tokens": 20_000,
    }
    newer = asking("claude-opus-4-7", options=high | {"temperature": 0.3})
    assert newer["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert newer["output_config"] == {"effort": "high"}
    assert "temperature" not in newer
    assert "thinking" not in asking("claude-3-5-haiku-latest", options=high)
    assert "thinking" not in asking(options={"reasoning_effort": "none"})
    assert asking(options={"reasoning_budget": 2_000})["thinking"]["budget_tokens"] == 2_000
    assert asking(options=high | {"max_tokens": 5_000})["thinking"]["budget_tokens"] == 3_976


def test_a_forced_choice_goes_before_thinking() -> None:
    body = asking(tools=(CLOCK,), tool_choice="required", options={"reasoning_effort": "high"})
    assert body["tool_choice"] == {"type": "any"}
    assert "thinking" not in body


def test_a_model_does_not_think_over_results_of_calls_it_made_without_thinking() -> None:
    """R5: a budget is refused there. In the next turn it thinks again."""
    options: dict[str, Any] = {"reasoning_effort": "high"}
    loop = (user("Weather?"), assistant(done("a")))
    assert "thinking" not in body_of(Request(MODEL, loop, options=options))
    thought = (user("Weather?"), assistant(Reasoning("hm", "sig", NAME, MODEL), done("a")))
    assert "thinking" in body_of(Request(MODEL, thought, options=options))
    over = (*loop, assistant(Text("21 °C.")), user("Thanks."))
    assert "thinking" in body_of(Request(MODEL, over, options=options))


def test_the_prefix_and_the_last_two_user_turns_are_marked_for_the_cache() -> None:
    """R2"""
    messages = tuple(one for n in range(4) for one in (user(f"q{n}"), assistant(Text(f"a{n}"))))
    body = body_of(Request(MODEL, (*messages, user("last")), system="Be brief.", tools=(WEATHER, CLOCK)))
    marked = [turn["content"][-1]["text"] for turn in body["messages"] if cache_marks(turn)]
    assert marked == ["q3", "last"]
    assert ["cache_control" in tool for tool in body["tools"]] == [False, True]
    assert cache_marks(body) == 4


def test_alternatives_at_the_top_of_a_schema_are_laid_over_each_other() -> None:
    either = ToolSpec(
        "either",
        "One or the other.",
        {
            "anyOf": [
                {"$ref": "#/$defs/A"},
                {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]},
            ],
            "$defs": {"A": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}},
        },
    )
    schema = asking(tools=(either,))["tools"][0]["input_schema"]
    assert schema["type"] == "object"
    assert schema["properties"] == {"a": {"type": "string"}, "b": {"type": "integer"}}
    assert schema["required"] == []
    assert "anyOf" not in schema
