"""Ways to cut something whole into pieces."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import AnyStr

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy


def cuts(whole: AnyStr, most: int = 12) -> SearchStrategy[list[AnyStr]]:
    """The whole in a few pieces, cut at random."""
    places = st.lists(st.integers(0, len(whole)), max_size=most)
    return places.map(lambda at: _pieces(whole, at))


def every_cut(whole: AnyStr) -> Iterator[list[AnyStr]]:
    """The whole in one piece, in two by every possible cut, and in its smallest pieces."""
    yield [whole]
    yield from (_pieces(whole, [at]) for at in range(1, len(whole)))
    yield _pieces(whole, list(range(len(whole))))


def _pieces(whole: AnyStr, at: list[int]) -> list[AnyStr]:
    return [whole[start:stop] for start, stop in pairwise(sorted({0, *at, len(whole)}))]
