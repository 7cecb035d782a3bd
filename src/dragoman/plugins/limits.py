"""Limit the rounds, tokens, cost, time and calls of a turn. At a limit, the turn ends with an answer, not an
error."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.errors import ConfigError, ProviderError
from dragoman.messages.request import Request
from dragoman.messages.usage import Spending, Usage
from dragoman.sentences import sentence
from dragoman.turn.agent import NO_LIMITS, Limits
from dragoman.turn.plugin import PlannedCalls, Plugin
from dragoman.turn.view import TurnView

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dragoman.store.store import Store


@dataclass(slots=True, frozen=True, kw_only=True)
class Team:
    """Users who share daily limits: named members, and users whose provider group has this name."""

    members: frozenset[str] = frozenset()
    max_daily_tokens: int | None = None
    max_daily_cost: float | None = None


class RoundLimit(Plugin):
    """Limits the batches of calls in a turn. The batch after the last is skipped, and the model must
    answer."""

    def __init__(self, max_rounds: int = 10) -> None:
        if type(max_rounds) is not int:
            raise ConfigError(f"'max_rounds' must be a whole number of 0 or more, not {max_rounds!r}.")
        Limits(max_rounds=max_rounds)  # raises ConfigError for an invalid limit
        self.max_rounds = max_rounds

    async def on_before_request(self, request: Request, turn: TurnView) -> None:
        if self._limit(turn) == 0:
            request.without_tools()

    async def before_calls(self, calls: PlannedCalls, turn: TurnView) -> None:
        if turn.turn.rounds > (limit := self._limit(turn)):
            calls.skip(sentence("limit.round" if limit == 1 else "limit.rounds", count=limit))

    def _limit(self, turn: TurnView) -> int:
        """Return the limit of the conversation, the agent or the settings, in this order."""
        own = turn.settings.get("max_rounds")
        if isinstance(own, int):
            return own
        limit = turn.agent.limits.max_rounds
        return self.max_rounds if limit is None else limit


class Budget(Plugin):
    """Limits the usage of a turn. None means no limit. An unknown cost cannot be counted, so the user is
    notified.

    An agent's limits take precedence.
    """

    def __init__(
        self,
        *,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        max_seconds: float | None = None,
        max_calls: int | None = None,
    ) -> None:
        self.limits = Limits(
            max_tokens=max_tokens, max_cost=max_cost, max_seconds=max_seconds, max_calls=max_calls
        )

    async def on_before_request(self, request: Request, turn: TurnView) -> None:
        """End waits between attempts at the time limit. The final answer after the limit has no such
        deadline."""
        seconds = self._limits(turn).max_seconds
        if seconds is not None and not turn.turn.closing and (left := seconds - turn.seconds) > 0:
            request.deadline = asyncio.get_running_loop().time() + left

    async def on_side_request(self, request: Request, turn: TurnView) -> None:
        """Set the same deadline for a summary and for a tool's request to a model."""
        await self.on_before_request(request, turn)

    def _limits(self, turn: TurnView) -> Limits:
        return turn.agent.limits.over(self.limits) if turn.agent.limits != NO_LIMITS else self.limits

    async def before_calls(self, calls: PlannedCalls, turn: TurnView) -> None:
        limits = self._limits(turn)
        if limits == NO_LIMITS:
            return
        counts = limits.max_tokens is not None or limits.max_cost is not None
        # all tasks, whatever their state
        tasks = [task.usage for task in await turn.tasks()] if counts else []
        usage = sum(tasks, turn.turn.usage)
        known = turn.turn.known_cost + sum(task.cost or 0 for task in tasks)
        if limits.max_cost is not None and usage.cost is None and turn.turn.rounds == 1:
            turn.notice(
                sentence("limit.no_price", model=turn.model, cost=limits.max_cost),
                "unknown_price",
            )
        if (reached := _reached(limits, usage, known, turn.seconds)) is not None:
            calls.skip(reached)
        if limits.max_calls is not None:
            made = len(turn.calls) - len(calls.calls)
            reason = sentence(
                "limit.call" if limits.max_calls == 1 else "limit.calls", count=limits.max_calls
            )
            calls.skip(reason, calls.calls[max(0, limits.max_calls - made) :])


