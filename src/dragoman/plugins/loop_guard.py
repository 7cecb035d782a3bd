"""Asks the person when a model makes the same call over and over."""

from __future__ import annotations

from dragoman.errors import ConfigError
from dragoman.messages.parts import ToolCall
from dragoman.turn.plugin import PlannedCall, Plugin
from dragoman.turn.view import TurnView


class LoopGuard(Plugin):
    """The same tool with the same arguments, so often in a turn, whatever else was called or said between.

    A repeating cycle is met by the same count: each of its calls comes round again.
    """

    def __init__(self, limit: int = 3) -> None:
        if limit < 2:
            raise ConfigError(f"the loop guard's limit is 2 or more, not {limit}")
        self.limit = limit

    async def before_tool(self, call: PlannedCall, turn: TurnView) -> None:
        if call.tool.repeats:
            return
        made = turn.calls
        until = next(place for place, other in enumerate(made) if other.id == call.id)
        same = sum(_same(call, other) for other in made[:until])
        if same + 1 >= self.limit:
            call.ask(
                f"{call.name} was called {same} times with these arguments in this turn. Run it again?",
                "loop",
            )


def _same(call: PlannedCall, other: ToolCall) -> bool:
    """By the tool's own word on what makes two calls the same, or by all arguments."""
    if other.tool != call.name:
        return False
    identity = call.tool.identity
    if identity is None:
        return other.arguments == call.arguments
    try:
        return identity(other.arguments) == identity(call.arguments)
    except Exception:  # it is written for arguments that fit, and an earlier call's may not have
        return other.arguments == call.arguments
