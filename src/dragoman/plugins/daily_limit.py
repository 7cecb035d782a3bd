"""Tokens and cost that one person may use in a day: at the limit no turn begins, and what runs ends."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dragoman.errors import ConfigError, ProviderError
from dragoman.messages.spending import Spending
from dragoman.sentences import sentence
from dragoman.turn.plugin import PlannedCalls, Plugin
from dragoman.turn.view import TurnView

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.store.store import Store

_DAY = 86_400.0


class DailyLimit(Plugin):
    """So much a person and day, in UTC. Replies without a known price count as nothing: limit tokens, too.

    Looked at before each turn and after each reply with calls, so that a turn may use a reply more.
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
            return  # it began when there was room
        if (reached := await self._reached(turn.conversation.owner)) is not None:
            raise ProviderError(sentence("limit.day", reached=reached), kind="limit")

    async def before_calls(self, calls: PlannedCalls, turn: TurnView) -> None:
        await turn.stored()  # what this reply used is to be counted, too
        if (reached := await self._reached(turn.conversation.owner)) is not None:
            calls.skip(reached)

    async def _reached(self, person: str) -> str | None:
        midnight = self._clock() // _DAY * _DAY
        used = sum(await self._store.spending(midnight, person), Spending())
        if self._max_tokens is not None and used.tokens >= self._max_tokens:
            return sentence("limit.tokens_a_day", count=self._max_tokens)
        if self._max_cost is not None and used.cost >= self._max_cost:
            return sentence("limit.cost_a_day", cost=self._max_cost)
        return None
