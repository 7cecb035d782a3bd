"""Copies of values with some fields changed: as `dataclasses.replace` makes them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from dragoman.messages.replace_fast import replace_fast


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
    """A change that is misspelt is not dropped."""
    with pytest.raises(TypeError, match="Told has no field knid"):
        replace_fast(Told("a"), knid="b")
