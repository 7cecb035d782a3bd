"""Check what every writer can rely on: parts open and close in pairs, and missed events are delivered like
the rest."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from dragoman.messages import events as e
from dragoman.messages.message import MadeIn
from dragoman.server.protocols.event_reader import (
    Asked,
    CallForClient,
    CallShown,
    EventReader,
    PartClosed,
    PartDelta,
    PartOpened,
    Value,
)
from tests.protocols.turns import snapshot_of, text_after, turns

TOOLS = frozenset({"add"})


def check_pairs(values: Iterable[Value]) -> None:
    """Check that every delta is inside a part of its kind, and that no part is left open."""
    open: str | None = None
    for value in values:
        match value:
            case PartOpened(kind=kind):
                assert open is None
                open = kind
            case PartDelta(kind=kind, text=text):
                assert (open, bool(text)) == (kind, True)
            case PartClosed(kind=kind):
                assert open == kind
                open = None
    assert open is None


def text_in(values: Iterable[Value]) -> str:
    return "".join(value.text for value in values if isinstance(value, PartDelta) and value.kind == "text")


@given(turns(), st.data())
def test_any_cut_of_a_turn_is_told_in_pairs_and_with_all_of_its_text(
    events: list[e.Event], data: st.DataObject
) -> None:
    """F1 × E2"""
    cut = data.draw(st.integers(1, len(events) - 1))
    reader = EventReader()
    values = [*reader.replay(snapshot_of(events[:cut]))]
    values += [value for event in events[cut:] for value in reader.read(event)]
    check_pairs(values)
    assert text_in(values) == text_after(events, cut)


@given(turns(), st.data())
def test_a_call_of_the_clients_own_is_shown_only_when_it_may_run(
    events: list[e.Event], data: st.DataObject
) -> None:
    """Clients run the calls that they are shown. This holds for any cut, and for any approval request before
    the call (P1 × F1)."""
    cut = data.draw(st.integers(0, len(events) - 1))
    started = {event.call for event in events[:cut] if isinstance(event, e.CallStart | e.CallEnd)}
    reader = EventReader(TOOLS)
    told = [*reader.replay(snapshot_of(events[:cut]))] if cut else []
    for event in events[cut:]:
        started |= {event.call} if isinstance(event, e.CallStart | e.CallEnd) else set()
        told += reader.read(event)
        shown = {one.call for one in told if isinstance(one, CallShown | CallForClient) and one.tool in TOOLS}
        assert shown <= started


def test_a_turn_waits_when_all_that_it_waits_for_has_been_told() -> None:
    """The state of a turn is published before its approval request, and another call can be open at the same
    time (F1 × P1)."""
    events: list[e.Event] = [
        e.CallInputEnd("call_1", "add", {}),
        e.CallInputEnd("call_2", "shell", {}),
        e.CallStart("call_1", "add", {}, client=True),
        e.TurnState("waiting"),
        e.CallAsked("call_2", "ask_1", "approve", "shell", {}, "May it?"),
    ]
    reader = EventReader(TOOLS)
    waits = []
    for event in events:
        for _ in reader.read(event):
            pass
        waits.append(reader.waits)
    assert waits == [False, False, False, False, True]
    answered = e.CallAnswered("call_2", "ask_1", "allow")
    assert ([*reader.read(answered)], reader.waits) == ([answered], False)
    assert [*reader.read(events[-1])]
    for brought in ("call_1", "ask_1"):
        reader.was_brought(brought)
    assert (reader.asked, reader.handed) == ({}, {})


def test_a_turn_waits_with_a_program_whose_call_waits() -> None:
    """The program has no result either, and waits for nothing else (F1 × P1)."""
    reader = EventReader(TOOLS)
    for event in (
        e.CallInputEnd("program", "run_code", {}),
        e.InnerCallMade("inner", "shell", {}, MadeIn("program", 1, 1)),
        e.CallAsked("inner", "ask_1", "approve", "shell", {}, "May it?"),
        e.TurnState("waiting"),
    ):
        told = [*reader.read(event)]
        assert reader.waits is (event.type == "turn.state")
        assert [one.call for one in told if isinstance(one, Asked)] in ([], ["program"])
