"""Continue a reply that was cut off by the provider's pause or by its length limit."""

from __future__ import annotations

from dragoman.errors import ConfigError
from dragoman.messages.message import Message
from dragoman.turn.plugin import Appender, Plugin
from dragoman.turn.view import TurnView

# This plugin lets a model continue a reply that the length limit cut off.


USUAL = 3


class Length(Plugin):
    """Requests the rest of a reply that ended with `length`, at most `times` times.

    The default is three times, and none if `max_tokens` is set, because such a limit applies to the whole
    reply. A reply with calls is not continued: the model learns from their results that they were cut off.
    The user is notified if the reply is still cut off at the end.
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
        """Return the number of continuations: from the conversation, the settings, or the default."""
        wanted = turn.settings.get("continuations", self.times)
        if isinstance(wanted, int):
            return wanted
        return 0 if turn.options.get("max_tokens") is not None else USUAL


# This plugin continues a reply that the provider interrupted while the provider's tools worked.


class Pause(Plugin):
    """Sends a reply that ended with `pause` back unchanged, so that the model continues in the middle of it.

    A pause counts as a round of calls, so the limits of the turn apply to it. A reply with Dragoman's calls
    continues anyway when they have their results.
    """

    answers_only = True

    async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
        if reply.finish == "pause" and reply.parts:
            append.request()
