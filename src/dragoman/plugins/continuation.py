"""Go on after a reply that was cut off: at the provider's pause, or at its limit of length."""

from __future__ import annotations

from dragoman.errors import ConfigError
from dragoman.messages.message import Message
from dragoman.turn.plugin import Appender, Plugin
from dragoman.turn.view import TurnView

# Lets a model go on where its reply was cut off by the length limit.


USUAL = 3


class Length(Plugin):
    """Asks for the rest of a reply that ended with `length`, `times` at most.

    Where nothing is said, that is three times, and never where `max_tokens` is set: who names a limit means
    the whole reply. A reply with calls is left alone: what was cut off of them is told to the model as their
    result. One that is still cut off in the end is told to the person.
    """

    answers_only = True

    def __init__(self, times: int | None = None) -> None:
        if times is not None and (type(times) is not int or times < 0):
            raise ConfigError(f"'continuations' must be a whole number of 0 or more, or None, not {times!r}.")
        self.times = times

    async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
        if reply.finish != "length" or not reply.text:
            return
        asked = sum(message.author == self.name for message in turn.messages)
        if asked < self._times(turn):
            await append.and_request("Your reply was cut off. Go on exactly where it stopped.")

    def _times(self, turn: TurnView) -> int:
        """As the conversation has it, else the settings, else as it is usual."""
        wanted = turn.settings.get("continuations", self.times)
        if isinstance(wanted, int):
            return wanted
        return 0 if turn.options.get("max_tokens") is not None else USUAL


# Goes on with a reply that its provider interrupted while its own tools worked.


class Pause(Plugin):
    """Sends a reply that ended with `pause` back as it is: the model goes on in the middle of it.

    A pause counts as a round of calls, so the limits of the turn bound how often. One with calls of ours goes
    on by itself, when they have their results.
    """

    answers_only = True

    async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
        if reply.finish == "pause" and reply.parts:
            append.request()
