"""What a step used: tokens by kind, and what they cost where the price is known."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class Usage:
    """Tokens of one or more requests. `input` counts cached tokens too, `output` counts reasoning too.

    `cost` is in US dollars; None means that the price is unknown, which is not the same as free.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_written: int = 0
    reasoning: int = 0
    cost: float | None = None

    @property
    def total(self) -> int:
        return self.input + self.output

    def __add__(self, other: Usage) -> Usage:
        """The sum. Its cost is known only if each part that used tokens has a known cost."""
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.cache_written + other.cache_written,
            self.reasoning + other.reasoning,
            _sum_of_costs(self, other),
        )


def _sum_of_costs(one: Usage, other: Usage) -> float | None:
    if not one.total:
        return other.cost
    if not other.total:
        return one.cost
    if one.cost is None or other.cost is None:
        return None
    return one.cost + other.cost
