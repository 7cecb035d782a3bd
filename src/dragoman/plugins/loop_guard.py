"""Ask the user when a model makes the same call repeatedly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from dragoman.errors import ConfigError
from dragoman.messages.message import Arguments, ToolCall
from dragoman.sentences import sentence
from dragoman.turn.plugin import PlannedCall, Plugin
from dragoman.turn.view import TurnView


class LoopGuard(Plugin):
    """Asks about a call that repeats tool and arguments too often in a turn, whatever happened in between.

    This also detects cycles, because each of their calls repeats. For a call that only reads, the count
    restarts after a call has changed files, because the result can differ.
    """

    def __init__(self, limit: int = 3) -> None:
        if limit < 2:
            raise ConfigError(f"The loop guard's limit must be 2 or more, not {limit}.")
        self.limit = limit

    async def before_tool(self, call: PlannedCall, turn: TurnView) -> None:
        if call.tool.repeats:
            return
        made = turn.calls
        until = next(place for place, other in enumerate(made) if other.id == call.id)
        begins = _after_changes(made[:until]) if call.tool.writes == "nothing" else 0
        same = sum(_same(call, other) for other in made[begins:until])
        if same + 1 >= self.limit:
            call.ask(
                sentence("loop.again", tool=call.name, same=same),
                "loop",
            )


def _after_changes(made: Sequence[ToolCall]) -> int:
    """Return the index after the last call whose result contains changes."""
    changed = [
        place
        for place, other in enumerate(made)
        if other.result is not None and other.result.metadata.get("diff")
    ]
    return changed[-1] + 1 if changed else 0


def _same(call: PlannedCall, other: ToolCall) -> bool:
    """Return whether two calls are the same, by what the model asked for or by what runs. A user or a plugin
    can have changed the arguments."""
    if other.tool != call.name:
        return False
    if other.arguments == call.arguments:
        return True
    identity = call.tool.identity
    if identity is None and other.original is None and call.asked_for is call.arguments:
        return False
    return _alike(call.asked_for, other.asked_for, identity) or _alike(
        call.arguments, other.arguments, identity
    )


def _alike(one: Arguments, other: Arguments, identity: Callable[[Arguments], object] | None) -> bool:
    """Compare by the tool's `identity`, or by all arguments."""
    if identity is not None:
        with suppress(Exception):  # `identity` expects valid arguments, but an earlier call's can be invalid.
            return identity(one) == identity(other)
    return one == other
