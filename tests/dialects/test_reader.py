"""A reply in a dialect, as events (D2, C4): text while it streams, calls when it is complete."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.dialects.dialect import NAMES, dialect
from dragoman.dialects.reader import INVALID_CALL, DialectReader, explain
from dragoman.dialects.values import value_of
from dragoman.messages.events import (
    CallInputEnd,
    CallInputStart,
    Event,
    MessageEnd,
    Notice,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
)
from dragoman.messages.fold import Draft
from dragoman.messages.message import Message, Text
from dragoman.messages.request import ToolSpec
from dragoman.messages.usage import Usage
from tests.dialects.calls import replies
from tests.dialects.replies import REPLIES, TOOLS, Reply
from tests.sweeps import examples

USAGE = Usage(input=7, output=5)


def read(name: str, events: Iterable[Event]) -> list[Event]:
    reader = DialectReader(dialect(name), TOOLS, "msg_x")
    return [made for event in events for made in reader.feed(event)]


def streamed(pieces: Iterable[str], finish: str = "stop") -> list[Event]:
    return [TextStart(), *map(TextDelta, pieces), TextEnd(), MessageEnd(finish, USAGE)]


def thought(text: str, sent: str = "") -> list[Event]:
    return [ReasoningStart(), ReasoningDelta(text), ReasoningEnd("sig", "w"), *streamed([sent])]


def folded(events: Iterable[Event]) -> Message:
    draft = Draft(Message("msg_x", "", None, "assistant", ()))
    for event in events:
        draft.apply(event)
    return draft.message


@pytest.mark.parametrize("name", NAMES)
def test_d2_a_reply_becomes_a_message_with_text_and_calls(name: str) -> None:
    for case in REPLIES[name]:
        _check_message(name, case)


def _check_message(name: str, case: Reply) -> None:
    message = folded(read(name, streamed(case.reply)))
    good = [call for call in message.calls if call.raw is None]
    bad = [call for call in message.calls if call.raw is not None]

    assert message.text == case.text, case.about
    assert [(call.tool, call.arguments) for call in good] == list(case.calls), case.about
    assert len(bad) == len(case.errors), case.about
    assert [call.id for call in message.calls] == [f"call_x_{place}" for place in range(len(message.calls))]
    assert message.finish == ("tool_calls" if message.calls else "stop")
    assert message.usage == USAGE
    for call in bad:
        assert call.raw
        assert call.raw in case.reply
        assert "did not run" in explain(call.raw, dialect(name), TOOLS)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(5))
@given(data=st.data())
def test_d2_any_cut_makes_the_same_message(name: str, data: st.DataObject) -> None:
    reply = data.draw(replies(name))
    cut = data.draw(st.integers(0, len(reply)))
    whole = folded(read(name, streamed([reply])))

    assert folded(read(name, streamed(reply))) == whole
    assert folded(read(name, streamed([reply[:cut], reply[cut:]]))) == whole


def test_d2_text_is_shown_at_once_and_calls_at_the_end() -> None:
    reader = DialectReader(dialect("hermes"), TOOLS, "msg_x")

    assert list(reader.feed(TextStart())) == []
    assert list(reader.feed(TextDelta("I look"))) == [TextStart(), TextDelta("I look")]
    assert list(reader.feed(TextDelta(". <tool_"))) == [TextDelta(".")]
    assert list(reader.feed(TextDelta('call>{"name": "get_time"}</tool_call>'))) == []
    assert list(reader.feed(TextEnd())) == []
    assert list(reader.feed(MessageEnd("stop", USAGE))) == [
        TextEnd(),
        CallInputStart("call_x_0", "get_time", format="hermes"),
        CallInputEnd("call_x_0", "get_time", {}),
        MessageEnd("tool_calls", USAGE),
    ]


def test_the_name_a_model_gave_its_call_is_kept() -> None:
    reply = '{"tool_calls": [{"id": "mine", "name": "get_time"}]}'

    assert CallInputStart("call_x_0", "get_time", "mine", "json_strict") in read(
        "json_strict", streamed([reply])
    )


def test_d3_a_call_that_cannot_be_read_is_one_without_arguments() -> None:
    named, nameless = '<tool_call>{"name": "read_file", "arguments": {oops', "<tool_call>{oops}</tool_call>"

    assert read("hermes", streamed([named]))[-2] == CallInputEnd("call_x_0", "read_file", None, raw=named)
    assert read("hermes", streamed([nameless]))[-2] == CallInputEnd(
        "call_x_0", INVALID_CALL, None, raw=nameless
    )


def test_d8_no_call_of_a_reply_that_was_cut_off_runs() -> None:
    call = '<tool_call>{"name": "get_time"}</tool_call>'
    message = folded(read("hermes", streamed([call, call[:20]], finish="length")))

    assert [call.raw is None for call in message.calls] == [False, False]
    assert message.finish == "length"


def test_c4_an_example_in_a_reply_that_was_cut_is_no_call() -> None:
    shown = 'So:\n```\nYou write\n<tool_call>{"name": "get_time"}</tool_call>'

    cut, complete = (folded(read("hermes", streamed([shown], finish))) for finish in ("length", "stop"))
    assert (cut.text, cut.calls) == (complete.text, complete.calls) == (shown, ())
    torn = thought('Or <tool_call>{"name": "get_time"}</tool_call>, or')[:3]
    assert folded(read("hermes", [*torn, MessageEnd("length")])).calls == ()


def test_reasoning_passes_through_with_all_that_belongs_to_it() -> None:
    events = read("hermes", thought("I could write <tool_call>.", "Hello."))

    assert events[:3] == [
        ReasoningStart(),
        ReasoningDelta("I could write <tool_call>."),
        ReasoningEnd("sig", "w"),
    ]
    assert folded(events).text == "Hello."


def test_a_call_among_the_thoughts_counts_if_nothing_is_said() -> None:
    call = '<tool_call>{"name": "get_time"}</tool_call>'

    assert [made.tool for made in folded(read("hermes", thought(f"I ask. {call}", "\n"))).calls] == [
        "get_time"
    ]
    assert folded(read("hermes", thought(f"I ask. {call}", "No need."))).calls == ()
    assert (
        folded(read("hermes", thought(f"I ask. {call}", call.replace("get_time", "other")))).calls[0].tool
        == "other"
    )
    assert folded(read("hermes", thought(f"I ask. {call[:-20]}"))).calls == ()


def test_channels_of_gpt_oss_become_reasoning_and_text() -> None:
    reply = (
        "<|channel|>analysis<|message|>One.<|end|><|start|>assistant<|channel|>analysis<|message|>Two.<|end|>"
        "<|start|>assistant<|channel|>final<|message|>Three.<|return|>"
    )
    for pieces in (list(reply), [reply]):
        message = folded(read("harmony", streamed(pieces)))
        assert [type(part).__name__ for part in message.parts] == ["Reasoning", "Text"]
        assert message.reasoning == "One.\n\nTwo."
        assert message.text == "Three."


def test_d6_beside_a_native_call_text_is_text() -> None:
    native: list[Event] = [CallInputStart("call_x_0", "get_time"), CallInputEnd("call_x_0", "get_time", {})]
    reply = '<tool_call>{"name": "read_file", "arguments": {}}</tool_call>'
    for events in ([*native, TextDelta(reply)], [TextDelta(reply), *native]):
        message = folded(read("hermes", [*events, MessageEnd("stop")]))
        assert [(call.id, call.tool) for call in message.calls] == [("call_x_0", "get_time")]
    assert folded(read("hermes", [TextDelta(reply), *native, MessageEnd("stop")])).text == reply


def test_other_events_pass() -> None:
    assert read("hermes", [Notice("hello")]) == [Notice("hello")]


def test_what_was_held_back_of_the_text_comes_before_a_call_that_the_server_made() -> None:
    call = CallInputStart("call_x_0", "add")
    events: list[Event] = [TextStart(), TextDelta("so: <tool_c"), TextEnd(), call, MessageEnd("stop", USAGE)]
    assert read("xml_tag", events) == [
        TextStart(),
        TextDelta("so:"),
        TextDelta(" <tool_c"),
        TextEnd(),
        call,
        MessageEnd("stop", USAGE),
    ]


def test_w4_text_that_turns_out_to_be_a_thought_takes_its_calls_with_it() -> None:
    drafted = 'I could.\n<tool_code>{"name": "add", "arguments": {"a": 1}}</tool_code>'
    events: list[Event] = [TextStart(), TextDelta(drafted), TextEnd(was_reasoning=True)]
    message = folded(read("xml_tag", [*events, *streamed(["No need."])]))
    assert (message.reasoning, message.text, message.calls) == ("I could.", "No need.", ())
    message = folded(read("xml_tag", [*events, MessageEnd("stop", USAGE)]))
    assert message.calls == ()  # even if no text follows: the format ended it


@pytest.mark.parametrize("size", [1, 3, 17, 99])
def test_w4_words_that_seem_to_begin_a_thought_are_the_answer_if_nothing_ends_it(size: int) -> None:
    text = 'Here is my thought process:\n\nI add.\n<tool_call>{"name": "get_time"}</tool_call>'
    message = folded(read("hermes", streamed(text[at : at + size] for at in range(0, len(text), size))))

    assert message.text == "Here is my thought process:\n\nI add."
    assert [call.tool for call in message.calls] == ["get_time"]


def test_d2_a_text_keeps_the_phase_of_its_message_beside_a_call() -> None:
    """Each message of the Responses API is a separate text without the call in it (D2 × R5)."""
    call = '<tool_call>{"name": "get_time", "arguments": {}}</tool_call>'
    said = [("Wait.", "commentary"), (f"Done.{call}", "final_answer")]
    texts = [one for text, phase in said for one in (TextStart(), TextDelta(text), TextEnd(phase=phase))]
    message = folded(read("hermes", [*texts, MessageEnd("stop")]))
    parts = [(part.text, part.phase) for part in message.parts if isinstance(part, Text)]
    assert parts == [("Wait.", "commentary"), ("Done.", "final_answer")]
    assert [call.tool for call in message.calls] == ["get_time"]


LABEL = ToolSpec(
    "label",
    "Label it.",
    {
        "type": "object",
        "properties": {
            "tags": {"type": "array", "items": {"type": "string"}},
            "about": {"type": "object"},
            "note": {"type": "string"},
            "either": {"type": ["string", "array"]},
        },
    },
)
PYTHON_LISTS = {
    "qwen_coder": "<seed:tool_call><function=label><parameter=tags>{0}</parameter></function>"
    "</seed:tool_call>",
    "minicpm": '<function name="label"><param name="tags">{0}</param></function>',
    "functiongemma": "<start_function_call>call:label{{tags:<escape>{0}<escape>}}<end_function_call>",
    "gemma": "<|tool_call>call:label{{tags:{0}}}<tool_call|>",
}


@pytest.mark.parametrize(("name", "form"), PYTHON_LISTS.items(), ids=PYTHON_LISTS)
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("['a', 'b']", ["a", "b"]),
        (r"['it\'s, ok', 'b]']", ["it's, ok", "b]"]),
        ("['']", [""]),
    ],
)
def test_d2_a_list_as_python_writes_it_is_a_list(
    name: str, form: str, written: str, meant: list[str]
) -> None:
    """D2: where the schema wants one."""
    (call,) = dialect(name).parse(form.format(written), (LABEL,)).calls
    assert call.arguments == {"tags": meant}


@pytest.mark.parametrize(
    ("key", "written", "meant"),
    [
        ("about", "{'a': [1, True, None]}", {"a": [1, True, None]}),
        ("note", "['a', 'b']", "['a', 'b']"),  # the schema wants a string
        ("either", "['a', 'b']", "['a', 'b']"),  # it may be one
        ("tags", "[a, b]", "[a, b]"),  # names, and no values
        ("tags", "__import__('os')", "__import__('os')"),
        ("tags", "{'a': 1}", "{'a': 1}"),
    ],
)
def test_d2_what_is_no_list_of_python_stays_as_it_is(key: str, written: str, meant: object) -> None:
    """The check of the arguments reports the valid type (D2)."""
    assert value_of(written, key, LABEL) == meant
