"""Read the reply of a model that writes its calls as text, and turn these calls into events.

Text is shown as soon as it cannot be part of a call. The calls come when the reply is complete. An unreadable
call has no arguments, and `raw` is what the model wrote. It is a call of the tool it names, or of
`invalid_call` if it names none. `explain` returns the text for the model about it. If a reply has a native
call, its text is only text (D6).

Reasoning in tags is found on the way. `wire/thinking.py` explains reasoning that the prompt has begun. It is
handled in the same way here, together with the calls.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from dragoman.dialects.grammar import Dialect, tool_named
from dragoman.dialects.scanner import BadCall, FoundCall, Scanner, TextCall, Tools
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
from dragoman.messages.media import text_inside
from dragoman.messages.message import File, Message, Summary, Text, ToolCall, ToolResult
from dragoman.messages.request import Request, RequestMessage
from dragoman.wire.thinking import TAGS
from dragoman.wire.wire import Prose, call_id

INVALID_CALL = "invalid_call"


class DialectReader:
    """Reads one reply. `reply` is its message's ID, from which the IDs of its calls are derived."""

    def __init__(
        self,
        dialect: Dialect,
        tools: Tools | None,
        reply: str,
        *,
        thinking: bool = True,
        inside: bool = False,
        quotes: Callable[[str], bool] = lambda raw: False,
    ) -> None:
        """Set up the reader.

        `thinking`: reasoning may come as tags. `inside`: the prompt has begun reasoning. `quotes` returns
        whether a text came from a user or a tool.
        """
        self.lone_end = False
        self.no_end = False
        self._quotes = quotes
        self._dialect = dialect
        self._tools = tools
        self._reply = reply
        self._thinking = thinking
        self._assumed = inside  # until a tag confirms it
        self._scanner = self._scan(thinking=thinking, inside=inside)
        self._prose = Prose(TAGS)
        self._began = False  # some of the text has come
        self._has_text = False
        self._thought: list[str] = []  # the last reasoning that came as tags
        self._thoughts: list[str] = []  # reasoning that the wire separated
        self._found: list[FoundCall] = []  # calls before something else came in between
        self._native = False  # the server made calls

    def _scan(self, *, thinking: bool, inside: bool = False) -> Scanner:
        return Scanner(self._dialect, self._tools, thinking=thinking, inside=inside, quotes=self._quotes)

    def feed(self, event: Event) -> Iterable[Event]:
        if isinstance(event, TextDelta):
            self._began = True
            return self._show(self._scanner.feed(event.text))
        return self._between(event)

    def break_off(self) -> Iterable[Event]:
        """Yield the text held back from a reply that broke off. No call in it counts."""
        return self._show(self._scanner.end(cut=True, as_text=True))

    def _between(self, event: Event) -> Iterator[Event]:
        """Handle all events except text."""
        match event:
            case TextEnd() if event.was_reasoning:
                yield from self._break_off()
                yield from self._misread()
            case TextEnd() if event.phase is not None:  # from Responses: a separate message
                yield from self._break_off()
                self._prose.phase = event.phase
                yield from self._prose.close()
                self._prose.phase = None
            case TextStart() | TextEnd():
                pass  # the shown text has its own start and end
            case ReasoningStart():
                yield from self._prose.close()
                yield event
            case ReasoningDelta():
                if not self._began and not self._thoughts:  # If the wire separates reasoning, tags are text.
                    self._thinking = self._assumed = False
                    self._scanner = self._scan(thinking=False)
                self._thoughts.append(event.text)
                yield event
            case ReasoningEnd():
                yield event
            case CallInputStart():
                self._native = True
                yield from self._break_off(as_text=True)
                yield from self._prose.close()
                yield event
            case MessageEnd():
                yield from self._end(event)
            case _:
                yield event

    def _show(self, pieces: Iterable[Piece]) -> list[Event]:
        events: list[Event] = []
        for voice, text in pieces:
            if voice == "text":
                self._has_text = self._has_text or not text.isspace()
                self._thought.clear()
                events += self._prose.text(text)
            elif voice == "reasoning":
                self._thought.append(text)
                events += self._prose.reasoning(text)
            else:
                events += self._misread()
        return events

    def _break_off(self, *, as_text: bool = False) -> Iterator[Event]:
        """Show the text held back, because it belongs before the next event."""
        yield from self._show(self._scanner.end(as_text=as_text))
        self._learn()
        self._scanner = self._scan(thinking=self._thinking)
        self._assumed = False

    def _learn(self) -> None:
        self._found += self._scanner.found
        self.lone_end = self.lone_end or self._scanner.lone_end
        self._assumed = self._assumed and not self._scanner.tagged

    def _misread(self) -> Iterator[Event]:
        """Turn text that was already sent, and the calls in it, into reasoning."""
        for event in self._prose.close():
            yield TextEnd(was_reasoning=True) if isinstance(event, TextEnd) else event
        self._found, self._has_text = [], False

    def _end(self, event: MessageEnd) -> Iterator[Event]:
        cut = event.unfinished or event.finish in BROKEN_OFF
        yield from self._show(self._scanner.end(cut=cut))
        self._learn()
        assumed = self._assumed or self._scanner.assumed
        if assumed and self._thought and not self._native and event.finish in ("stop", "unknown"):
            yield from self._repeat_as_text()
        yield from self._prose.close()
        found: Sequence[FoundCall] = () if self._native else self._found
        found = found or (() if cut else self._thought_of())
        for place, one in enumerate(found):
            yield from _announce(call_id(self._reply, place), one, cut=event.finish in BROKEN_OFF)
        if found and not cut:
            event = replace(event, finish="tool_calls", reason="")
        yield event

    def _repeat_as_text(self) -> Iterator[Event]:
        """Send the answer of a reply that was wrongly assumed to begin inside reasoning."""
        self.no_end = True
        words = self._scanner.assumed
        text = "".join([f"{words}\n\n" if words else "", *self._thought])
        self._scanner = self._scan(thinking=not words)
        yield from self._show([*self._scanner.feed(text), *self._scanner.end()])
        self._learn()

    def _thought_of(self) -> Sequence[FoundCall]:
        """Return calls in reasoning that has no end and no text after it: some models forget to end it first.

        If the wire separated the reasoning, it is unknown whether the model ended it.
        """
        if self._has_text or self._native:
            return ()
        thought = self._thought if self._scanner.unclosed else self._thoughts
        return self._dialect.parse("".join(thought), self._tools, self._quotes).calls


