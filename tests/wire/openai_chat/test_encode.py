"""Chat completions: histories and options that all of these servers accept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeGuard

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from dragoman.errors import ConfigError
from dragoman.messages.message import CallState, Error, File, Reasoning, Summary, Text, ToolCall, ToolResult
from dragoman.messages.request import Request, RequestMessage
from dragoman.wire.endpoint import Quirks
from dragoman.wire.lowering import NO_RESULT, result_text
from dragoman.wire.openai_chat import WIRE
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
from tests.wire.openai_chat.bodies import DONE, body_of, chunk, done, read, sent, user


def assert_valid(request: Request, messages: list[dict[str, Any]], quirks: Quirks) -> None:
    """Check what a strict server checks before it reads a history (R5)."""
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
    parts = [part for message in request.messages for part in message.parts]
    ours_by_name = any(_is_ours(part) and part.field_name for part in parts)
    for message in body_of(request)["messages"]:
        details += message.get("reasoning_details", [])
        assert "reasoning_content" not in message or ours_by_name
    ours: Any = SIGNED["openai_chat"][1]
    assert all(detail in ours for detail in details)
    foreign = [
        RequestMessage(message.role, tuple(part for part in message.parts if not _is_ours(part)))
        for message in request.messages
    ]
    request.messages = tuple(foreign)
    names = {"reasoning_details", "reasoning_content", "reasoning"}
    assert not any(names & message.keys() for message in body_of(request)["messages"])


def _is_ours(part: object) -> TypeGuard[Reasoning]:
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
    with pytest.raises(ConfigError, match="did not read"):
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


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_goes_back_under_the_name_it_came_by_with_its_calls(name: str) -> None:
    """A model trained on its reasoning between calls receives it back on any server (W4)."""
    piece = {"index": 0, "id": "c", "function": {"name": "clock", "arguments": "{}"}}
    reply = read(chunk(**{name: "What "}), chunk(**{name: "time?"}), chunk(tool_calls=[piece]), DONE)
    (body, *_) = sent(RequestMessage("assistant", reply.parts))
    assert body[name] == "What time?"
    assert {"reasoning_content", "reasoning"} & body.keys() == {name}
    foreign = tuple(
        replace(part, model=OTHER_MODEL) if isinstance(part, Reasoning) else part for part in reply.parts
    )
    assert name not in sent(RequestMessage("assistant", foreign))[0]
    assert name not in sent(RequestMessage("assistant", (reply.parts[0], Text("Noon."))))[0]


def test_mistral_gets_its_thoughts_back_as_blocks() -> None:
    """W4"""
    block = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    piece = {"index": 0, "id": "c", "function": {"name": "clock", "arguments": "{}"}}
    reply = read(chunk(content=[block]), chunk(content="A moment."), chunk(tool_calls=[piece]), DONE)
    (body, *_) = sent(RequestMessage("assistant", reply.parts))
    assert body["content"] == [block, {"type": "text", "text": "A moment."}]
    assert not {"thinking", "reasoning", "reasoning_content"} & body.keys()


def test_gemini_gets_its_mark_on_a_call_back() -> None:
    marked = {"index": 0, "id": "", "function": {"name": "clock", "arguments": "{}"}}
    marked["extra_content"] = {"google": {"thought_signature": "sig"}}
    (part,) = read(chunk(tool_calls=[marked]), chunk("stop"), DONE).parts
    reply = RequestMessage("assistant", (part,))
    assert sent(reply, call_signatures=True)[0]["tool_calls"][0]["extra_content"] == marked["extra_content"]
    assert sent(reply)[0]["tool_calls"][0]["extra_content"] == marked["extra_content"]
    assert isinstance(part, ToolCall)
    foreign = RequestMessage("assistant", (replace(part, signed_by=OTHER_MODEL),))
    assert "extra_content" not in sent(foreign)[0]["tool_calls"][0]


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
