"""Every stored or sent value is the same when it is read again."""

from __future__ import annotations

from typing import Annotated, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field, JsonValue, ValidationError

from dragoman.conversation.tree import Conversation
from dragoman.messages.codec import Codec
from dragoman.messages.events import EVENT, Event
from dragoman.messages.message import (
    CallState,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    arguments_hash,
    canonical,
)
from dragoman.messages.questions import Answer, Question
from dragoman.turn.facts import FACT, Fact
from tests.sweeps import examples

finite = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=8), inner, max_size=2),
    max_leaves=4,
)
# numbers that JSON has, and calls that can be: a settled one has its result
st.register_type_strategy(JsonValue, json_values)  # type: ignore[arg-type]
st.register_type_strategy(float, finite)

calls = st.builds(
    ToolCall, state=st.sampled_from([s for s in CallState if not s.settled]), result=st.none()
) | st.builds(ToolCall, result=st.from_type(ToolResult))
st.register_type_strategy(ToolCall, calls)

PART: Codec[Part] = Codec(Part)
KINDS = [
    *((PART, part) for part in get_args(get_args(Part)[0])),
    *((EVENT, event) for event in get_args(Event)),
    *((FACT, fact) for fact in get_args(Fact)),
    *((Codec(kind), kind) for kind in (Message, Question, Answer, Conversation)),
]


@pytest.mark.parametrize(("codec", "kind"), KINDS, ids=lambda one: getattr(one, "__name__", ""))
def test_every_part_event_and_fact_survives_json(codec: Codec[object], kind: type) -> None:
    """S3, E1: as text and as values."""

    @settings(max_examples=examples(4))
    @given(st.from_type(kind))
    def check(value: object) -> None:
        assert codec.load(codec.dump(value)) == value
        assert codec.from_json(codec.to_json(value)) == value

    check()


def test_none_inside_somebodys_values_is_kept() -> None:
    """C6: null is a value."""
    call = ToolCall(
        "c", "add", {"a": None}, state=CallState.COMPLETED, result=ToolResult("x", [None, {"b": None}])
    )
    assert PART.load(PART.dump(call)) == call


def test_a_settled_call_without_a_result_cannot_be_made_or_read() -> None:
    """C2"""
    with pytest.raises(ValueError, match="call c is completed but has no result"):
        ToolCall("c", "add", state=CallState.COMPLETED)
    with pytest.raises(ValidationError, match="has no result"):
        PART.load('{"type": "call", "id": "c", "tool": "add", "state": "completed"}')


def test_what_is_no_part_is_refused() -> None:
    for text in ('{"type": "song"}', "{}", '"text"', '{"type": "text"}'):
        with pytest.raises(ValidationError):
            PART.load(text)


def test_a_codec_costs_nothing_until_it_is_used() -> None:
    """The import does no work, and an invalid type raises only when it is used."""
    codec: Codec[object] = Codec(Annotated[Text, Field(discriminator="nothing")])
    with pytest.raises(Exception, match="discriminator"):
        codec.dump(Text("x"))


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=4))
def test_equal_arguments_have_one_fingerprint(arguments: dict[str, JsonValue]) -> None:
    """P6"""
    other = dict(reversed(arguments.items()))
    assert canonical(arguments) == canonical(other)
    assert arguments_hash("add", arguments) == arguments_hash("add", other)
    assert arguments_hash("add", arguments) != arguments_hash("sub", arguments)
    assert arguments_hash("add", {**arguments, "more!": 1}) != arguments_hash("add", arguments)
