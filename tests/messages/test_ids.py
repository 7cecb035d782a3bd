"""Ids: short nouns, no two alike, and the same again where the origin is the same."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from dragoman.messages.ids import derived_id, new_id

SHAPE = re.compile(r"turn_[0-9a-hjkmnp-tv-z]{16}")


def test_new_ids_are_all_different_and_safe_anywhere() -> None:
    made = {new_id("turn") for _ in range(1000)}
    assert len(made) == 1000
    assert all(SHAPE.fullmatch(id) for id in made)


@given(st.lists(st.text() | st.integers() | st.none(), max_size=4))
def test_what_is_done_again_gets_the_name_it_had(origin: list[object]) -> None:
    """S3"""
    assert derived_id("turn", *origin) == derived_id("turn", *origin)
    assert SHAPE.fullmatch(derived_id("turn", *origin))
    assert derived_id("turn", *origin) != derived_id("turn", *origin, "more")


def test_origins_are_not_run_together() -> None:
    assert derived_id("ask", "ab", "c") != derived_id("ask", "a", "bc")
    assert derived_id("ask", "turn_1", 11) != derived_id("ask", "turn_11", 1)
