"""What a request of OpenAI's APIs brings is read in its order, and the rest is refused (F1, F3)."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from dragoman.messages.request import ToolSpec
from dragoman.server.protocols.openai.api_errors import ApiRefusal
from dragoman.server.protocols.openai.request_input import (
    AnswerFormat,
    AnswerOptions,
    AssistantEntry,
    Attached,
    Brought,
    BroughtCall,
    CallOutput,
    ContentPart,
    Entry,
    NamedChoice,
    OfferedTool,
    UserEntry,
    attached_sound,
    attached_url,
    calls_with_outputs,
    check_calls,
    choice_option,
    text_alone,
)

OBJECT: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    ("choice", "option"),
    [
        (None, {}),
        ("auto", {}),
        ("none", {"tool_choice": "none"}),
        ("required", {"tool_choice": "required"}),
        ({"type": "function", "name": "look"}, {"tool_choice": "look"}),
        ({"type": "function", "function": {"name": "look"}}, {"tool_choice": "look"}),
        ({"type": "function"}, None),
        ({"type": "custom", "name": "look"}, None),
        ("look", None),
    ],
)
def test_a_tool_choice_is_an_option_or_refused(choice: Any, option: dict[str, Any] | None) -> None:
    read = NamedChoice.model_validate(choice) if isinstance(choice, dict) else choice
    if option is None:
        with pytest.raises(ApiRefusal, match="tool_choice"):
            choice_option(read)
    else:
        assert choice_option(read) == option


def test_a_function_is_read_in_the_form_of_either_api() -> None:
    flat: dict[str, Any] = {"name": "look", "description": "Look.", "parameters": OBJECT}
    for tool in ({"type": "function", **flat}, {"type": "function", "function": flat}):
        assert OfferedTool.model_validate(tool).spec("tools[0]") == ToolSpec("look", "Look.", OBJECT)
    bare = OfferedTool.model_validate({"type": "function", "name": "look"}).spec("tools[0]")
    assert bare == ToolSpec("look", "", {"type": "object", "properties": {}})
    with pytest.raises(ApiRefusal, match="tools of type 'web_search'"):
        OfferedTool.model_validate({"type": "web_search"}).spec("tools[0]")


@pytest.mark.parametrize(
    ("form", "schema"),
    [
        ({"type": "text"}, None),
        ({"type": "json_object"}, {"type": "object"}),
        ({"type": "json_schema", "schema": OBJECT}, OBJECT),
        ({"type": "json_schema", "json_schema": {"schema": OBJECT}}, OBJECT),
        ({"type": "json_schema"}, ApiRefusal),
        ({"type": "json_schema", "schema": {"type": "array"}}, ApiRefusal),
    ],
)
def test_the_type_of_an_answer_is_an_object(form: dict[str, Any], schema: Any) -> None:
    read = AnswerFormat.model_validate(form)
    if schema is ApiRefusal:
        with pytest.raises(ApiRefusal, match="type object"):
            read.spec("text")
    else:
        found = read.spec("text")
        assert (found and found.schema) == schema


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("said", "said"),
        ([], ""),
        ([{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "no"}], "a\nno"),
        ([{"type": "input_text", "text": "a"}, {"type": "output_text", "text": ""}], "a\n"),
        ([{"type": "text"}], None),
        ([{"type": "refusal", "text": "a"}], None),
        ([{"type": "text", "text": "a"}, {"type": "image_url", "text": "a"}], None),
    ],
)
def test_a_prompt_has_no_files(content: Any, text: str | None) -> None:
    parts = [ContentPart.model_validate(one) for one in content] if isinstance(content, list) else content
    if text is None:
        with pytest.raises(ApiRefusal, match="can have files") as refused:
            text_alone(parts, "content")
        assert refused.value.param == f"content[{len(content) - 1}]"
    else:
        assert text_alone(parts, "content") == text


def test_options_are_given_under_the_names_of_all_wires() -> None:
    """What is the default is not given."""
    given: dict[str, Any] = {
        "temperature": 0.0,
        "top_p": 0.5,
        "prompt_cache_key": "k",
        "safety_identifier": "s",
    }
    body = {"model": "m", **given, "service_tier": "flex", "prompt_cache_retention": "24h"}
    more = {"parallel_tool_calls": False, "tool_choice": "none"}
    read = AnswerOptions.model_validate({**body, **more}).options({"max_tokens": 3, "seed": None})
    assert read == {**given, **more, "service_tier": "flex", "cache_lifetime": "24h", "max_tokens": 3}
    usual = {"parallel_tool_calls": True, "prompt_cache_retention": "in_memory", "tool_choice": "auto"}
    for tier in ("auto", "default", None):
        assert AnswerOptions.model_validate({"model": "m", **usual, "service_tier": tier}).options({}) == {}


def read_all(*entries: Entry) -> Brought:
    brought = Brought()
    for entry in entries:
        brought.add(entry)
    return brought


def made(id: str, *texts: str) -> AssistantEntry:
    return AssistantEntry(texts, (BroughtCall(id, "look", "{}"),))


def test_entries_of_one_speaker_are_one_and_what_is_new_comes_after_the_last_answer() -> None:
    output = CallOutput("x", ("found",))
    brought = read_all(
        *(UserEntry(("a",)), UserEntry(("b", "c")), AssistantEntry(("d",)), made("x", "e")),
        *(output, UserEntry(("f",)), UserEntry(("g",))),
    )
    earlier = [UserEntry(("a", "b", "c")), AssistantEntry(("d", "e"), (BroughtCall("x", "look", "{}"),))]
    assert brought.entries == [*earlier, output, UserEntry(("f", "g"))]
    assert (brought.earlier, brought.outputs, brought.sent) == (earlier, [output], ("f", "g"))
    begun = read_all(UserEntry(("a",)))
    assert (begun.earlier, begun.outputs, begun.sent) == ([], [], ("a",))
    answered = read_all(UserEntry(("a",)), AssistantEntry(("b",)))
    assert (answered.earlier, answered.sent) == (answered.entries, ())
    assert Brought(system=["One.", " ", "Two."]).prompt == "One.\n\nTwo."
    assert Brought(system=[" "]).prompt is None


def test_an_output_belongs_to_the_first_call_before_it_that_has_none() -> None:
    """Also where IDs come again."""
    first, second, other = (CallOutput(id, (text,)) for id, text in (("x", "1"), ("x", "2"), ("y", "3")))
    entries: list[Entry] = [made("x"), first, made("x"), made("y"), other, second]
    found = [(call.id, output.content) for call, output in calls_with_outputs(entries)]
    assert found == [("x", ("1",)), ("x", ("2",)), ("y", ("3",))]
    check_calls(read_all(*entries, CallOutput("z", ())))  # of a turn that the server knows
    with pytest.raises(ApiRefusal, match="no tool output found for function call x"):
        calls_with_outputs([first, made("x")])
    with pytest.raises(ApiRefusal, match="no call found for function call output with call_id x"):
        check_calls(read_all(made("x"), first, second, AssistantEntry(("done",))))


def test_a_file_is_as_large_as_an_upload() -> None:
    for size, status in ((100, 200), (101, 413), (0, 400)):
        data = base64.b64encode(bytes(size)).decode()
        attaching: list[Callable[[], Attached]] = [
            partial(attached_url, f"data:audio/wav;base64,{data}", "at", 100),
            partial(attached_sound, data, "wav", "at", 100),
        ]
        for attach in attaching:
            if status == 200:
                file = attach()
                assert (file.media_type, file.data, file.size) == ("audio/wav", bytes(size), size)
            else:
                with pytest.raises(ApiRefusal) as refused:
                    attach()
                assert (refused.value.status, refused.value.param) == (status, "at")
    for url in (
        "https://a.example/x.png",
        "data:image/png,x",
        "data:x;base64,eA==",
        "data:image/png;base64,==",
        "data:image/png;base64,eA==!",
    ):
        with pytest.raises(ApiRefusal):
            attached_url(url, "at", 100)
    with pytest.raises(ApiRefusal, match="must be mp3 or wav"):
        attached_sound("eA==", "flac", "at", 100)
