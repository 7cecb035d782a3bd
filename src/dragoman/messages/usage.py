"""Counts usage: tokens by kind, and their cost if the price is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypeVar

from dragoman.errors import BadRequest
from dragoman.sentences import sentence

Counts = TypeVar("Counts", bound=Mapping[str, object])

_MOST = 2**53  # Not every reader can represent larger integers exactly.


@dataclass(slots=True, frozen=True)
class Usage:
    """Tokens of one or more requests. `input` includes cached tokens, and `output` includes reasoning.

    `cost` is in US dollars. None means that the price is unknown, which differs from free. Models that make
    images, transcribe or speak are billed by other units: images, seconds of audio, characters spoken.
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
        """Return the usage that a provider claims, ignoring invalid counts."""
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
        """Return whether nothing billable was used."""
        return not (self.total or self.images or self.seconds or self.characters)

    @property
    def total(self) -> int:
        return self.input + self.output

    def __add__(self, other: Usage) -> Usage:
        """Return the sum. Its cost is known only if each used part has a known cost."""
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
    """Return a claimed number, or 0 if it is not a valid count."""
    if isinstance(claim, bool) or not isinstance(claim, int | float) or not 0 <= claim < _MOST:
        return 0
    return int(claim)


def counts(claim: object) -> Mapping[str, object]:
    """Return claimed counts by name, or an empty mapping."""
    return claim if isinstance(claim, Mapping) else {}


def counted(claim: Counts | None, before: Counts) -> Counts:
    """Return the counts of a reply, or the earlier ones if the claim is invalid."""
    return claim if claim and isinstance(claim, dict) else before


def _sum_of_costs(one: Usage, other: Usage) -> float | None:
    if one.is_empty:
        return other.cost
    if other.is_empty:
        return one.cost
    if one.cost is None or other.cost is None:
        return None
    return one.cost + other.cost


# Reports spending by day, user, model, agent and tool. Pure.
#
# Unknown prices are counted and reported without spoiling sums: `cost` covers the known ones.


Dimension: TypeAlias = Literal["day", "person", "model", "agent", "tool"]
DIMENSIONS: tuple[Dimension, ...] = ("day", "person", "model", "agent", "tool")


@dataclass(slots=True, frozen=True)
class Spending:
    """Replies and calls that share these values. None: all of them, or unknown."""

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
    cost: float = 0.0  # in US dollars, where prices are known
    unpriced: int = 0  # number of replies without a known price
    calls: int = 0
    failed: int = 0  # number of failed calls

    @property
    def tokens(self) -> int:
        return self.input + self.output

    @property
    def known_cost(self) -> float | None:
        """Return the known cost. None if no reply has a price, which differs from zero."""
        return self.cost if self.replies > self.unpriced or not self.unpriced else None

    @property
    def usage(self) -> Usage:
        """Return the usage. Its cost is known only if each reply's cost is."""
        cost = None if self.unpriced or not self.replies else self.cost
        return Usage(self.input, self.output, self.cached, reasoning=self.reasoning, cost=cost)

    def __add__(self, other: Spending) -> Spending:
        """Add the numbers and keep the names of this one."""
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
    """Parse a user's list such as `day,model`. Raise BadRequest for an unknown word."""
    found: list[Dimension] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        known = next((one for one in DIMENSIONS if one == word), None)
        if known is None:
            raise BadRequest(sentence("usage.dimension", word=word, known=", ".join(DIMENSIONS)))
        if known not in found:
            found.append(known)
    return tuple(found)


def group(rows: Iterable[Spending], by: Sequence[Dimension]) -> list[Spending]:
    """Return one row for each combination of names, sorted. Tokens are not given by tool: a reply has many
    calls."""
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
