"""Goes on with a reply that its provider interrupted while its own tools worked."""

from __future__ import annotations

from dragoman.messages.message import Message
from dragoman.turn.plugin import Appender, Plugin
from dragoman.turn.view import TurnView


class Pause(Plugin):
    """Sends a reply that ended with `pause` back as it is: the model goes on in the middle of it.

    A pause counts as a round of calls, so the limits of the turn bound how often. One with calls of ours goes
    on by itself, when they have their results.
    """

    answers_only = True

    async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
        if reply.finish == "pause" and reply.parts:
            append.request()
