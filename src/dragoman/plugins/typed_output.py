"""Validate the answer of a turn against the requested type, and return an invalid one to the model."""

from __future__ import annotations

from itertools import takewhile

from dragoman.errors import OutputInvalid
from dragoman.messages.endings import INCOMPLETE, REFUSED
from dragoman.messages.message import Message
from dragoman.messages.request import Request
from dragoman.sentences import sentence
from dragoman.turn.output import Unfit
from dragoman.turn.plugin import Appender, Plugin
from dragoman.turn.steps.finalize import answer_of
from dragoman.turn.view import TurnView

_AGAIN = "Answer again, with the whole corrected JSON value and nothing else."


class TypedOutput(Plugin):
    """R8: a reply without calls is the answer. If it does not match the type, the model reads why and tries
    again.

    After the caller's number of retries, the turn fails. A refusal is not validated.
    """

    answers_only = True

    async def on_before_request(self, request: Request, turn: TurnView) -> None:
        if turn.output is not None:
            request.output = turn.output.spec

    async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
        output = turn.output
        if output is None or reply.finish in INCOMPLETE | REFUSED:
            return
        earlier = [*takewhile(lambda message: message.id != reply.id, turn.messages)]
        try:
            # A user message can have arrived since the earlier replies.
            await output.check(answer_of([*earlier, reply]))
        except Unfit as unfit:
            tried = sum(message.author == self.name for message in earlier)
            if tried >= output.spec.retries:
                raise OutputInvalid(
                    sentence("output.invalid", model=turn.model, attempts=tried + 1, unfit=unfit)
                ) from unfit
            await append(f"This answer does not fit:\n{unfit}\n{_AGAIN}")
            append.request()  # A reached limit takes precedence over this request.
