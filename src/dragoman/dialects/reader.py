"""Reads the reply of a model that writes its calls as text: its events, with the calls made events too.

Text is shown as soon as it can be no part of a call; the calls come when the reply is complete. A call that
cannot be read is one without arguments, `raw` being what the model wrote: of the tool it names, or of
`invalid_call` if it names none. `explain` has the text for the model about it. A native call in a reply means
that its text is text (D6).

Thoughts that come as tags are found on the way. `wire/thinking.py` tells what is done about those that the
prompt has begun; it is the same here, beside the calls.
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
    """One reply. `reply` is its message's id; the calls are named after it."""

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
        """`thinking` says that thoughts may come as tags, `inside` that the prompt has begun one, `quotes`
        that a text came from a person or a tool."""
        self.lone_end = False
        self.no_end = False
        self._quotes = quotes
        self._dialect = dialect
        self._tools = tools
        self._reply = reply
        self._thinking = thinking
        self._assumed = inside  # until a tag proves it
        self._scanner = self._scan(thinking=thinking, inside=inside)
        self._prose = Prose(TAGS)
        self._began = False  # some of the text has come
        self._has_text = False
        self._thought: list[str] = []  # the last one that came as tags
        self._thoughts: list[str] = []  # those that the wire told apart
        self._found: list[FoundCall] = []  # before something else came in between
        self._native = False  # the server made calls

    def _scan(self, *, thinking: bool, inside: bool = False) -> Scanner:
        return Scanner(self._dialect, self._tools, thinking=thinking, inside=inside, quotes=self._quotes)

    def feed(self, event: Event) -> Iterable[Event]:
        if isinstance(event, TextDelta):
            self._began = True
            return self._show(self._scanner.feed(event.text))
        return self._between(event)

    def break_off(self) -> Iterable[Event]:
        """What was held back of a reply that broke off. No call in it counts."""
        return self._show(self._scanner.end(cut=True, as_text=True))

    def _between(self, event: Event) -> Iterator[Event]:
        """Everything but text."""
        match event:
            case TextEnd() if event.was_reasoning:
                yield from self._break_off()
                yield from self._misread()
            case TextEnd() if event.phase is not None:  # of Responses: a message of its own
                yield from self._break_off()
                self._prose.phase = event.phase
                yield from self._prose.close()
                self._prose.phase = None
            case TextStart() | TextEnd():
                pass  # what is shown has its own beginning and end
            case ReasoningStart():
                yield from self._prose.close()
                yield event
            case ReasoningDelta():
                if not self._began and not self._thoughts:  # tags are text where the wire has no need of them
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
        """What was held back of the text belongs before what comes now."""
        yield from self._show(self._scanner.end(as_text=as_text))
        self._learn()
        self._scanner = self._scan(thinking=self._thinking)
        self._assumed = False

    def _learn(self) -> None:
        self._found += self._scanner.found
        self.lone_end = self.lone_end or self._scanner.lone_end
        self._assumed = self._assumed and not self._scanner.tagged

    def _misread(self) -> Iterator[Event]:
        """What was sent as text was a thought, and so are the calls in it."""
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
        """A reply that was wrongly taken to begin inside a thought was the answer."""
        self.no_end = True
        words = self._scanner.assumed
        text = "".join([f"{words}\n\n" if words else "", *self._thought])
        self._scanner = self._scan(thinking=not words)
        yield from self._show([*self._scanner.feed(text), *self._scanner.end()])
        self._learn()

    def _thought_of(self) -> Sequence[FoundCall]:
        """The calls in a thought that nothing ends and no text follows: some models forget to end it first.
        Of a thought that the wire told apart, nobody knows whether the model ended it.
        """
        if self._has_text or self._native:
            return ()
        thought = self._thought if self._scanner.unclosed else self._thoughts
        return self._dialect.parse("".join(thought), self._tools, self._quotes).calls


def explain(raw: str, dialect: Dialect, tools: Tools | None = None) -> str:
    """The text for the model about a call that could not be read; "" if it can be."""
    return "\n\n".join(dialect.parse(raw, tools).errors)


class Guesser:
    """Looks at a complete reply for calls in a format that its model is not known to write (D7).

    Fed with the events that a reader leaves. A guess is a call that asks before it runs.
    """

    def __init__(self, every: Dialect, tools: Tools, reply: str, quotes: Callable[[str], bool]) -> None:
        """`every` reads all formats."""
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
    """Whether a text is in a message of a person, or in a result, of this conversation (D8)."""
    brought: list[str] = []

    def quotes(raw: str) -> bool:
        if not brought:
            texts = (*brought_in(request.messages), *request.brought(), *request.texts)
            brought.extend((_bare("\0".join(texts)), "\n".join(_lines("\0".join(texts)))))
        return _bare(raw) in brought[0] or _has_lines(brought[1], _lines(raw))

    return quotes


def brought_in(messages: Iterable[Message | RequestMessage]) -> Iterator[str]:
    """The texts that people and tools brought into these messages."""
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
    """Whether the lines of a call follow each other in a text, each behind whatever a tool put in front of
    it: a number, the name of its file."""
    return len(lines) > 1 and re.search(r"\n[^\n]*".join(map(re.escape, lines)), text) is not None


def _lines(text: str) -> list[str]:
    return [bare for line in text.splitlines() if (bare := _bare(line))]


def _bare(text: str) -> str:
    """A text without what changes when it is quoted: white space, escapes of JSON, HTML and CSV, quotation
    marks of a mail."""
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
