"""Rounds, tokens, cost, time and calls of a turn: at a limit it ends with an answer, not with an error."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.errors import ConfigError
from dragoman.messages.codec import Codec
from dragoman.messages.request import Request
from dragoman.messages.usage import Usage
from dragoman.turn.agent import NO_LIMITS, Limits
from dragoman.turn.plugin import PlannedCall, Plugin
from dragoman.turn.view import TurnView

USAGE: Codec[Usage] = Codec(Usage)


class RoundLimit(Plugin):
    """So many batches of calls a turn. The batch after the last is skipped, and the answer asked for."""

    def __init__(self, max_rounds: int = 10) -> None:
        if type(max_rounds) is not int:
            raise ConfigError(f"max_rounds is a whole number of 0 or more, not {max_rounds!r}")
        Limits(max_rounds=max_rounds)  # raises for what is no limit
        self.max_rounds = max_rounds

    async def on_before_request(self, request: Request, turn: TurnView) -> None:
        if self._limit(turn) == 0:
            request.without_tools()

    async def before_tool(self, call: PlannedCall, turn: TurnView) -> None:
        if turn.turn.rounds > (limit := self._limit(turn)):
            call.skip(
                f"The limit of {limit} rounds of tool calls is reached: this call did not run. "
                "Answer with what there is."
            )

    def _limit(self, turn: TurnView) -> int:
        own = turn.agent.limits.max_rounds
        return self.max_rounds if own is None else own


class Budget(Plugin):
    """Limits on what a turn may use. None means no limit; a cost that is unknown is not counted.

    An agent's own limits come before these.
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

    async def before_tool(self, call: PlannedCall, turn: TurnView) -> None:
        limits = turn.agent.limits.over(self.limits) if turn.agent.limits != NO_LIMITS else self.limits
        reached = _reached(limits, call, turn) if limits != NO_LIMITS else None
        if reached is not None:
            call.skip(f"The limit of {reached} is reached: this call did not run. Answer with what there is.")


def _of_tasks(turn: TurnView) -> Iterator[Usage]:
    """What the turns used that this one's calls began."""
    for call in turn.calls:
        spent = call.result.metadata.get("usage") if call.result is not None else None
        if isinstance(spent, dict):
            yield USAGE.from_json(spent)


def _reached(limits: Limits, call: PlannedCall, turn: TurnView) -> str | None:
    usage = sum(_of_tasks(turn), turn.turn.usage)
    if limits.max_tokens is not None and usage.total >= limits.max_tokens:
        return f"{limits.max_tokens} tokens"
    if limits.max_cost is not None and (usage.cost or 0) >= limits.max_cost:
        return f"${limits.max_cost:g}"
    if limits.max_seconds is not None and turn.seconds >= limits.max_seconds:
        return f"{limits.max_seconds:g} seconds"
    if limits.max_calls is not None:
        place = next(place for place, made in enumerate(turn.calls) if made.id == call.id)
        if place >= limits.max_calls:
            return f"{limits.max_calls} calls"
    return None
