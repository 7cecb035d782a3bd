"""Decodes the lines of a reply (`prompt.py`) into our events as they arrive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dragoman.messages.boundary import read_strict_json
from dragoman.messages.events import (
    CallInputDelta,
    CallInputEnd,
    CallInputStart,
    Event,
    TextDelta,
    TextEnd,
    TextStart,
)
from dragoman.messages.message import Arguments
from dragoman.providers.local.prompt import CALL, SAY, SHOW, TALK
from dragoman.wire.wire import call_id


@dataclass(slots=True, frozen=True)
class WrittenCall:
    """A call as the model wrote it. Without arguments it did not come to an end."""

    tool: str
    raw: str
    arguments: Arguments | None


class ReplyDecoder:
    """Decodes one reply. An answer streams, unless `whole` asks for it in one piece, to be checked."""

    def __init__(self, *, whole: bool = False) -> None:
        self._whole = whole
        self._text = ""
        self._passed = 0  # characters of the text that were passed on

    @property
    def word(self) -> str:
        """Which kind of line the reply begins with."""
        return next((word for word in (CALL, SAY, SHOW, TALK) if self._text.startswith(word)), "")

    @property
    def answer(self) -> str:
        """What follows the word of an answer."""
        return self._text.removeprefix(self.word).strip()

    @property
    def streamed(self) -> bool:
        return self._passed > 0

    def calls(self) -> list[WrittenCall]:
        return [_read_call(line) for line in self._text.split("\n") if line.startswith(CALL)]

    def feed(self, piece: str) -> Iterator[Event]:
        self._text += piece
        begins = len(SAY) + 1
        if self._whole or self.word != SAY or len(self._text) <= begins:
            return
        if not self._passed:
            self._passed = begins
            yield TextStart()
        if fresh := self._text[self._passed :]:
            self._passed = len(self._text)
            yield TextDelta(fresh)


def text_events(text: str) -> Iterator[Event]:
    yield from (TextStart(), TextDelta(text), TextEnd())


def call_events(calls: Iterable[WrittenCall], reply: str) -> Iterator[Event]:
    for position, call in enumerate(calls):
        id = call_id(reply, position)
        yield CallInputStart(id, call.tool)
        yield CallInputDelta(id, call.raw)
        if call.arguments is None:
            yield CallInputEnd(id, call.tool, None, call.raw)
        else:
            yield CallInputEnd(id, call.tool, call.arguments)


def _read_call(line: str) -> WrittenCall:
    tool, _, raw = line.removeprefix(CALL).strip().partition(" ")
    try:
        arguments = read_strict_json(raw)
    except ValueError:  # it did not come to an end
        return WrittenCall(tool, raw, None)
    return WrittenCall(tool, raw, arguments if isinstance(arguments, dict) else None)
