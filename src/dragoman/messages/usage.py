"""What a step used: tokens by kind, and what they cost where the price is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypeVar

from dragoman.errors import BadRequest
from dragoman.sentences import sentence

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


# What was spent, for whoever pays: by day, person, model, agent and tool. Pure.
#
# What is unknown is counted and said, and spoils no sum: `cost` is what is known of it.


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
