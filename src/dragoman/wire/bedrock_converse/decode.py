"""Decode the event stream of Converse. No network, no clock."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import JsonValue

from dragoman.messages.endings import BROKEN_OFF, reason_of
from dragoman.messages.events import Event, FileAdded, MessageEnd, ProviderData, TextCited
from dragoman.messages.message import Citation, File
from dragoman.messages.usage import Usage, count, counted
from dragoman.wire.bedrock_converse.shapes import (
    FINISH,
    METADATA_FIELDS,
    NAME,
    PADDING,
    SERVER_CALL,
    STOP_FIELDS,
    USAGE_FIELDS,
    Block,
    ConverseEvent,
    ConverseTokens,
)
from dragoman.wire.calls import Calls, parse_arguments
from dragoman.wire.prose import extra_fields, join_all, read_json
from dragoman.wire.transport_errors import unfinished
from dragoman.wire.wire import Prose

# Read results of Amazon's own tools, their sources, and why a guardrail intervened.


BLOCKED = "BLOCKED"  # the action of a rule that intervened


def line_of(block: Block) -> str:
    """Return a line for people about a call of Amazon's tools, or its result."""
    match block:
        case {"toolUse": {"name": str(name), "input": dict(given)}}:
            value = next((one for one in given.values() if isinstance(one, str) and one), "")
            return f"{name}: {value}" if value else name
        case {"toolResult": {"content": list(content)}}:
            texts = [str(one["text"]) for one in content if isinstance(one, dict) and one.get("text")]
            return " ".join(texts)
        case _:
            return ""


def citation_of(given: Any, start: int, end: int) -> Citation:
    """Return a source of the text between these characters, with Amazon's own form of it."""
    fields = join_all(given)
    held: dict[str, JsonValue] = fields if isinstance(fields, dict) else {}
    location = held.get("location")
    web = location.get("web") if isinstance(location, dict) else None
    address = web.get("url") if isinstance(web, dict) else held.get("source")
    quoted = held.get("sourceContent")
    words = "".join(
        str(one.get("text") or "")
        for one in (quoted if isinstance(quoted, list) else ())
        if isinstance(one, dict)
    )
    title = held.get("title")
    return Citation(
        address if isinstance(address, str) and address else None,
        title if isinstance(title, str) and title else None,
        words or None,
        start,
        end,
        fields,
    )


def blocking_rules(trace: JsonValue) -> Iterator[str]:
    """Yield the names of the guardrail rules that blocked something, as far as the trace has them."""
    match trace:
        case dict():
            if trace.get("action") == BLOCKED:
                yield str(trace.get("name") or trace.get("type") or trace.get("match") or BLOCKED)
            for inner in trace.values():
                yield from blocking_rules(inner)
        case list():
            for inner in trace:
                yield from blocking_rules(inner)


