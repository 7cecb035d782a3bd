"""Asks the person when a model makes the same call over and over."""

from __future__ import annotations

from pydantic import JsonValue

from dragoman.errors import ConfigError
from dragoman.messages.parts import Arguments, canonical
from dragoman.tools.tool import Tool
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
        wanted = _identity(call.tool, call.arguments)
        made = turn.calls
        until = next(place for place, other in enumerate(made) if other.id == call.id)
        same = sum(
            other.tool == call.name and _identity(call.tool, other.arguments) == wanted
            for other in made[:until]
        )
        if same + 1 >= self.limit:
            call.ask(
                f"{call.name} was called {same} times with these arguments in this turn. Run it again?",
                "loop",
            )


def _identity(tool: Tool, arguments: Arguments) -> str:
    """What makes two calls of a tool the same: its own word on it, or all arguments."""
    key: JsonValue = tool.identity(arguments) if tool.identity is not None else arguments
    return canonical(key)
