"""Usage adds up, and an unknown price stays unknown (T11)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman.messages.usage import Usage

tokens = st.integers(0, 10**9)
cents = st.none() | st.integers(0, 100).map(lambda n: n / 4)  # quarters add up exactly
usages = st.builds(Usage, tokens, tokens, tokens, tokens, tokens, cents) | st.just(Usage())


def test_every_kind_of_token_is_summed() -> None:
    """T11"""
    one = Usage(1, 2, 3, 4, 5, 0.25)
    assert one + one == Usage(2, 4, 6, 8, 10, 0.5)
    assert one.total == 3


def test_an_unknown_price_makes_the_sum_unknown_and_is_never_nothing() -> None:
    """T11"""
    priced, unpriced = Usage(input=10, cost=0.5), Usage(input=10)
    assert (priced + unpriced).cost is None
    assert (unpriced + priced).cost is None
    assert (Usage(input=1, cost=0.0) + priced).cost == 0.5


def test_what_used_no_tokens_does_not_make_a_price_unknown() -> None:
    """T11"""
    assert (Usage() + Usage(input=10, cost=0.5)).cost == 0.5
    assert (Usage(input=10, cost=0.5) + Usage()).cost == 0.5
    assert Usage().cost is None


@given(usages, usages, usages)
def test_the_order_of_adding_does_not_matter(a: Usage, b: Usage, c: Usage) -> None:
    """T11"""
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
