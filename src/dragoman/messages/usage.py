"""What a step used: tokens by kind, and what they cost where the price is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

Counts = TypeVar("Counts", bound=Mapping[str, object])

_MOST = 2**53  # larger numbers are no longer whole in every reader


@dataclass(slots=True, frozen=True)
class Usage:
    """Tokens of one or more requests. `input` counts cached tokens too, `output` counts reasoning too.

    `cost` is in US dollars; None means that the price is unknown, which is not the same as free. Models that
    make pictures, listen or speak are paid by other measures: pictures, seconds heard, characters spoken.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_written: int = 0
    reasoning: int = 0
    cost: float | None = None
    images: int = 0
    seconds: float = 0.0
    characters: int = 0

    @classmethod
    def claimed(
        cls,
        input: object,
        output: object,
        *,
        cached: object = 0,
        cache_written: object = 0,
        reasoning: object = 0,
        cost: object = None,
    ) -> Usage:
        """What a provider says: of what is no count, nothing is believed."""
        known = cost if isinstance(cost, int | float) and not isinstance(cost, bool) else None
        return cls(
            count(input),
            count(output),
            count(cached),
            count(cache_written),
            count(reasoning),
            float(known) if known is not None and 0 <= known < _MOST else None,
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing was used that could cost anything."""
        return not (self.total or self.images or self.seconds or self.characters)

    @property
    def total(self) -> int:
        return self.input + self.output

    def __add__(self, other: Usage) -> Usage:
        """The sum. Its cost is known only if each part that used anything has a known cost."""
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.cache_written + other.cache_written,
            self.reasoning + other.reasoning,
            _sum_of_costs(self, other),
            self.images + other.images,
            self.seconds + other.seconds,
            self.characters + other.characters,
        )


def count(claim: object) -> int:
    """A number that a provider claims: what is no count is nothing."""
    if isinstance(claim, bool) or not isinstance(claim, int | float) or not 0 <= claim < _MOST:
        return 0
    return int(claim)


def counts(claim: object) -> Mapping[str, object]:
    """The same of several, by name."""
    return claim if isinstance(claim, Mapping) else {}


def counted(claim: Counts | None, before: Counts) -> Counts:
    """The counts of a reply; what it had counted before where this is none of them."""
    return claim if claim and isinstance(claim, dict) else before


def _sum_of_costs(one: Usage, other: Usage) -> float | None:
    if one.is_empty:
        return other.cost
    if other.is_empty:
        return one.cost
    if one.cost is None or other.cost is None:
        return None
    return one.cost + other.cost
