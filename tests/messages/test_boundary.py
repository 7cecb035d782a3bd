"""A value that one side accepts is equal when the other side reads it (S1)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from dragoman.errors import BadRequest
from dragoman.messages.boundary import check_json, is_shallow, time_or
from dragoman.messages.codec import Codec
from dragoman.messages.message import Message, ToolCall
from dragoman.messages.usage import Usage
from dragoman.wire.calls import parse_arguments

MESSAGE: Codec[Message] = Codec(Message)

texts = st.text(st.characters(codec=None), max_size=5)  # halves of characters among them
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": [value]} if depth % 2 else [value]
    return value


def stored(arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """As they come back from the store."""
    message = Message("m", "c", None, "assistant", (ToolCall("call", "tool", arguments),))
    return MESSAGE.load(MESSAGE.dump(message)).calls[0].arguments


@given(values, st.integers(0, 260))
def test_what_is_accepted_is_read_back_equal(value: Any, depth: int) -> None:
    """Every other value is refused, and the error names its fault (S1)."""
    whole = {"value": value, "deep": nested(depth)}
    try:
        check_json(whole, "it")
    except BadRequest as error:
        assert str(error).startswith("it ")  # noqa: PT017 - both outcomes are right
    else:
        assert stored(whole) == whole


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        (math.inf, "not finite"),
        ([math.nan], "not finite"),
        ("\ud83d", "half a character"),
        ({"\udc00": 1}, "half a character"),
        (nested(200), "too many levels"),
        (nested(100_000), "too many levels"),
        ({1, 2}, "not a JSON value"),
    ],
)
def test_what_cannot_be_read_again_is_refused(value: Any, wrong: str) -> None:
    """S1"""
    with pytest.raises(BadRequest, match=wrong):
        check_json(value, "it")


@given(st.integers(150, 230))
def test_arguments_too_deep_to_be_stored_are_no_arguments(depth: int) -> None:
    """A model's call becomes a malformed one, and keeps its text (C4, S1)."""
    text = '{"a":' * depth + "1" + "}" * depth
    parsed = parse_arguments(text)
    assert (parsed is not None) is is_shallow(text)
    if parsed is not None:
        assert stored(parsed) == parsed


@given(st.one_of(scalars, st.just(1e400), st.just(-1), st.just(1.5), st.just(2**60), st.lists(scalars)))
def test_a_provider_is_believed_only_what_can_be_counted(claim: Any) -> None:
    """T11, S1"""
    usage = Usage.claimed(claim, claim, cached=claim, reasoning=claim, cost=claim)
    codec: Codec[Usage] = Codec(Usage)
    assert codec.load(codec.dump(usage)) == usage
    assert min(usage.input, usage.output, usage.cached, usage.reasoning) >= 0


def test_a_time_nobody_can_show_is_now() -> None:
    """S1"""
    assert [time_or(claimed, 5.0) for claimed in (math.inf, math.nan, -1.0, 1e300, 7.0)] == [5, 5, 5, 5, 7]
