"""Reads the reply of a model that writes its calls as text: its events, with the calls made events too.

Text is shown as soon as it can be no part of a call; the calls come when the reply is complete. A call that
cannot be read is one without arguments, `raw` being what the model wrote: of the tool it names, or of
`invalid_call` if it names none. `explain` has the text for the model about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dragoman.dialects.grammar import Dialect
from dragoman.dialects.scanner import BadCall, FoundCall, Scanner, Tools
from dragoman.dialects.visible import Piece
from dragoman.messages.endings import BROKEN_OFF
from dragoman.messages.events import (
    CallInputEnd,
    CallInputStart,
    Event,
    MessageEnd,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
)
from dragoman.wire.wire import Prose, call_id

INVALID_CALL = "invalid_call"


class DialectReader:
    """One reply. `reply` is its message's id; the calls are named after it."""

    def __init__(self, dialect: Dialect, tools: Tools | None, reply: str) -> None:
        self._dialect = dialect
        self._tools = tools
        self._reply = reply
        self._scanner = Scanner(dialect, tools)
        self._prose = Prose(dialect.name)
        self._has_text = False
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._found: list[FoundCall] = []  # before something else came in between
        self._native = 0

    def feed(self, event: Event) -> Iterable[Event]:
        if isinstance(event, TextDelta):
            self._texts.append(event.text)
            return self._show(self._scanner.feed(event.text))
        return self._between(event)

    def _between(self, event: Event) -> Iterator[Event]:
        """Everything but text."""
        match event:
            case TextEnd() if event.was_reasoning:
                yield from self._misread()
            case TextStart() | TextEnd():
                pass  # what is shown has its own beginning and end
            case ReasoningStart():
                yield from self._prose.close()
                yield event
            case ReasoningDelta():
                self._thoughts.append(event.text)
                yield event
            case ReasoningEnd():
                yield event
            case CallInputStart():  # a call all the same, made by the model's server
                self._native += 1
                yield from self._break_off()
                yield from self._prose.close()
                yield event
            case MessageEnd():
                yield from self._end(event)
            case _:
                yield event

    def _show(self, pieces: Iterable[Piece]) -> list[Event]:
        events: list[Event] = []
        for voice, text in pieces:
            self._has_text = self._has_text or (voice == "text" and not text.isspace())
            events += self._prose.text(text) if voice == "text" else self._prose.reasoning(text)
        return events

    def _break_off(self) -> Iterator[Event]:
        """What was held back of the text belongs before what comes now."""
        yield from self._show(self._scanner.end())
        self._found += self._scanner.found
        self._scanner = Scanner(self._dialect, self._tools)

    def _misread(self) -> Iterator[Event]:
        """What was sent as text was a thought, and so are the calls in it."""
        yield from self._break_off()
        for event in self._prose.close():
            yield TextEnd(was_reasoning=True) if isinstance(event, TextEnd) else event
        self._thoughts += self._texts
        self._texts, self._found, self._has_text = [], [], False

    def _end(self, event: MessageEnd) -> Iterator[Event]:
        cut = event.unfinished or event.finish in BROKEN_OFF
        yield from self._show(self._scanner.end(cut=cut))
        yield from self._prose.close()
        found = [*self._found, *self._scanner.found] or (() if cut else self._thought_of())
        for place, one in enumerate(found, self._native):
            yield from _announce(call_id(self._reply, place), one)
        if found and not cut:
            event = replace(event, finish="tool_calls", reason="")
        yield event

    def _thought_of(self) -> Sequence[FoundCall]:
        """The calls in a thought that no text follows: some models forget to end it first."""
        if self._has_text or self._native:
            return ()
        return self._dialect.parse("".join(self._thoughts), self._tools).calls


def explain(raw: str, dialect: Dialect, tools: Tools | None = None) -> str:
    """The text for the model about a call that could not be read; "" if it can be."""
    return "\n\n".join(dialect.parse(raw, tools).errors)


def _announce(id: str, one: FoundCall) -> Iterator[Event]:
    if isinstance(one, BadCall):
        tool = one.name or INVALID_CALL
        yield CallInputStart(id, tool)
        yield CallInputEnd(id, tool, None, raw=one.raw)
    else:
        yield CallInputStart(id, one.name, one.id or None)
        yield CallInputEnd(id, one.name, one.arguments)
