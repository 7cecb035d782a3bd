"""Send earlier turns in a shorter form."""

from __future__ import annotations

from collections.abc import Collection
from typing import get_args

from dragoman.conversation.window import PARTS, Policy
from dragoman.errors import ConfigError
from dragoman.messages.request import Request
from dragoman.turn.plugin import Plugin
from dragoman.turn.view import TurnView


class ToolHistory(Plugin):
    """Shortens earlier turns by a policy: `full`, `results`, `hint` or `none`. With `hint`, later requests
    contain one text of a turn's calls, then its answer. `TurnResult.trail_size` is the length of the first
    part."""

    def __init__(self, policy: Policy, parts: Collection[str] | None = None) -> None:
        """`parts` are the types of parts to send of earlier messages in addition to text. None sends all."""
        if policy not in get_args(Policy):
            raise ConfigError(
                f"Unknown tool history {policy!r}. Choose one of {', '.join(get_args(Policy))}."
            )
        if unknown := sorted({*(parts or ())} - {*PARTS}):
            raise ConfigError(
                f"Unknown part {unknown[0]!r} in history_parts. Choose from {', '.join(PARTS)}."
            )
        self.policy: Policy = policy
        self.parts = parts

    async def on_before_request(self, request: Request, turn: TurnView) -> None:
        request.messages = turn.window(self.policy, self.parts)
