"""Rounds, tokens, cost, time and calls of a turn: at a limit it ends with an answer, not with an error."""

from __future__ import annotations

from dragoman.errors import ConfigError
from dragoman.messages.request import Request
from dragoman.turn.plugin import PlannedCall, Plugin
from dragoman.turn.view import TurnView


class RoundLimit(Plugin):
    """So many batches of calls a turn. The batch after the last is skipped, and the answer asked for."""

    def __init__(self, max_rounds: int = 10) -> None:
        if type(max_rounds) is not int or max_rounds < 0:
            raise ConfigError(f"max_rounds is a whole number of 0 or more, not {max_rounds!r}")
        self.max_rounds = max_rounds

    async def on_before_request(self, request: Request, turn: TurnView) -> None:
        if self.max_rounds == 0:
            request.without_tools()

    async def before_tool(self, call: PlannedCall, turn: TurnView) -> None:
        if turn.turn.rounds > self.max_rounds:
            call.skip(
                f"The limit of {self.max_rounds} rounds of tool calls is reached: this call did not run. "
                "Answer with what there is."
            )


class Budget(Plugin):
    """Limits on what a turn may use. None means no limit; a cost that is unknown is not counted."""

    def __init__(
        self,
        *,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        max_seconds: float | None = None,
        max_calls: int | None = None,
    ) -> None:
        limits = {
            "max_tokens": max_tokens,
            "max_cost": max_cost,
            "max_seconds": max_seconds,
            "max_calls": max_calls,
        }
        for name, value in limits.items():
            if value is not None and not value > 0:
                raise ConfigError(f"{name} is a number above 0 or None, not {value!r}")
        self.max_tokens = max_tokens
        self.max_cost = max_cost
        self.max_seconds = max_seconds
        self.max_calls = max_calls

    async def before_tool(self, call: PlannedCall, turn: TurnView) -> None:
        reached = self._reached(call, turn)
        if reached is not None:
            call.skip(f"The limit of {reached} is reached: this call did not run. Answer with what there is.")

    def _reached(self, call: PlannedCall, turn: TurnView) -> str | None:
        usage = turn.turn.usage
        if self.max_tokens is not None and usage.total >= self.max_tokens:
            return f"{self.max_tokens} tokens"
        if self.max_cost is not None and (usage.cost or 0) >= self.max_cost:
            return f"${self.max_cost:g}"
        if self.max_seconds is not None and turn.seconds >= self.max_seconds:
            return f"{self.max_seconds:g} seconds"
        if self.max_calls is not None:
            place = next(place for place, made in enumerate(turn.calls) if made.id == call.id)
            if place >= self.max_calls:
                return f"{self.max_calls} calls"
        return None
