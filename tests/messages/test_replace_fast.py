"""Copies of values with some fields changed: as `dataclasses.replace` makes them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from dragoman.messages.codec import replace_fast
from dragoman.messages.message import CallState, ToolCall


@dataclass(slots=True, frozen=True)
class Told:
    kind: str
    value: int = 1
    new: bool = False


@pytest.mark.parametrize("change", [{}, {"kind": "b"}, {"value": 2}, {"value": 2, "new": True}])
def test_a_copy_has_the_changes_whatever_the_fields_are_called(change: dict[str, object]) -> None:
    told = Told("a")
    assert replace_fast(told, **change) == replace(told, **change)  # type: ignore[arg-type]
    assert told == Told("a")


def test_a_field_that_is_not_there_is_an_error() -> None:
    """Dragoman does not drop a misspelled field."""
    with pytest.raises(TypeError, match="Told has no field knid"):
        replace_fast(Told("a"), knid="b")


def test_a_copy_is_checked_as_a_new_value_is() -> None:
    """A settled call without a result is impossible, as a new value and as a copy."""
    call = ToolCall("call_1", "add")
    assert replace_fast(call, state=CallState.RUNNING) == replace(call, state=CallState.RUNNING)
    with pytest.raises(ValueError, match="call call_1 is completed but has no result"):
        replace_fast(call, state=CallState.COMPLETED)
