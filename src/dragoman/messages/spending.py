"""What was spent, for whoever pays: by day, person, model, agent and tool. Pure.

What is unknown is counted and said, and spoils no sum: `cost` is what is known of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from dragoman.errors import BadRequest
from dragoman.messages.usage import Usage
from dragoman.sentences import sentence

Dimension: TypeAlias = Literal["day", "person", "model", "agent", "tool"]
DIMENSIONS: tuple[Dimension, ...] = ("day", "person", "model", "agent", "tool")


@dataclass(slots=True, frozen=True)
class Spending:
    """Replies and calls that have these things in common. None: of all, or not known."""

    day: str | None = None  # in UTC
    person: str | None = None
    model: str | None = None
    agent: str | None = None
    tool: str | None = None
    replies: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    cost: float = 0.0  # in US dollars, as far as prices are known
    unpriced: int = 0  # replies whose price is not known
    calls: int = 0
    failed: int = 0  # of the calls

    @property
    def tokens(self) -> int:
        return self.input + self.output

    @property
    def known_cost(self) -> float | None:
        """None where no reply has a price: that is not the same as nothing."""
        return self.cost if self.replies > self.unpriced or not self.unpriced else None

    @property
    def usage(self) -> Usage:
        """Its cost is known only if that of each reply is."""
        cost = None if self.unpriced or not self.replies else self.cost
        return Usage(self.input, self.output, self.cached, reasoning=self.reasoning, cost=cost)

    def __add__(self, other: Spending) -> Spending:
        """The numbers of both, under the names of this one."""
        return replace(
            self,
            replies=self.replies + other.replies,
            input=self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
            reasoning=self.reasoning + other.reasoning,
            cost=self.cost + other.cost,
            unpriced=self.unpriced + other.unpriced,
            calls=self.calls + other.calls,
            failed=self.failed + other.failed,
        )


def dimensions(text: str) -> tuple[Dimension, ...]:
    """`day,model` as a person writes it. BadRequest for what is none."""
    found: list[Dimension] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        known = next((one for one in DIMENSIONS if one == word), None)
        if known is None:
            raise BadRequest(sentence("usage.dimension", word=word, known=", ".join(DIMENSIONS)))
        if known not in found:
            found.append(known)
    return tuple(found)


def group(rows: Iterable[Spending], by: Sequence[Dimension]) -> list[Spending]:
    """One row for each set of names, in their order. By tool, tokens are not told: a reply has many calls."""
    if unknown := [one for one in by if one not in DIMENSIONS]:
        raise BadRequest(sentence("usage.dimension", word=unknown[0], known=", ".join(DIMENSIONS)))
    sums: dict[tuple[str, ...], Spending] = {}
    for row in rows:
        if ("tool" in by) != (row.tool is not None):
            continue
        names = {one: getattr(row, one) for one in by}
        key = tuple(str(name or "") for name in names.values())
        sums[key] = sums.get(key, Spending(**names)) + row
    return [sums[key] for key in sorted(sums)]
