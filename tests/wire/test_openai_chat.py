"""Chat completions: what the many servers of this wire send, and what all of them accept."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from dragoman.errors import ConfigError, ContextOverflow
from dragoman.messages.parts import CallState, Error, File, Reasoning, Summary, Text, ToolCall, ToolResult
from dragoman.messages.request import Request, RequestMessage
from dragoman.messages.usage import Usage
from dragoman.wire.lowering import NO_RESULT, result_text
from dragoman.wire.openai_chat import WIRE
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
from tests.wire.replies import Reply, decode, sse

DONE = b"[DONE]"


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def read(*frames: object) -> Reply:
    return decode(WIRE(), [sse(*frames)])


def call(name: str, arguments: str, *, index: int = 0, id: str | None = None) -> dict[str, Any]:
    return {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}


# ── decode ────────────────────────────────────────────────────────────────────────────────────────


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
        Reasoning("Where is München?", wire="openai_chat", model=MODEL),
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
        ("eos", "unknown"),
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
    assert reply.parts == (Reasoning("hm", wire="openai_chat", model=MODEL), Text("Hi"))


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
    assert reply.parts == (Reasoning("hm", wire="openai_chat", model=MODEL), Text("Hi"))


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


# ── encode ────────────────────────────────────────────────────────────────────────────────────────


def body_of(request: Request, **quirks: Any) -> dict[str, Any]:
    return WIRE(Quirks(**quirks)).encode(request, ATTACHMENTS)


def sent(*messages: RequestMessage, **quirks: Any) -> list[dict[str, Any]]:
    messages_sent: list[dict[str, Any]] = body_of(Request(MODEL, messages), **quirks)["messages"]
    return messages_sent


def user(text: str) -> RequestMessage:
    return RequestMessage("user", (Text(text),))


def done(id: str, text: str = "21 °C", **fields: Any) -> ToolCall:
    return ToolCall(
        id, "get_weather", {"city": "Rome"}, state=CallState.COMPLETED, result=ToolResult(text), **fields
    )


def assert_valid(request: Request, messages: list[dict[str, Any]], quirks: Quirks) -> None:
    """What a strict server checks before it reads a history (R5)."""
    expected = list(calls_of(request))
    seen: set[str] = set()
    waiting: list[str] = []
    before = None
    for message in messages:
        role = message["role"]
        if role == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            assert message["content"] == result_text(expected.pop(0))
            before = role
            continue
        assert not waiting, "every call is answered before anything else comes"
        assert role != before, "the same role twice in a row"
        assert not (quirks.reply_after_results and before == "tool" and role == "user")
        before = role
        content = message["content"]
        assert (content is None and message.get("tool_calls")) or content
        for part in content if isinstance(content, list) else ():
            assert part["type"] in ("text", "image_url", "input_audio", "file")
            assert part["type"] != "text" or part["text"].strip()
        for one in message.get("tool_calls", ()):
            assert role == "assistant"
            assert isinstance(from_json(one["function"]["arguments"]), dict)
            assert_name(one["function"]["name"])
            assert_id(one["id"], quirks)
            assert one["id"] not in seen
            seen.add(one["id"])
            waiting.append(one["id"])
    assert not waiting
    assert not expected, "every call is sent"


def assert_name(name: str) -> None:
    assert name
    assert name.replace("_", "").replace("-", "").isalnum()
    assert len(name) <= 64


def assert_id(id: str, quirks: Quirks) -> None:
    if quirks.tool_ids == "mistral":
        assert len(id) == 9
        assert id.isascii()
        assert id.isalnum()
    elif quirks.tool_ids == "kimi":
        assert id.startswith("functions.")
    else:
        assert 0 < len(id) <= 40


ANY_QUIRKS = st.builds(
    Quirks,
    tool_ids=st.sampled_from(["ours", "mistral", "kimi"]),
    reasoning_field=st.sampled_from([None, "reasoning_content"]),
    call_signatures=st.booleans(),
    reply_after_results=st.booleans(),
)


@given(requests(), ANY_QUIRKS)
def test_any_history_becomes_valid(request: Request, quirks: Quirks) -> None:
    """R5, C2"""
    body = WIRE(quirks).encode(request, ATTACHMENTS)
    messages: Any = body["messages"]
    assert [message["role"] for message in messages].count("system") == bool(request.system)
    assert_valid(request, messages, quirks)
    assert WIRE(quirks).encode(request, ATTACHMENTS) == body  # R2: the same bytes for the same history


@given(requests())
def test_reasoning_goes_back_only_where_it_came_from_and_as_it_came(request: Request) -> None:
    """R5"""
    details: list[Any] = []
    for message in body_of(request)["messages"]:
        details += message.get("reasoning_details", [])
        assert "reasoning_content" not in message
    ours: Any = SIGNED["openai_chat"][1]
    assert all(detail in ours for detail in details)
    foreign = [
        RequestMessage(message.role, tuple(part for part in message.parts if not _is_ours(part)))
        for message in request.messages
    ]
    request.messages = tuple(foreign)
    assert not any("reasoning_details" in message for message in body_of(request)["messages"])


def _is_ours(part: object) -> bool:
    return isinstance(part, Reasoning) and part.wire == "openai_chat" and part.model == MODEL


def test_a_call_is_followed_by_its_result_and_what_was_said_beside_it_stands_before() -> None:
    reply = RequestMessage(
        "assistant", (Text("One moment."), done("call_1"), done("call_2", "22 °C", raw=None))
    )
    assert sent(user("Weather?"), reply) == [
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": "One moment.",
            "tool_calls": [
                {
                    "id": id,
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": '{"city":"Rome"}'},
                }
                for id in ("call_1", "call_2")
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "21 °C"},
        {"role": "tool", "tool_call_id": "call_2", "content": "22 °C"},
    ]


def test_arguments_that_were_no_json_are_replayed_as_json_that_says_so() -> None:
    """Some servers refuse a history with broken JSON for ever."""
    broken = ToolCall("c", "clock", raw='{"a', state=CallState.FAILED, result=ToolResult("not JSON"))
    call = sent(RequestMessage("assistant", (broken,)))[0]["tool_calls"][0]
    assert from_json(call["function"]["arguments"]) == {"invalid_json": '{"a'}


def test_a_call_that_was_never_finished_is_closed_and_one_under_review_is_not_shown() -> None:
    reviewed = ToolCall("c", "clock", state=CallState.REVIEWING, result=ToolResult("secret"))
    for call in (ToolCall("c", "clock"), reviewed):
        assert sent(RequestMessage("assistant", (call,)))[1]["content"] == NO_RESULT


def test_the_model_sees_what_it_asked_for_and_the_note_on_what_was_run_instead() -> None:
    changed = ToolCall(
        "c",
        "clock",
        {"zone": "UTC"},
        state=CallState.COMPLETED,
        result=ToolResult("12:00", note="A person changed zone to UTC."),
        original={"zone": "X"},
    )
    assistant, tool = sent(RequestMessage("assistant", (changed,)))
    assert assistant["tool_calls"][0]["function"]["arguments"] == '{"zone":"X"}'
    assert tool["content"] == "12:00\n\nA person changed zone to UTC."


def test_pictures_in_results_follow_in_a_users_message_and_withheld_ones_do_not() -> None:
    result = ToolResult("see picture", attachments=(IMAGE,))
    shown = ToolCall("c", "draw", state=CallState.COMPLETED, result=result)
    assert sent(RequestMessage("assistant", (shown,)), user("Nice."))[2:] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "[Result of draw]"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
                {"type": "text", "text": "Nice."},
            ],
        }
    ]
    withheld = ToolCall("c", "draw", state=CallState.WITHHELD, result=result)
    assert [message["role"] for message in sent(RequestMessage("assistant", (withheld,)))] == [
        "assistant",
        "tool",
    ]


def test_files_are_sent_in_the_form_each_kind_has_here() -> None:
    (message,) = sent(RequestMessage("user", FILES))
    assert message["content"] == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
        {"type": "image_url", "image_url": {"url": "https://example.org/dog.jpg"}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {
            "type": "file",
            "file": {"filename": "report.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
        },
        {"type": "text", "text": "[note.txt]\nfür später"},
        {"type": "text", "text": "[a file, video/mp4 at https://example.org/film.mp4, cannot be shown here]"},
    ]


def test_a_wire_without_blobs_says_what_is_missing() -> None:
    with pytest.raises(ConfigError, match="nobody has read it"):
        WIRE().encode(Request(MODEL, (RequestMessage("user", (File("image/png", blob="sha"),)),)))


def test_errors_blanks_and_bare_thoughts_are_not_sent_and_summaries_are_the_users() -> None:
    nothing = RequestMessage("assistant", (Reasoning("hm"), Text(" \n"), Error("broke off")))
    summary = RequestMessage("assistant", (Summary("They spoke of rain.", None),))
    assert sent(summary, user("a"), nothing, user("b")) == [
        {"role": "user", "content": "[Summary of what came before]\nThey spoke of rain.\n\na\n\nb"}
    ]


def test_deepseek_gets_its_reasoning_back_with_its_calls_and_foreign_reasoning_not_at_all() -> None:
    ours = Reasoning("hm", wire="openai_chat", model=MODEL)
    foreign = Reasoning("hm", wire="openai_chat", model=OTHER_MODEL)
    quirk = {"reasoning_field": "reasoning_content"}
    assert sent(RequestMessage("assistant", (ours, done("c"))), **quirk)[0]["reasoning_content"] == "hm"
    assert sent(RequestMessage("assistant", (foreign, done("c"))), **quirk)[0]["reasoning_content"] == ""
    assert "reasoning_content" not in sent(RequestMessage("assistant", (ours, Text("Hi"))), **quirk)[0]
    assert "reasoning_content" not in sent(RequestMessage("assistant", (ours, done("c"))))[0]


def test_gemini_gets_its_mark_on_a_call_back() -> None:
    marked = {"index": 0, "id": "", "function": {"name": "clock", "arguments": "{}"}}
    marked["extra_content"] = {"google": {"thought_signature": "sig"}}
    (part,) = read(chunk(tool_calls=[marked]), chunk("stop"), DONE).parts
    reply = RequestMessage("assistant", (part,))
    assert sent(reply, call_signatures=True)[0]["tool_calls"][0]["extra_content"] == marked["extra_content"]
    assert "extra_content" not in sent(reply)[0]["tool_calls"][0]


def test_tools_and_options_take_their_places_and_extra_wins() -> None:
    schema: dict[str, Any] = {"title": "A city!", "type": "object", "additionalProperties": False}
    request = Request(
        MODEL,
        (user("Hi"),),
        system="Be brief.",
        tools=(WEATHER, CLOCK),
        tool_choice="clock",
        options={
            "temperature": 0.5,
            "max_tokens": 10,
            "top_p": None,
            "stop": ["\n"],
            "reasoning_effort": "low",
            "parallel_tool_calls": False,
            "response_schema": schema,
            "unheard_of": 1,
        },
        extra={"temperature": 1, "service_tier": "flex"},
    )
    assert body_of(request) == {
        "model": MODEL,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in (WEATHER, CLOCK)
        ],
        "tool_choice": {"type": "function", "function": {"name": "clock"}},
        "parallel_tool_calls": False,
        "stop": ["\n"],
        "reasoning_effort": "low",
        "max_completion_tokens": 10,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "A_city_", "schema": schema, "strict": True},
        },
        "temperature": 1,
        "service_tier": "flex",
    }


def test_quirks_leave_out_what_a_server_refuses() -> None:
    request = Request(
        MODEL,
        (user("Hi"),),
        tools=(CLOCK,),
        tool_choice="required",
        options={"max_tokens": 10, "parallel_tool_calls": True, "response_schema": {"type": "object"}},
    )
    body = body_of(
        request,
        max_tokens_field="max_tokens",
        no_strict=True,
        no_forced_choice=True,
        no_stream_usage=True,
        no_parallel_flag=True,
    )
    assert body["max_tokens"] == 10
    assert body["tool_choice"] == "auto"
    assert body["response_format"]["json_schema"] == {"name": "response", "schema": {"type": "object"}}
    assert body.keys().isdisjoint({"max_completion_tokens", "stream_options", "parallel_tool_calls"})


def test_without_tools_nothing_is_said_of_tools() -> None:
    request = Request(MODEL, (user("Hi"),), tool_choice="auto", options={"parallel_tool_calls": True})
    assert body_of(request).keys() == {"model", "messages", "stream", "stream_options"}
