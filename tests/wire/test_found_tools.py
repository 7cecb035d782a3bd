"""A wire that can load tools at the place of a search does so, which keeps the cached prefix (L2)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.messages.message import CallState, Text, ToolCall, ToolResult
from dragoman.messages.request import FIND_TOOLS, Request, RequestMessage, ToolSpec
from dragoman.wire import anthropic_messages, gemini, openai_chat, openai_responses
from dragoman.wire.endpoint import Quirks
from tests.wire.openai_responses.bodies import happens, over, read

CLAUDE, GPT = "claude-sonnet-4-6", "gpt-5.4"
SEARCH = ToolSpec(FIND_TOOLS, "Find tools.", {"type": "object", "properties": {"query": {"type": "string"}}})
WATER = ToolSpec("water", "Water the plants.", {"type": "object", "properties": {}}, found=True)
PAINT = ToolSpec("paint", "Paint the fence.", {"type": "object", "properties": {}}, found=True)


def asked(text: str = "Water the plants.") -> RequestMessage:
    return RequestMessage("user", (Text(text),))


def found(*names: str) -> RequestMessage:
    value: Any = {"tools": [{"name": name, "description": ""} for name in names]}
    result = ToolResult(json.dumps(value), value=value)
    call = ToolCall("call_1", FIND_TOOLS, {"query": "plants"}, state=CallState.COMPLETED, result=result)
    return RequestMessage("assistant", (call,))


def request(model: str, *specs: ToolSpec, messages: tuple[RequestMessage, ...]) -> Request:
    return Request(model, messages, tools=(SEARCH, *specs), tool_choice="auto")


FIRST = (asked(),)
SECOND = (asked(), found("water"))


def messages_body(one: Request, *, tool_search: bool = True) -> dict[str, Any]:
    return anthropic_messages.WIRE(Quirks(tool_search=tool_search)).encode(one)


def responses_body(one: Request, *, tool_search: bool = True) -> dict[str, Any]:
    return openai_responses.WIRE(Quirks(tool_search=tool_search)).encode(one)


def test_messages_refer_to_what_was_found() -> None:
    body = messages_body(request(CLAUDE, WATER, messages=SECOND))
    assert [(tool["name"], tool.get("defer_loading")) for tool in body["tools"]] == [
        (FIND_TOOLS, None),
        ("water", True),
    ]
    assert body["messages"][-1]["content"][0]["content"] == [{"type": "tool_reference", "tool_name": "water"}]
    marked = [tool["name"] for tool in body["tools"] if "cache_control" in tool]
    assert marked == [FIND_TOOLS]  # a deferred tool cannot have a cache mark


def test_what_was_called_by_its_name_or_lost_in_a_summary_is_declared() -> None:
    body = messages_body(request(CLAUDE, WATER, PAINT, messages=SECOND))
    assert [tool["name"] for tool in body["tools"] if "defer_loading" not in tool] == [FIND_TOOLS, "paint"]
    body = messages_body(request(CLAUDE, WATER, messages=FIRST))
    assert all("defer_loading" not in tool for tool in body["tools"])


def test_a_tool_that_is_gone_is_not_referred_to() -> None:
    body = messages_body(request(CLAUDE, messages=SECOND))
    assert body["messages"][-1]["content"][0]["content"][0]["type"] == "text"


def test_responses_search_with_their_own_tool() -> None:
    first = responses_body(request(GPT, messages=FIRST))
    second = responses_body(request(GPT, WATER, messages=SECOND))
    (search,) = first["tools"]
    assert (search["type"], search["execution"]) == ("tool_search", "client")
    assert second["tools"] == first["tools"]
    assert second["input"][: len(first["input"])] == first["input"]
    made, output = second["input"][-2:]
    assert (made["type"], made["arguments"]) == ("tool_search_call", {"query": "plants"})
    assert (output["type"], output["call_id"]) == ("tool_search_output", made["call_id"])
    assert [tool["name"] for tool in output["tools"]] == ["water"]


def test_a_search_of_theirs_that_we_run_is_a_call() -> None:
    item = {
        "type": "tool_search_call",
        "id": "ts_1",
        "call_id": "call_1",
        "execution": "client",
        "arguments": {"query": "plants"},
        "status": "completed",
    }
    reply = read(happens("output_item.done", 0, item=item), over(output=[item]))
    (call,) = reply.calls
    assert (call.tool, call.arguments) == (FIND_TOOLS, {"query": "plants"})
    ran = {**item, "execution": "server"}
    assert read(happens("output_item.done", 0, item=ran), over(output=[ran])).calls == []


@pytest.mark.parametrize(
    "body",
    [
        messages_body(request(CLAUDE, WATER, messages=SECOND), tool_search=False),
        messages_body(request("claude-3-5-haiku", WATER, messages=SECOND)),
        responses_body(request(GPT, WATER, messages=SECOND), tool_search=False),
        responses_body(request("gpt-5.3", WATER, messages=SECOND)),
        openai_chat.WIRE(Quirks(tool_search=True)).encode(request(GPT, WATER, messages=SECOND)),
        gemini.WIRE(Quirks(tool_search=True)).encode(request("gemini-3-pro", WATER, messages=SECOND)),
    ],
)
def test_elsewhere_they_are_tools_like_any_other(body: dict[str, Any]) -> None:
    text = json.dumps(body)
    assert not any(word in text for word in ("defer_loading", "tool_reference", "tool_search"))
    assert text.count('"water"') >= 1
    assert '"find_tools"' in text
