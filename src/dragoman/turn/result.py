"""What came of a turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Generic, cast

from typing_extensions import TypeVar

from dragoman.conversation.window import trail_and_answer
from dragoman.errors import OutputInvalid, ProviderError
from dragoman.messages.message import Message
from dragoman.messages.usage import Usage
from dragoman.sentences import sentence
from dragoman.turn.facts import TurnFailed
from dragoman.turn.machine import State, Turn
from dragoman.turn.output import TYPED_OUTPUT, Output, Unfit
from dragoman.turn.steps.finalize import answer_of, finish_of

T = TypeVar("T", default=str)


@dataclass(slots=True, frozen=True)
class TurnResult(Generic[T]):
    id: str
    state: State
    text: str
    messages: tuple[Message, ...]
    usage: Usage
    limit: str = ""  # which one was reached, in words: then the answer was asked for without tools
    finish: str = ""  # how its last reply ended: stop, length, refusal, … (`messages/endings.py`)
    _output: Output[T] | None = field(default=None, repr=False)

    @property
    def trail_size(self) -> int:
        """How long the trail is: the turn's calls and results as one text, which stands before its answer
        where the policy for earlier tool use is `hint`."""
        return self.answer_slice[0]

    @property
    def answer_slice(self) -> tuple[int, int]:
        """Where the answer begins and ends in the text of trail and answer."""
        trail, answer = trail_and_answer(self.messages)
        return len(trail), len(trail) + len(answer)

    @property
    def output(self) -> T:
        """The answer as the type that was asked for; where none was, the text. OutputInvalid where a turn
        that was cancelled, refused or broken off has none."""
        if self._output is None:
            return cast("T", self.text)
        for last in takewhile(lambda message: message.role == "user", reversed(self.messages)):
            if last.author == TYPED_OUTPUT:  # it was told so, and not asked again
                raise OutputInvalid(sentence("output.none", turn=self.id, why=last.text))
        try:
            return self._output.parse(self.text)
        except Unfit as error:
            ended = self.finish if self.finish != "stop" else self.state
            raise OutputInvalid(sentence("output.ended", turn=self.id, ended=ended, error=error)) from error


def result_of(id: str, turn: Turn, messages: Sequence[Message], output: Output[T] | None) -> TurnResult[T]:
    text = answer_of(messages)
    return TurnResult(id, turn.state, text, tuple(messages), turn.usage, turn.limit, finish_of(turn), output)


def error_of(failed: TurnFailed) -> ProviderError:
    """What a turn failed with, as far as it is stored."""
    if failed.kind == OutputInvalid.KIND:
        return OutputInvalid(failed.error)
    return ProviderError(failed.error, kind=failed.kind, retryable=failed.retryable)
