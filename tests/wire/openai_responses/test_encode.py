"""Responses: a history and options that are theirs to accept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from pydantic_core import from_json

from dragoman.messages.message import CallState, ProviderItem, Reasoning, Text, ToolCall, ToolResult
from dragoman.messages.request import Request, RequestMessage
from dragoman.wire.lowering import NO_RESULT, result_text
from dragoman.wire.openai_responses import WIRE
from tests.wire.histories import (
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
from tests.wire.openai_responses.bodies import SEALED_THOUGHT, body_of, done, sent, thought, user


@given(requests())
def test_any_history_becomes_valid(request: Request) -> None:
    """Each call has one result, after the calls of its step and before any other item (R5, C2)."""
    body = body_of(request)
    expected = list(calls_of(request))
    waiting: list[str] = []
    seen: set[str] = set()
    answering = False
    thinking = False
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind == "function_call_output":
            answering = True
            assert item["call_id"] == waiting.pop(0)
            text = item["output"] if isinstance(item["output"], str) else item["output"][0]["text"]
            assert text == result_text(expected.pop(0))
            continue
        if answering:
            assert not waiting
            answering = False
        if kind == "function_call":
            assert isinstance(from_json(item["arguments"]), dict)
            assert 0 < len(item["call_id"]) <= 40
            assert item["call_id"] not in seen
            seen.add(item["call_id"])
            waiting.append(item["call_id"])
        elif kind == "message":
            assert item["role"] == "assistant" or not waiting
            assert item["role"] == "assistant" or not thinking
            assert item["content"]
        thinking = kind == "reasoning"
    assert not waiting
    assert not thinking
    assert not expected
    assert body_of(request) == body  # R2


@given(requests())
def test_reasoning_goes_back_only_where_it_came_from_and_as_it_came(request: Request) -> None:
    """R5"""
    signed = [item for item in body_of(request)["input"] if item.get("type") == "reasoning"]
    assert all(item == SIGNED["openai_responses"][1] for item in signed)
    ours = [
        part
        for message in request.messages
        for part in message.parts
        if isinstance(part, Reasoning)
        and part.wire == "openai_responses"
        and part.model == MODEL
        and part.opaque
    ]
    assert len(signed) <= len(ours)


def test_a_reply_is_replayed_as_it_came_with_its_results_behind_it() -> None:
    before = Reasoning("hm", None, "openai_responses", MODEL, SEALED_THOUGHT)
    foreign = Reasoning("hm", None, "openai_responses", OTHER_MODEL, SEALED_THOUGHT)
    reply = RequestMessage(
        "assistant", (before, Text("One moment."), foreign, done("call_1"), done("call_2", "22 °C"))
    )
    arguments = '{"city":"Rome"}'
    assert sent(user("Weather?"), reply) == [
        {"role": "user", "content": "Weather?"},
        SEALED_THOUGHT,
        {"role": "assistant", "content": "One moment."},
        {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": arguments},
        {"type": "function_call", "call_id": "call_2", "name": "get_weather", "arguments": arguments},
        {"type": "function_call_output", "call_id": "call_1", "output": "21 °C"},
        {"type": "function_call_output", "call_id": "call_2", "output": "22 °C"},
    ]


def test_broken_and_unfinished_calls_are_closed() -> None:
    broken = ToolCall("c", "clock", raw='{"a', state=CallState.FAILED, result=ToolResult("not JSON"))
    called, waiting, answer, none = sent(RequestMessage("assistant", (broken, ToolCall("d", "clock"))))
    assert from_json(called["arguments"]) == {"invalid_json": '{"a'}
    assert from_json(waiting["arguments"]) == {}
    assert (answer["output"], none["output"]) == ("not JSON", NO_RESULT)


def test_pictures_stay_inside_the_result_that_brought_them() -> None:
    result = ToolResult("see picture", attachments=(IMAGE,))
    drawn = ToolCall("c", "draw", state=CallState.COMPLETED, result=result)
    assert sent(RequestMessage("assistant", (drawn,)))[1]["output"] == [
        {"type": "input_text", "text": "see picture"},
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw==", "detail": "auto"},
    ]


def test_files_are_sent_in_the_form_each_kind_has_here() -> None:
    (item,) = sent(RequestMessage("user", FILES))
    assert item["content"] == [
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw==", "detail": "auto"},
        {"type": "input_image", "image_url": "https://example.org/dog.jpg", "detail": "auto"},
        {"type": "input_text", "text": "[a file, audio/wav, cannot be shown here]"},
        {
            "type": "input_file",
            "filename": "report.pdf",
            "file_data": "data:application/pdf;base64,JVBERg==",
        },
        {"type": "input_text", "text": "[note.txt]\nfür später"},
        {
            "type": "input_text",
            "text": "[a file, video/mp4 at https://example.org/film.mp4, cannot be shown here]",
        },
    ]


def test_tools_and_options_take_their_places_and_extra_wins() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {}}, "additionalProperties": False}
    request = Request(
        MODEL,
        (user("Hi"),),
        system="Be brief.",
        tools=(WEATHER,),
        tool_choice="get_weather",
        options={
            "temperature": 0.5,
            "max_tokens": 10,
            "stop": ["\n"],
            "reasoning_effort": "low",
            "reasoning_summary": "auto",
            "parallel_tool_calls": False,
            "response_schema": schema,
        },
        extra={"temperature": 1, "service_tier": "flex"},
    )
    assert body_of(request) == {
        "model": MODEL,
        "input": [{"role": "user", "content": "Hi"}],
        "instructions": "Be brief.",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "tools": [
            {
                "type": "function",
                "name": "get_weather",
                "description": WEATHER.description,
                "parameters": WEATHER.parameters,
                "strict": False,
            }
        ],
        "tool_choice": {"type": "function", "name": "get_weather"},
        "parallel_tool_calls": False,
        "max_output_tokens": 10,
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": {"type": "json_schema", "name": "response", "schema": schema, "strict": False}},
        "temperature": 1,
        "service_tier": "flex",
    }


def test_quirks_leave_out_what_a_server_refuses() -> None:
    request = Request(
        MODEL,
        (user("Hi"),),
        tools=(CLOCK,),
        tool_choice="required",
        options={"parallel_tool_calls": True, "response_schema": {"type": "object"}},
    )
    body = body_of(
        request, no_strict=True, no_forced_choice=True, no_parallel_flag=True, no_encrypted_reasoning=True
    )
    assert body["tool_choice"] == "auto"
    assert "strict" not in body["tools"][0]
    assert "strict" not in body["text"]["format"]
    assert body.keys().isdisjoint({"include", "parallel_tool_calls"})


def test_what_they_did_themselves_goes_back_in_its_place_behind_its_thought() -> None:
    """The order reasoning, search, reasoning, call keeps each reasoning item before its result (R5)."""
    first, second = (thought(id=id, encrypted_content=id) for id in ("a", "b"))
    search: dict[str, Any] = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    ours: Any = {"wire": "openai_responses", "model": MODEL}
    parts = (
        Reasoning("", opaque=first, **ours),
        ProviderItem("web_search_call", "rain", opaque=search, **ours),
        Reasoning("", opaque=second, **ours),
        Text("So.", phase="commentary"),
    )
    said = {"role": "assistant", "content": "So.", "phase": "commentary"}
    assert sent(RequestMessage("assistant", parts)) == [first, search, second, said]
    alone = sent(RequestMessage("assistant", parts[:2]), user("Go on."))
    assert alone == [first, search, {"role": "user", "content": "Go on."}]
    others = tuple(replace(part, model=OTHER_MODEL) for part in parts[:3])
    assert sent(RequestMessage("assistant", (*others, Text("So.")))) == [
        {"role": "assistant", "content": "So."}
    ]


def test_hosted_tools_stand_beside_ours_and_a_tool_that_takes_a_text_is_called_with_one() -> None:
    """R9"""
    patch: dict[str, Any] = {"type": "custom", "name": "patch"}
    call = ToolCall(
        "c", "patch", {"input": "*** Begin"}, state=CallState.COMPLETED, result=ToolResult("patched")
    )
    request = Request(
        MODEL,
        (user("Hi"), RequestMessage("assistant", (call,))),
        tools=(CLOCK, replace(CLOCK, name="patch")),
        tool_choice="web_search",
        options={"hosted_tools": ["web_search", patch]},
    )
    body = WIRE().encode(request)
    tools = body["tools"]
    assert isinstance(tools, list)
    assert [tool["type"] for tool in tools if isinstance(tool, dict)] == ["function", "web_search", "custom"]
    assert tools[1:] == [{"type": "web_search"}, patch]
    assert body["tool_choice"] == {"type": "web_search"}
    assert body["input"] == [
        {"role": "user", "content": "Hi"},
        {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "patched"},
    ]
