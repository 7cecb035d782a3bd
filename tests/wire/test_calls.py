"""Dragoman assembles calls from any order of chunks (W3). Their arguments are certain or missing (C4, C5)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from dragoman.messages.events import CallInputDelta, CallInputEnd, CallInputStart, Event
from dragoman.messages.message import Arguments
from dragoman.wire.calls import Calls, parse_arguments
from tests.wire.cuts import cuts


def assembled(*pieces: dict[str, Any], cut: bool = False) -> list[Event]:
    calls = Calls("msg_r")
    events = [event for piece in pieces for event in calls.piece(**piece)]
    return events + list(calls.close(cut=cut))


def outcome(events: list[Event]) -> list[tuple[str, Arguments | str | None]]:
    """Name and arguments of each call, or the text of those that are not certain."""
    ends = [event for event in events if isinstance(event, CallInputEnd)]
    return [(end.tool, end.raw if end.arguments is None else end.arguments) for end in ends]


def test_a_call_starts_when_its_name_is_known_and_ends_with_its_arguments() -> None:
    events = assembled(
        {"index": 0, "id": "call_7", "name": "look", "arguments": ""},
        {"index": 0, "arguments": '{"at":'},
        {"index": 0, "arguments": ' "me"}'},
    )
    assert events == [
        CallInputStart("call_r_0", "look", "call_7"),
        CallInputDelta("call_r_0", '{"at":'),
        CallInputDelta("call_r_0", ' "me"}'),
        CallInputEnd("call_r_0", "look", {"at": "me"}),
    ]


PARALLEL = [("look", {"at": 1}), ("ask", {"whom": {"name": "x"}})]


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(
            [
                {"index": 0, "id": "a", "name": "look"},
                {"index": 1, "id": "b", "name": "ask"},
                {"index": 1, "arguments": '{"whom": '},
                {"index": 0, "arguments": '{"at": 1}'},
                {"index": 1, "arguments": '{"name": "x"}}'},
            ],
            id="interleaved by index",
        ),
        pytest.param(
            [
                {"index": 0, "id": "a", "name": "look", "arguments": '{"at"'},
                {"index": 0, "arguments": ": 1}"},
                {"index": 0, "id": "b", "name": "ask", "arguments": ""},
                {"index": 0, "arguments": '{"whom": {"name": "x"}}'},
            ],
            id="index always 0",
        ),
        pytest.param(
            [
                {"index": 0, "id": "a", "name": "look"},
                {"index": 0, "id": "b", "name": "ask"},
                {"index": 0, "id": "a", "arguments": '{"at": 1}'},
                {"index": 0, "id": "b", "arguments": '{"whom": {"name": "x"}}'},
            ],
            id="index always 0, interleaved by id",
        ),
        pytest.param(
            [
                {"id": "a", "name": "look", "arguments": '{"at": 1}'},
                {"id": "b", "name": "ask"},
                {"arguments": '{"whom": {"na'},
                {"arguments": 'me": "x"}}'},
            ],
            id="index absent",
        ),
        pytest.param(
            [
                {"name": "look", "arguments": {"at": 1}},
                {"name": "ask", "arguments": {"whom": {"name": "x"}}},
            ],
            id="neither index nor id, arguments as objects",
        ),
        pytest.param(
            [
                {"index": 0, "id": "", "name": "look", "arguments": '{"at": 1}'},
                {"index": 0, "id": "", "name": "ask", "arguments": '{"whom": {"name": "x"}}'},
            ],
            id="index always 0, ids empty",
        ),
        pytest.param(
            [
                {"index": 0, "id": "same", "name": "look", "arguments": '{"at": 1}'},
                {"index": 1, "id": "same", "name": "ask"},
                {"index": 1, "id": "same", "arguments": '{"whom": {"name": "x"}}'},
            ],
            id="ids doubled",
        ),
        pytest.param(
            [
                {"index": 0, "id": "same", "name": "look", "arguments": '{"at": 1}'},
                {"index": 0, "id": "same", "name": "ask", "arguments": '{"whom": {"name": "x"}}'},
            ],
            id="ids doubled, index always 0",
        ),
        pytest.param(
            [
                {"index": 0, "id": "a", "name": "lo"},
                {"index": 0, "name": "ok", "arguments": ""},
                {"index": 0, "arguments": '{"at": 1}'},
                {"index": 1, "id": "b", "name": "a"},
                {"index": 1, "name": "sk", "arguments": '{"whom": {"name": "x"}}'},
            ],
            id="names in pieces",
        ),
        pytest.param(
            [
                {"index": 0, "id": "a", "name": "look", "arguments": '{"at"'},
                {"index": 0, "id": "a", "name": "look", "arguments": ": 1}"},
                {"index": 1, "id": "b", "name": "ask", "arguments": '{"whom": '},
                {"index": 1, "id": "b", "name": "ask", "arguments": '{"name": '},
                {"index": 1, "id": "b", "name": "ask", "arguments": '"x"}}'},
            ],
            id="id and name resent in every delta",
        ),
        pytest.param(
            [
                {"index": 0, "id": "a", "name": "look", "arguments": '{"at": 1}'},
                {"index": 0, "id": "a", "name": "look", "arguments": '{"at":1}'},
                {"index": 1, "id": "b", "name": "ask", "arguments": '{"whom": {"na'},
                {"index": 1, "arguments": 'me": "x"}}'},
                {"index": 1, "arguments": '{"whom": {"name": "x"}}'},
            ],
            id="the whole repeated at the end",
        ),
        pytest.param(
            [
                {"index": 0, "id": "a", "name": "look", "arguments": "{}"},
                {"index": 0, "id": "a", "name": "look", "arguments": '{"at": 1}'},
                {"index": 1, "id": "b", "name": "ask", "arguments": {}},
                {"index": 1, "arguments": '{"whom": {"name": "x"}}'},
            ],
            id="an empty object stands in at first",
        ),
        pytest.param(
            [
                {"index": 0, "id": "a", "arguments": '{"at": 1}'},
                {"index": 0, "name": "look"},
                {"index": 1, "arguments": '{"whom": {"name": "x"}}'},
                {"index": 1, "id": "b", "name": "ask"},
            ],
            id="name and id come last",
        ),
    ],
)
def test_two_calls_stay_two_however_they_are_sent(pieces: list[dict[str, Any]]) -> None:
    """W3"""
    events = assembled(*pieces)
    assert outcome(events) == PARALLEL
    assert [event.call for event in events if isinstance(event, CallInputStart)] == ["call_r_0", "call_r_1"]


def test_two_calls_of_one_tool_without_ids_are_told_apart_by_their_complete_arguments() -> None:
    events = assembled(
        {"index": 0, "name": "look", "arguments": '{"at": 1}'},
        {"index": 0, "name": "look", "arguments": '{"at": 2}'},
    )
    assert outcome(events) == [("look", {"at": 1}), ("look", {"at": 2})]


def test_a_long_call_with_an_id_for_every_piece_is_put_together_in_no_time() -> None:
    """In time that grew with the cube of its length, this took an hour."""
    text = to_json({"content": 'if x == "{": {"y"}\n' * 1_000}).decode()
    pieces = [{"index": 0, "id": f"id_{at}", "arguments": text[at : at + 8]} for at in range(0, len(text), 8)]
    look = {"index": 0, "id": "id", "name": "look"}
    assert outcome(assembled(look, *pieces)) == [("look", parse_arguments(text))]


def test_a_new_id_behind_whole_arguments_begins_a_call_though_its_name_comes_later() -> None:
    events = assembled(
        {"index": 0, "id": "a", "name": "look", "arguments": '{"at": 1}\n'},
        {"index": 0, "id": "b", "arguments": '{"whom": "x"}'},
        {"index": 0, "id": "b", "name": "ask"},
    )
    assert outcome(events) == [("look", {"at": 1}), ("ask", {"whom": "x"})]


def test_a_call_without_arguments_keeps_its_place_before_the_next() -> None:
    events = assembled(
        {"index": 0, "id": "a", "name": "now"},
        {"index": 1, "id": "b", "name": "look", "arguments": '{"at":1}'},
    )
    assert [event.tool for event in events if isinstance(event, CallInputStart)] == ["now", "look"]


def test_placeholders_are_no_calls_but_a_call_without_a_name_is_one() -> None:
    assert assembled({"index": 0, "id": "", "name": None, "arguments": ""}, {}) == []
    assert outcome(assembled({"index": 0, "arguments": "{}"})) == [("", {})]


def test_no_arguments_are_none_only_if_the_reply_was_not_cut_off() -> None:
    """A call cut off before its first argument must not run without arguments (C4)."""
    name_only = {"index": 0, "id": "a", "name": "delete_all"}
    assert outcome(assembled(name_only)) == [("delete_all", {})]
    assert outcome(assembled(name_only, cut=True)) == [("delete_all", "")]


def test_arguments_that_are_not_certain_are_kept_as_they_came() -> None:
    """C4"""
    endless = ('{"at": NaN}', '{"at": 1e400}', '{"at": [{"x": -1E+999}]}', '{"at": "\\ud800", "x": 1e400}')
    for text in ('{"at": "m', '{"at": 1}{"at": 2}', "look at me", "[1]", '{"at": 1,', *endless):
        assert outcome(assembled({"index": 0, "name": "look", "arguments": text})) == [("look", text)]


def test_announced_calls_start_at_once_and_what_is_said_last_counts() -> None:
    calls = Calls("msg_r")
    events = [*calls.start(3, "look", id="c"), *calls.piece(index=3, arguments='{"at"')]
    assert events == [CallInputStart("call_r_0", "look", "c"), CallInputDelta("call_r_0", '{"at"')]
    assert list(calls.end(3, '{"at":1}', signature="s")) == [
        CallInputDelta("call_r_0", ":1}"),
        CallInputEnd("call_r_0", "look", {"at": 1}, signature="s"),
    ]
    assert outcome(list(calls.whole("ask", {"whom": "x"}))) == [("ask", {"whom": "x"})]
    assert list(calls.close()) == []
    assert len(calls) == 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), JSON, max_size=4)


@given(OBJECTS, st.data())
def test_any_cut_of_the_arguments_gives_the_same_arguments(value: Arguments, data: st.DataObject) -> None:
    pieces = data.draw(cuts(to_json(value).decode()))
    events = assembled({"index": 0, "name": "f"}, *({"index": 0, "arguments": piece} for piece in pieces))
    assert outcome(events) == [("f", value)]


@given(OBJECTS)
def test_lossless_repair_gives_back_what_was_meant(value: Arguments) -> None:
    """C5"""
    text = to_json(value).decode()
    encoded = to_json(text).decode()
    comma = text[:-1] + ("," if value else "") + "\n}"
    for spelling in (text, f"\n{text} ", encoded, to_json(encoded).decode(), comma, text + text, "{}" + text):
        assert parse_arguments(spelling) == value


def test_nothing_and_null_mean_no_arguments() -> None:
    """C5"""
    for text in ("", "  ", "null", '""', '"null"', "{}"):
        assert parse_arguments(text) == {}


def test_commas_inside_strings_are_left_alone() -> None:
    assert parse_arguments(r'{"a": ", }", "b": "\",]",}') == {"a": ", }", "b": '",]'}


@given(OBJECTS.filter(bool), st.data())
def test_a_beginning_of_arguments_is_never_taken_for_all_of_them(
    value: Arguments, data: st.DataObject
) -> None:
    """C4"""
    text = to_json(value).decode()
    assert parse_arguments(text[: data.draw(st.integers(1, len(text) - 1))]) is None


def test_one_of_two_different_objects_is_never_chosen() -> None:
    for text in (
        '{"a": 1}{"a": 2}',
        '{"a": 1}{"a": true}',
        '{"a": 1} {"b": 1}',
        "[]",
        "true",
        '"word"',
        "{'a': 1}",
    ):
        assert parse_arguments(text) is None