class ConverseDecoder:
    """One reply. `finish_word` is the provider's word for how the reply ended.

    The content comes in numbered blocks, each with deltas and a stop. Only some of them have a start.
    """

    def __init__(self, reply: str) -> None:
        self.finish_word: str | None = None
        self._prose = Prose(NAME)
        self._calls = Calls(reply)
        self._started: dict[int, dict[str, Any]] = {}  # the start events of open blocks
        self._pieces: dict[int, list[str]] = {}  # of a signature, an input or an image
        self._redacted: list[str] = []
        self._results: dict[int, list[Any]] = {}  # of Amazon's own tools
        self._thought: int | None = None  # the reasoning block that is open
        self._text: int | None = None  # the text block that is open, and where it began
        self._begun = 0
        self._cited: list[Any] = []
        self._files = 0
        self._usage: ConverseTokens = {}
        self._rules: list[str] = []

    @property
    def usage(self) -> Usage:
        """The usage known so far."""
        return _usage(self._usage)

    def feed(self, frame: bytes) -> Iterable[Event]:
        event: ConverseEvent = read_json(frame)
        delta = event.get("contentBlockDelta")
        if delta is None:
            return self._event(event)
        index, piece = delta.get("contentBlockIndex", 0), delta["delta"]
        if "text" not in piece:
            return self._delta(index, piece)
        return self._prose.text(piece["text"]) if index == self._text else self._begin(index, piece["text"])

    def end(self) -> Iterator[Event]:
        torn = self.finish_word is None
        yield from self._close_thought()
        yield from self._prose.close()
        finish = FINISH.get(self.finish_word or "", "unknown")
        yield from self._calls.close(cut=torn or finish in BROKEN_OFF)
        if torn:
            raise unfinished()
        if len(self._calls) and finish in ("stop", "unknown", "malformed"):
            finish = "tool_calls"
        if extra := extra_fields(self._usage, USAGE_FIELDS):
            yield ProviderData(NAME, {"usage": extra})
        why = ", ".join(dict.fromkeys(self._rules))
        yield MessageEnd(finish, self.usage, reason=reason_of(finish, self.finish_word, why))

    def _event(self, event: ConverseEvent) -> Iterator[Event]:
        for name, held in event.items():
            match name:
                case "contentBlockStart":
                    yield from self._start(held.get("contentBlockIndex", 0), held.get("start") or {})
                case "contentBlockStop":
                    yield from self._stop(held.get("contentBlockIndex", 0))
                case "messageStop":
                    self.finish_word = held.get("stopReason") or self.finish_word
                    yield from _extra(held, STOP_FIELDS)
                case "metadata":
                    self._usage |= counted(held.get("usage"), self._usage)
                    self._rules += blocking_rules(held.get("trace"))
                    yield from _extra(held, METADATA_FIELDS)
                case "messageStart":
                    pass
                case _:  # future event types
                    yield from _extra(event, frozenset({PADDING}))

    # ── blocks ────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, index: int, text: str) -> Iterator[Event]:
        """Start a block of text with its first chunk: such blocks have no start event."""
        yield from self._close_thought()
        self._text, self._begun = index, self._prose.length
        yield from self._prose.text(text)

    def _start(self, index: int, start: dict[str, Any]) -> Iterator[Event]:
        self._started[index] = start
        if call := start.get("toolUse"):
            yield from self._close_thought()
            yield from self._prose.close()
            if call.get("type") != SERVER_CALL:
                yield from self._calls.start(index, str(call["name"]), id=call.get("toolUseId") or None)

    def _delta(self, index: int, delta: dict[str, Any]) -> Iterator[Event]:
        match delta:
            case {"toolUse": {"input": str(piece)}}:
                self._pieces.setdefault(index, []).append(piece)
                yield from self._calls.piece(index=index, arguments=piece) if self._is_ours(index) else ()
            case {"reasoningContent": dict(thought)}:
                yield from self._think(index, thought)
            case {"citation": source}:
                self._cited.append(source)
            case {"image": {"source": {"bytes": str(data)}}}:
                self._pieces.setdefault(index, []).append(data)
            case {"toolResult": list(parts)}:
                self._results.setdefault(index, []).extend(parts)
            case _:
                yield from _extra(delta, frozenset())

    def _is_ours(self, index: int) -> bool:
        call = self._started.get(index, {}).get("toolUse")
        return call is not None and call.get("type") != SERVER_CALL

    def _think(self, index: int, thought: dict[str, Any]) -> Iterator[Event]:
        if index != self._thought:
            yield from self._close_thought()  # Each has its own signature.
            self._thought = index
        if text := thought.get("text"):
            yield from self._prose.reasoning(text)
        if signature := thought.get("signature"):
            self._pieces.setdefault(index, []).append(signature)
        if redacted := thought.get("redactedContent"):
            self._redacted.append(redacted)

    def _close_thought(self) -> Iterator[Event]:
        if self._thought is None:
            return
        signature = "".join(self._pieces.pop(self._thought, ()))
        self._thought = None
        yield from self._prose.close(signature=signature or None)
        if self._redacted:
            yield from self._prose.close(opaque={"redactedContent": _joined(self._redacted)})
            self._redacted = []

    def _stop(self, index: int) -> Iterator[Event]:
        start = self._started.pop(index, {})
        if index == self._thought:
            yield from self._close_thought()
            return
        pieces = "".join(self._pieces.pop(index, ()))
        match start:
            case {"toolUse": {"type": "server_tool_use"} as call}:
                own: Block = {"toolUse": {**call, "input": parse_arguments(pieces) or {}}}
                yield from self._prose.item("toolUse", line_of(own), own)
            case {"toolUse": _}:
                if pieces:  # Otherwise only the end of the reply shows whether the call has arguments.
                    yield from self._calls.end(index)
            case {"toolResult": dict(result)}:
                own = {"toolResult": {**result, "content": self._results.pop(index, [])}}
                yield from self._prose.item("toolResult", line_of(own), own)
            case {"image": {"format": str(format)}} if pieces:
                yield from self._prose.close()
                self._files += 1
                address = f"data:image/{format};base64,{pieces}"
                yield FileAdded(File(f"image/{format}", url=address, name=f"image-{self._files}.{format}"))
            case _:
                yield from self._cite()

    def _cite(self) -> Iterator[Event]:
        if self._cited:
            begun, length = self._begun, self._prose.length
            yield TextCited([citation_of(one, begun, length) for one in self._cited])
        self._cited = []


def _extra(fields: Mapping[str, Any], known: frozenset[str]) -> Iterator[Event]:
    if extra := extra_fields(fields, known):
        yield ProviderData(NAME, extra)


def _joined(pieces: list[str]) -> str:
    """Join bytes that came in several chunks, each encoded as base64."""
    if len(pieces) == 1:
        return pieces[0]
    return base64.b64encode(b"".join(map(base64.b64decode, pieces))).decode()


def _usage(tokens: ConverseTokens) -> Usage:
    read, written = count(tokens.get("cacheReadInputTokens")), count(tokens.get("cacheWriteInputTokens"))
    return Usage.claimed(
        count(tokens.get("inputTokens")) + read + written,  # Amazon counts cached tokens separately.
        tokens.get("outputTokens") or 0,
        cached=read,
        cache_written=written,
    )
