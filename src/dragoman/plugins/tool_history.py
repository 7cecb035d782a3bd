"""Sends the tool use of earlier turns in a shorter form."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from dragoman.conversation.window import Policy, trail
from dragoman.errors import ConfigError
from dragoman.messages.request import Request
from dragoman.turn.plugin import Appending, Plugin
from dragoman.turn.view import TurnView


class ToolHistory(Plugin):
    """By policy: `full`, `results`, `hint` or `none`. With `hint`, the answer's metadata records where the
    trail ends and the answer begins in the one text that later requests contain."""

    def __init__(self, policy: Policy) -> None:
        if policy not in get_args(Policy):
            raise ConfigError(f"tool history {policy!r}: it is one of {', '.join(get_args(Policy))}")
        self.policy: Policy = policy

    async def on_before_request(self, request: Request, turn: TurnView) -> None:
        request.messages = turn.window(self.policy)

    async def on_message_append(self, appending: Appending, turn: TurnView) -> None:
        message = appending.message
        if self.policy == "hint" and message.role == "assistant" and not message.calls and turn.calls:
            boundary = len(trail(turn.messages))
            appending.message = replace(message, metadata={**message.metadata, "boundary": boundary})
