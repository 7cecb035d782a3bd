"""Asks the person when a model makes the same call over and over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from dragoman.errors import ConfigError
from dragoman.messages.message import Arguments, ToolCall
from dragoman.sentences import sentence
from dragoman.turn.plugin import PlannedCall, Plugin
from dragoman.turn.view import TurnView


class LoopGuard(Plugin):
    """The same tool with the same arguments, so often in a turn, whatever else was called or said between.

    A repeating cycle is met by the same count: each of its calls comes round again. A call that only reads
    counts anew once a call has changed files: it may find something else.
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
    """The place after the last call whose result says what it changed."""
    changed = [
        place
        for place, other in enumerate(made)
        if other.result is not None and other.result.metadata.get("diff")
    ]
    return changed[-1] + 1 if changed else 0


def _same(call: PlannedCall, other: ToolCall) -> bool:
    """By what the model asked for, which a person or a plugin may have changed, or by what runs."""
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
    """By the tool's own word on what makes two calls the same, or by all arguments."""
    if identity is not None:
        with suppress(Exception):  # it is written for arguments that fit, and an earlier call's may not have
            return identity(one) == identity(other)
    return one == other
