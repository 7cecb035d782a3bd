"""Sends the tool use of earlier turns in a shorter form."""

from __future__ import annotations

from typing import get_args

from dragoman.conversation.window import Policy
from dragoman.errors import ConfigError
from dragoman.messages.request import Request
from dragoman.turn.plugin import Plugin
from dragoman.turn.view import TurnView


class ToolHistory(Plugin):
    """By policy: `full`, `results`, `hint` or `none`. With `hint`, later requests contain one text: the calls
    of the turn, then its answer. `TurnResult.trail_size` says where one ends and the other begins."""

    def __init__(self, policy: Policy) -> None:
        if policy not in get_args(Policy):
            raise ConfigError(f"tool history {policy!r}: it is one of {', '.join(get_args(Policy))}")
        self.policy: Policy = policy

    async def on_before_request(self, request: Request, turn: TurnView) -> None:
        request.messages = turn.window(self.policy)
