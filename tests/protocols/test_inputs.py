"""The bodies of the AI SDK and of AG-UI are read as their clients mean them (F1)."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.errors import BadRequest
from dragoman.messages import events as e
from dragoman.messages.message import CallState, Citation, Message, ProviderItem, Text, ToolCall, ToolResult
from dragoman.messages.request import ToolSpec
from dragoman.messages.usage import Usage
from dragoman.server.protocols.ag_ui.run_input import (
    RunAgentInput,
    changed_by,
    check_state,
    difference,
    merged,
)
from dragoman.server.protocols.ag_ui.run_writer import AgentRun, thread_messages
from dragoman.server.protocols.ai_sdk.ui_history import chat_messages
from dragoman.server.protocols.ai_sdk.ui_input import KEPT, UIChatBody, UIMessage

SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


def ui(id: str, role: str = "user", *parts: dict[str, Any]) -> dict[str, Any]:
    return {"id": id, "role": role, "parts": [*parts] or [{"type": "text", "text": id}]}


def chat(**fields: Any) -> UIChatBody:
    return UIChatBody.model_validate({"id": "chat", **fields})


@pytest.mark.parametrize(
    ("fields", "continues", "answer"),
    [
        ({"messages": [ui("1")]}, True, None),
        ({"message": ui("1")}, True, None),
        ({"messages": [], "message": ui("1")}, False, None),
        ({"messages": [ui("1"), ui("2")]}, False, None),
        ({"messages": [ui("1")], "messageId": "1"}, False, None),
        ({"messages": [ui("1")], "trigger": "regenerate-message"}, False, None),
        ({"messages": [ui("1"), ui("2", "assistant")]}, False, "2"),
        ({"messages": [ui("1"), ui("2", "assistant"), ui("3")], "messageId": "2"}, False, "2"),
        ({"messages": [ui("1"), ui("2", "assistant")], "messageId": "1"}, False, None),
        ({"messages": [ui("1"), ui("2", "assistant")], "trigger": "regenerate-message"}, False, None),
        ({"messages": [ui("1"), ui("2", "assistant")], "messageId": "none"}, False, "2"),
    ],
)
def test_a_chat_says_whether_it_goes_on_and_with_which_answer(
    fields: dict[str, Any], continues: bool, answer: str | None
) -> None:
    body = chat(**fields)
    assert (body.continues, body.gone_on_with and body.gone_on_with.id) == (continues, answer)


def test_a_chat_brings_its_prompt_and_its_tools() -> None:
    tools = {"a": {"description": "A.", "parameters": SCHEMA}, "b": {"inputSchema": SCHEMA}, "c": {}}
    messages = [ui("One.", "system"), ui("hi"), ui("Two.", "system")]
    options = chat(messages=messages, tools=tools, system="First.", model="m").turn_options()
    assert (options.system, options.model) == ("First.\n\nOne.\n\nTwo.", "m")
    assert [*options.client_tools] == [
        ToolSpec("a", "A.", SCHEMA),
        ToolSpec("b", "", SCHEMA),
        ToolSpec("c", "", {}),
    ]
    assert chat(messages=[ui("hi")], system="").turn_options().system is None
    with pytest.raises(BadRequest):
        chat(messages=[ui("1", "system", {"type": "file", "url": "x"})]).turn_options()


def test_what_only_the_page_reads_is_kept_beside_a_message() -> None:
    data: list[dict[str, Any]] = [
        {"type": "data-a", "data": 1, "id": "x"},
        {"type": "text", "text": "t"},
        {"type": "data-b", "data": 2},
    ]
    message = UIMessage.model_validate({**ui("1", "user", *data), "metadata": {"mood": "glad"}})
    shown = [{"type": "data-a", "data": 1, "id": "x"}, {"type": "data-b", "data": 2}]
    assert message.kept == {KEPT: {"metadata": {"mood": "glad"}, "data": shown}}
    assert UIMessage.model_validate(ui("1")).kept == {}
    calls: list[dict[str, Any]] = [
        {"type": kind, "toolCallId": id} for kind, id in (("tool-x", "1"), ("dynamic-tool", "2"), ("x", "3"))
    ]
    calls.append({"type": "tool-x"})
    assert [one.call for one in UIMessage.model_validate(ui("1", "assistant", *calls)).calls] == ["1", "2"]


def run_of(**fields: Any) -> RunAgentInput:
    return RunAgentInput.model_validate({"threadId": "t", "runId": "r", **fields})


def test_a_run_brings_its_prompts_context_state_and_tools() -> None:
    run = run_of(
        messages=[
            {"role": "system", "content": "One."},
            {"role": "user", "content": "hi"},
            {"role": "developer", "content": [{"type": "text", "text": "Two."}]},
        ],
        context=[
            {"description": "Where", "value": "Rome"},
            {"description": "What", "value": {"b": 1, "a": 2}},
        ],
        tools=[{"name": "look", "description": "Look.", "parameters": SCHEMA}, {"name": "bare"}],
    )
    options = run.turn_options("guide", None)
    assert (options.system, options.agent) == (
        'One.\n\nTwo.\n\nWhere: Rome\n\nWhat: {"a":2,"b":1}',
        "guide",
    )
    assert [*options.client_tools] == [ToolSpec("look", "Look.", SCHEMA), ToolSpec("bare", "", {})]
    assert (options.state, run_of().turn_options(None, {}).system) == (None, None)
    state: dict[str, Any] = {"n": 1}
    told = run_of().turn_options(None, state)
    assert (told.system, told.state) == ('The application\'s state, as the client has it: {"n":1}', state)
    assert [spec.name for spec in told.client_tools] == ["update_state"]
    own = run_of(tools=[{"name": "update_state"}]).turn_options(None, state)
    assert [spec.description for spec in own.client_tools] == [""]
    assert run_of().turn_options(None, [1]).client_tools == ()
    for part in (7, {"type": "binary", "url": "/x"}):
        with pytest.raises(BadRequest):
            run_of(messages=[{"role": "system", "content": [part]}]).turn_options(None, None)


def test_a_state_is_as_long_as_a_model_can_read() -> None:
    check_state("x" * 99_998)
    with pytest.raises(BadRequest, match="limit is 100 kB"):
        check_state("x" * 99_999)
    made = [
        ToolCall(f"{n}", tool, {"changes": {f"{n}": n}}, state=state, result=ToolResult(""))
        for n, (tool, state) in enumerate(
            [
                ("update_state", CallState.COMPLETED),
                ("update_state", CallState.REJECTED),
                ("other", CallState.COMPLETED),
                ("update_state", CallState.COMPLETED),
            ]
        )
    ]
    messages = [Message(f"{one.id}", "conv", None, "assistant", (one,)) for one in made]
    assert changed_by(messages, {"a": 1}) == {"a": 1, "0": 0, "3": 3}


def test_a_change_of_the_state_is_told_by_what_differs() -> None:
    before: dict[str, Any] = {"a": {"b": 1, "x": 0}, "list": [1], "same": {"c": 1}, "~/": 1, "gone": 1}
    changes: dict[str, Any] = {
        "a": {"b": 2, "x": None},
        "list": [1, 2],
        "~/": 2,
        "new": {"d": 1},
        "gone": None,
    }
    after = merged(before, changes)
    assert after == {"a": {"b": 2}, "list": [1, 2], "same": {"c": 1}, "~/": 2, "new": {"d": 1}}
    assert sorted(difference(before, after), key=lambda one: str(one["path"])) == [
        {"op": "replace", "path": "/a/b", "value": 2},
        {"op": "remove", "path": "/a/x"},
        {"op": "remove", "path": "/gone"},
        {"op": "replace", "path": "/list", "value": [1, 2]},
        {"op": "add", "path": "/new", "value": {"d": 1}},
        {"op": "replace", "path": "/~0~1", "value": 2},
    ]
    assert (merged([1], {"a": 1}), merged({"a": 1}, 2), [*difference(before, before)]) == ({"a": 1}, 2, [])


def test_a_thread_is_written_with_the_results_of_its_calls() -> None:
    done = ToolCall("c1", "look", {"at": 1}, state=CallState.COMPLETED, result=ToolResult("seen"))
    refused = ToolCall("c2", "look", {}, state=CallState.REJECTED, result=ToolResult("no"))
    open_call = ToolCall("c3", "look", {})
    message = Message("m", "conv", None, "assistant", (Text("So."), done, refused, open_call))
    functions = [{"name": "look", "arguments": text} for text in ('{"at":1}', "{}", "{}")]
    calls = [{"id": f"c{n}", "type": "function", "function": one} for n, one in enumerate(functions, 1)]
    assert [*thread_messages(message)] == [
        {"id": "m", "role": "assistant", "content": "So.", "toolCalls": calls},
        {"id": "c1-result", "role": "tool", "toolCallId": "c1", "content": "seen"},
        {"id": "c2-result", "role": "tool", "toolCallId": "c2", "content": "no", "error": "no"},
    ]
    asked = Message("u", "conv", None, "user", (Text("hi"),))
    assert [*thread_messages(asked)] == [{"id": "u", "role": "user", "content": "hi"}]


def test_a_run_is_written_event_by_event() -> None:
    run = AgentRun("thread", "run")
    events: list[e.Event] = [
        e.StepStart(1, 2, "m1", None, "some/model"),
        e.CallInputStart("c1", "look"),
        e.CallInputDelta("c1", '{"at"'),
        e.CallInputDelta("c1", ": 1}"),
        e.CallInputEnd("c1", "look", {"at": 1}),
        e.CallInputStart("c2", "look"),
        e.CallInputDelta("c2", "at=2"),
        e.CallInputEnd("c2", "look", {"at": 2}),
        e.CallEnd("c1", "look", {"at": 1}, CallState.COMPLETED, ToolResult("seen")),
        e.StepEnd(1, Usage()),
        e.TurnEnd("completed", "", Usage(input=3, output=4), finish="stop"),
    ]
    told = [one for event in events for one in run.events(event)]
    assert [one["type"] for one in told] == [
        "STEP_STARTED",
        *("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_ARGS", "TOOL_CALL_END"),
        *("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"),
        *("TOOL_CALL_RESULT", "STEP_FINISHED", "RUN_FINISHED"),
    ]
    assert told[0]["stepName"] == told[-2]["stepName"] == "step 1, attempt 2"
    assert told[1] == {
        **{"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "look"},
        "parentMessageId": "m1-attempt-2",
    }
    assert [one["delta"] for one in told if "delta" in one] == ['{"at"', ": 1}", '{"at":2}']
    assert (told[-3]["role"], told[-3]["metadata"]) == ("tool", {"state": "completed"})
    last: Any = told[-1]
    assert [(one["model"], one["totalTokens"]) for one in last["usage"]] == [("some/model", 7)]


def test_a_stored_chat_is_shown_under_the_ids_that_the_page_knows() -> None:
    cited = Text("Seen.", citations=(Citation("https://a.example", "A"),))
    searched = ProviderItem("web_search")
    refused = ToolCall("c2", "wipe", {}, state=CallState.REJECTED, result=ToolResult("no"))
    done = ToolCall("c1", "look", {"at": 1}, state=CallState.COMPLETED, result=ToolResult("seen"))
    path = [
        Message("u1", "conv", None, "user", (Text("hi"),), "t1", metadata={"mark": "mine"}),
        Message("a1", "conv", "u1", "assistant", (done, refused), "t1", finish="calls"),
        Message("a2", "conv", "a1", "assistant", (searched, cited), "t1", finish="stop"),
        Message("u2", "conv", "a2", "user", (Text("by a plugin"),), "t1", author="plugin"),
        Message("a3", "conv", "u2", "assistant", (Text("More."),), "t1", finish="stop"),
        Message("u3", "conv", "a3", "user", (Text("and?"),), "t2"),
        Message("a4", "conv", "u3", "assistant", (Text("still"),), "t2"),
    ]
    shown: list[Any] = [*chat_messages(path, "mark", live=("t2",), brought=("look",), approvals=True)]
    assert [(one["id"], one["role"]) for one in shown] == [
        *(("mine", "user"), ("t1", "assistant"), ("a2", "assistant"), ("u3", "user"))
    ]
    parts = [part for part in shown[1]["parts"] if part["type"] != "step-start"]
    assert [part["type"] for part in parts][:4] == ["tool-look", "dynamic-tool", "data-item", "text"]
    assert (parts[1]["state"], parts[1]["approval"]) == ("output-denied", {"id": "c2", "approved": False})
    assert (parts[0]["state"], parts[0]["input"], parts[0]["output"]) == (
        "output-available",
        {"at": 1},
        "seen",
    )
    assert [part["url"] for part in parts if part["type"] == "source-url"] == ["https://a.example"]