def _reached(limits: Limits, usage: Usage, cost: float, seconds: float) -> str | None:
    if limits.max_tokens is not None and usage.total >= limits.max_tokens:
        return sentence("limit.token" if limits.max_tokens == 1 else "limit.tokens", count=limits.max_tokens)
    if limits.max_cost is not None and cost >= limits.max_cost:
        return sentence("limit.cost", cost=limits.max_cost)
    if limits.max_seconds is not None and seconds >= limits.max_seconds:
        return sentence("limit.seconds", seconds=limits.max_seconds)
    return None


# Limits of the tokens and cost that a user may use in a day: at the limit, no turn starts and running ones
# end.


_DAY = 86_400.0


class DailyLimit(Plugin):
    """Limits one user's usage in a UTC day. Replies without a known price count as free, so limit tokens as
    well.

    The check runs before each turn and after each reply with calls, so a turn can exceed the limit by one
    reply.
    """

    required = True

    def __init__(
        self,
        store: Store,
        *,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        clock: Callable[[], float],
    ) -> None:
        for name, value in (("max_daily_tokens", max_tokens), ("max_daily_cost", max_cost)):
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise ConfigError(f"{name} is a number above 0, not {value!r}")
        self._store = store
        self._max_tokens = max_tokens
        self._max_cost = max_cost
        self._clock = clock

    async def on_turn_start(self, turn: TurnView) -> None:
        if turn.resumed:
            return  # The turn began before the limit was reached.
        if (reached := await self._reached(turn.user)) is not None:
            raise ProviderError(sentence("limit.day", reached=reached), kind="limit")

    async def before_calls(self, calls: PlannedCalls, turn: TurnView) -> None:
        await turn.stored()  # The usage of this reply must be counted, too.
        if (reached := await self._reached(turn.user)) is not None:
            calls.skip(reached)

    async def _reached(self, person: str) -> str | None:
        used = sum(await self._store.spending(self._midnight(), person), Spending())
        return _reached_in_day(used, self._max_tokens, self._max_cost)

    def _midnight(self) -> float:
        return self._clock() // _DAY * _DAY


def _reached_in_day(used: Spending, max_tokens: int | None, max_cost: float | None) -> str | None:
    if max_tokens is not None and used.tokens >= max_tokens:
        return sentence("limit.tokens_a_day", count=max_tokens)
    if max_cost is not None and used.cost >= max_cost:
        return sentence("limit.cost_a_day", cost=max_cost)
    return None


class TeamLimit(DailyLimit):
    """Limits the usage of all members of a team together, in a UTC day."""

    def __init__(self, store: Store, teams: Mapping[str, Team], *, clock: Callable[[], float]) -> None:
        super().__init__(store, clock=clock)
        for name, team in teams.items():
            try:
                DailyLimit(store, max_tokens=team.max_daily_tokens, max_cost=team.max_daily_cost, clock=clock)
            except ConfigError as error:
                raise ConfigError(f"Team {name!r}: {error}") from None
        self._teams = {
            name: team
            for name, team in teams.items()
            if team.max_daily_tokens is not None or team.max_daily_cost is not None
        }

    async def _reached(self, person: str) -> str | None:
        for name, team in self._teams.items():
            members = team.members | await self._store.members_of(name)
            if person not in members:
                continue
            rows = await self._store.spending(self._midnight())
            used = sum((row for row in rows if row.person in members), Spending())
            reached = _reached_in_day(used, team.max_daily_tokens, team.max_daily_cost)
            if reached is not None:
                return sentence("limit.team", team=name, reached=reached)
        return None