def explain(raw: str, dialect: Dialect, tools: Tools | None = None) -> str:
    """Return the text for the model about an unreadable call. "" if it is readable."""
    return "\n\n".join(dialect.parse(raw, tools).errors)


class Guesser:
    """Searches a complete reply for calls in formats that its model is not known to write (D7).

    Feed it with the events that remain after a reader. A guess is a call that needs approval.
    """

    def __init__(self, every: Dialect, tools: Tools, reply: str, quotes: Callable[[str], bool]) -> None:
        """Set up the guesser. `every` reads all formats."""
        self._every = every
        self._tools = tools
        self._reply = reply
        self._quotes = quotes
        self._text: list[str] | None = []

    def feed(self, event: Event) -> Iterable[Event]:
        match event:
            case TextDelta() if self._text is not None:
                self._text.append(event.text)
            case TextEnd() if event.was_reasoning and self._text is not None:
                self._text.clear()
            case CallInputStart():
                self._text = None
            case MessageEnd() if self._text and not event.unfinished and event.finish not in BROKEN_OFF:
                return self._end("".join(self._text), event)
            case _:
                pass
        return (event,)

    def _end(self, text: str, event: MessageEnd) -> Iterator[Event]:
        calls = self._every.parse(text, self._tools, self._quotes).found
        if calls and all(isinstance(one, TextCall) and tool_named(one.name, self._tools) for one in calls):
            for place, one in enumerate(calls):
                yield from _announce(call_id(self._reply, place), one, guessed=True)
        yield event


def quotes_of(request: Request) -> Callable[[str], bool]:
    """Return a function that tells whether a text is in a user's message or a result of this conversation
    (D8)."""
    brought: list[str] = []

    def quotes(raw: str) -> bool:
        if not brought:
            texts = (*brought_in(request.messages), *request.brought(), *request.texts)
            brought.extend((_bare("\0".join(texts)), "\n".join(_lines("\0".join(texts)))))
        return _bare(raw) in brought[0] or _has_lines(brought[1], _lines(raw))

    return quotes


def brought_in(messages: Iterable[Message | RequestMessage]) -> Iterator[str]:
    """Yield the texts that users and tools brought into these messages."""
    for message in messages:
        for part in message.parts:
            match part:
                case Text() | Summary() if message.role != "assistant":
                    yield part.text
                case File():
                    yield text_inside(part.url or "") or ""
                case ToolCall(result=ToolResult() as result):
                    yield result.text
                    yield from (text_inside(file.url or "") or "" for file in result.attachments)


def _has_lines(text: str, lines: Sequence[str]) -> bool:
    """Return whether a call's lines follow each other in a text, each after a possible prefix of a tool (a
    number, a file name)."""
    return len(lines) > 1 and re.search(r"\n[^\n]*".join(map(re.escape, lines)), text) is not None


def _lines(text: str) -> list[str]:
    return [bare for line in text.splitlines() if (bare := _bare(line))]


def _bare(text: str) -> str:
    """Return a text without what quoting changes: white space, escapes of JSON, HTML and CSV, quote marks of
    a mail."""
    text = _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else "", text)
    text = unicodedata.normalize("NFKC", html.unescape(text)).replace('""', '"')
    return _QUOTING.sub("", "".join(char for char in text if unicodedata.category(char) != "Cf"))


_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})|\\[nrtbf]")
_QUOTING = re.compile(r"^[ \t]*>+|[\s\\]+", re.MULTILINE)


def _announce(id: str, one: FoundCall, *, cut: bool = False, guessed: bool = False) -> Iterator[Event]:
    if isinstance(one, BadCall) or cut:  # D8: no call of a reply that was cut off runs
        tool = one.name or INVALID_CALL
        yield CallInputStart(id, tool, format=one.format)
        yield CallInputEnd(id, tool, None, raw=one.raw if isinstance(one, BadCall) else "")
    else:
        yield CallInputStart(id, one.name, one.id or None, format=one.format, guessed=guessed)
        yield CallInputEnd(id, one.name, one.arguments)
