"""Lets a model go on where its reply was cut off by the length limit."""

from __future__ import annotations

from dragoman.messages.message import Message
from dragoman.turn.plugin import Appender, Plugin
from dragoman.turn.view import TurnView


class Length(Plugin):
    """Asks for the rest of a reply that ended with `length`, a few times at most.

    A reply with calls is left alone: what was cut off of them is told to the model as their result.
    """

    def __init__(self, times: int = 3) -> None:
        self.times = times

    async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
        if reply.finish != "length" or reply.calls or not reply.text:
            return
        asked = sum(message.author == self.name for message in turn.messages)
        if asked < self.times:
            await append.and_request("Your reply was cut off. Go on exactly where it stopped.")
