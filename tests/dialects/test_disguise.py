"""Requests to models without native calls are plain text, in an order that every wire accepts (D4)."""

from __future__ import annotations

import pytest

from dragoman.dialects.dialect import NAMES, dialect
from dragoman.dialects.told import disguise
from dragoman.messages.message import (
    CallState,
    Error,
    File,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.messages.request import Request, RequestMessage, ToolSpec
from tests.dialects.replies import TOOLS

IMAGE = File("image/png", url="http://x/y.png")


def _call(id: str, tool: str, text: str | None = None, **arguments: str) -> ToolCall:
    if text is None:
        return ToolCall(id, tool, dict(arguments))
    return ToolCall(id, tool, dict(arguments), state=CallState.COMPLETED, result=ToolResult(text))


def _request(*messages: RequestMessage, tools: tuple[ToolSpec, ...] = TOOLS, **more: object) -> Request:
    return Request("acme/model", messages, system="Be kind.", tools=tools, **more)  # type: ignore[arg-type]


def _user(text: str) -> RequestMessage:
    return RequestMessage("user", (Text(text),))


@pytest.mark.parametrize("name", NAMES)
def test_d4_calls_become_text_that_reads_the_same_and_results_a_users_message(name: str) -> None:
    language = dialect(name)
    request = _request(
        _user("What is in a and b?"),
        RequestMessage(
            "assistant",
            (
                Text("I look."),
                _call("c1", "read_file", "AAA", path="a"),
                _call("c2", "read_file", "BBB", path="b"),
            ),
        ),
        RequestMessage("assistant", (Text("A and B."),)),
        _user("Thanks."),
    )
    disguised = disguise(request, language)

    assert disguised.tools == ()
    assert disguised.tool_choice is None
    assert disguised.system == language.system("Be kind.", TOOLS)
    assert [message.role for message in disguised.messages] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert all(isinstance(part, Text) for message in disguised.messages for part in message.parts)
    [written], [results] = disguised.messages[1].parts, disguised.messages[2].parts
    assert isinstance(written, Text)
    assert isinstance(results, Text)
    assert written.text.startswith("I look.\n")
    parsed = language.parse(written.text.removeprefix("I look.\n"), TOOLS)
    assert [call.arguments for call in parsed.calls] == [{"path": "a"}, {"path": "b"}]
    assert results.text.index("AAA") < results.text.index("BBB")
    assert request.tools == TOOLS  # the request itself stays unchanged


def test_d4_a_result_has_the_id_its_call_was_written_with() -> None:
    request = _request(_user("?"), RequestMessage("assistant", (_call("call_x_0", "get_time", "noon"),)))
    _, written, results = disguise(request, dialect("json_strict")).messages

    assert written.parts == (
        Text('{"tool_calls": [{"id": "call_x_0", "name": "get_time", "arguments": {}}]}'),
    )
    assert results.parts == (Text('{"tool_call_result": {"toolCallId": "call_x_0", "result": "noon"}}'),)


def test_r5_results_and_what_a_person_says_next_are_one_message() -> None:
    request = _request(
        _user("?"), RequestMessage("assistant", (_call("c", "get_time", "noon"),)), _user("Hurry!")
    )
    disguised = disguise(request, dialect("hermes")).messages

    assert [message.role for message in disguised] == ["user", "assistant", "user"]
    [text] = disguised[-1].parts
    assert isinstance(text, Text)
    assert "noon" in text.text
    assert text.text.endswith("\n\nHurry!")


def test_r5_a_call_without_a_result_is_closed_and_a_broken_one_is_no_example_to_follow() -> None:
    broken = ToolCall(
        "c2", "read_file", raw='{"pa', state=CallState.FAILED, result=ToolResult("It was cut off.")
    )
    request = _request(_user("?"), RequestMessage("assistant", (_call("c1", "get_time"), broken)))
    _, written, results = disguise(request, dialect("xml_tag")).messages

    assert isinstance(written.parts[0], Text)
    parsed = dialect("xml_tag").parse(written.parts[0].text)
    assert [call.arguments for call in parsed.calls] == [{}, {"invalid_json": '{"pa'}]
    assert parsed.errors == ()
    assert isinstance(results.parts[0], Text)
    assert "no result" in results.parts[0].text
    assert "cut off" in results.parts[0].text


def test_r4_what_says_nothing_is_not_sent_and_files_stay() -> None:
    call = ToolCall("c", "draw", state=CallState.COMPLETED, result=ToolResult("done", attachments=(IMAGE,)))
    request = _request(
        RequestMessage("user", (Text("Like this?"), IMAGE)),
        RequestMessage("assistant", (Reasoning("Hm."), call)),
        RequestMessage("assistant", (Error("torn"),)),
        RequestMessage("assistant", (Text(" "),)),
    )
    first, second, third = disguise(request, dialect("hermes")).messages

    assert first.parts == (Text("Like this?"), IMAGE)
    assert second.parts[0] == Reasoning("Hm.")
    assert third.parts[1] == IMAGE


def test_ids_have_the_shape_a_model_knows() -> None:
    request = _request(
        _user("?"), RequestMessage("assistant", (_call("c1", "get_time", "1"), _call("c2", "get_time", "2")))
    )
    kimi, mistral = (disguise(request, dialect(name)).messages[2].parts[0] for name in ("kimi", "mistral"))

    assert isinstance(kimi, Text)
    assert isinstance(mistral, Text)
    assert kimi.text == "## Return of functions.get_time:0\n1\n## Return of functions.get_time:1\n2"
    assert '"toolCallId": "c1"' not in mistral.text


def test_a_choice_of_tools_is_told() -> None:
    plain = disguise(_request(_user("?")), dialect("hermes")).system
    needed = disguise(_request(_user("?"), tool_choice="required"), dialect("hermes")).system
    chosen = disguise(_request(_user("?"), tool_choice="get_time"), dialect("hermes")).system

    assert needed.startswith(plain)
    assert chosen.startswith(plain)
    assert "call get_time" in chosen
    assert disguise(_request(_user("?"), tool_choice="none"), dialect("hermes")).system == "Be kind."
    assert disguise(_request(_user("?"), tools=()), dialect("hermes")).system == "Be kind."
