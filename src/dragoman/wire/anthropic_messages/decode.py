"""Decode the event stream of the Messages API. No network, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from pydantic import JsonValue

from dragoman.messages.endings import BROKEN_OFF, reason_of
from dragoman.messages.events import Event, MessageEnd, ProviderData, TextCited
from dragoman.messages.message import Citation
from dragoman.messages.usage import Usage, count, counts
from dragoman.wire.anthropic_messages.shapes import (
    END_FIELDS,
    FINISH,
    NAME,
    OUR_BLOCKS,
    SERVER_CALLS,
    START_FIELDS,
    USAGE_FIELDS,
    Block,
    MessagesDelta,
    MessagesEvent,
    MessagesTokens,
    StopDetails,
)
from dragoman.wire.calls import Calls, parse_arguments
from dragoman.wire.http_client.framing import DONE
from dragoman.wire.prose import extra_fields, join_all, read_json
from dragoman.wire.provider_errors import provider_error, reports_error
from dragoman.wire.transport_errors import unfinished
from dragoman.wire.wire import Prose

# Turn results of Anthropic's own tools and their sources into items, lines for people, and citations.


ASKED_FOR = ("query", "url", "command", "code", "path", "pattern")  # the most informative fields of a call
SHOWN = 5  # results of a search


def line_of(block: Block) -> str:
    """Return a line for people."""
    if block.get("type") in SERVER_CALLS:
        asked = block.get("input")
        given = asked if isinstance(asked, dict) else {}
        value = next((given[name] for name in ASKED_FOR if name in given), "")
        return f"{block.get('name')}: {value}" if value else str(block.get("name"))
    content = block.get("content")
    if isinstance(content, list):
        titles = [title for one in content if (title := _title(one))]
        more = f", and {len(titles) - SHOWN} more" if len(titles) > SHOWN else ""
        return ", ".join(titles[:SHOWN]) + more
    return _title(content)


def _title(result: JsonValue) -> str:
    match result:
        case str():
            return result
        case {"error_code": str(code)}:
            return code
        case {"title": str(title)} if title:
            return title
        case {"url": str(found)} | {"text": str(found)} | {"stdout": str(found)}:
            return found
        case _:
            return ""


def citation_of(given: JsonValue, start: int, end: int) -> Citation:
    """Return a source of the text between these characters, with Anthropic's own form of it."""
    fields = given if isinstance(given, dict) else {}
    return Citation(
        _text(fields.get("url") or fields.get("source")),
        _text(fields.get("title") or fields.get("document_title")),
        _text(fields.get("cited_text")),
        start,
        end,
        join_all(given),
    )


def _text(value: JsonValue) -> str | None:
    whole = join_all(value)
    return whole if isinstance(whole, str) else None


# ── decoding ──────────────────────────────────────────────────────────────────────────────────────

LOCATIONS = frozenset(
    {
        *("char_location", "page_location", "content_block_location", "search_result_location"),
        "web_search_result_location",
    }
)
OF_SEARCHES = "web_search_result_location"  # invalid without the search before it
NOT_SENT = "file_id"  # a field that replies have and requests must not have


def cited_blocks(text: str, citations: tuple[Citation, ...], *, searches: bool) -> list[Block]:
    """Return a text as blocks. Each chunk with sources is a separate block, with its sources unchanged."""
    sources: dict[tuple[int, int], list[JsonValue]] = {}
    for one in citations:
        given = one.opaque
        if not isinstance(given, dict) or given.get("type") not in LOCATIONS:
            continue
        if one.start is None or one.end is None or (given["type"] == OF_SEARCHES and not searches):
            continue
        theirs: JsonValue = {key: value for key, value in given.items() if key != NOT_SENT}
        sources.setdefault((one.start, one.end), []).append(theirs)
    blocks: list[Block] = []
    at = 0
    for (start, end), cited in sorted(sources.items(), key=lambda item: item[0]):
        if not (at <= start < end <= len(text)) or not text[start:end].strip():
            continue
        blocks += _plain(text[at:start])
        blocks.append({"type": "text", "text": text[start:end], "citations": cited})
        at = end
    return [*blocks, *_plain(text[at:])]


def _plain(text: str) -> list[Block]:
    return [{"type": "text", "text": text}] if text.strip() else []


class MessagesDecoder:
    """One reply. `finish_word` is the provider's word for how the reply ended.

    The content comes in numbered blocks, each with a start, deltas and a stop.
    """

    def __init__(self, reply: str) -> None:
        self.finish_word: str | None = None
        self._prose = Prose(NAME)
        self._calls = Calls(reply)
        self._open: dict[int, Block] = {}
        self._pieces: dict[int, list[str]] = {}  # of the signature or the input of an open block
        self._cited: list[JsonValue] = []  # the sources of the text block that is open
        self._cited_from = 0  # where that block began
        self._usage: MessagesTokens = {}
        self._details: StopDetails = {}
        self.over = False

    @property
    def usage(self) -> Usage:
        """The usage known so far."""
        return _usage(self._usage)

    def feed(self, frame: bytes) -> Iterable[Event]:
        if frame.startswith(DONE):
            return ()
        event: MessagesEvent = read_json(frame)
        if event.get("type") == "content_block_delta":
            return self._delta(event.get("index", 0), event.get("delta") or {})
        return self._event(event)

    def whole(self, body: JsonValue) -> Iterable[Event] | None:
        """Return the events of a message that was not streamed: each block begins and ends immediately."""
        blocks = body.get("content") if isinstance(body, dict) else None
        if not isinstance(body, dict) or not isinstance(blocks, list):
            return None
        message = cast("dict[str, Any]", body)
        self._count(message.get("usage"))
        events: list[Event] = [*_extra(message, START_FIELDS)]
        for index, block in enumerate(blocks):
            events += [*self._start(index, cast("Block", block)), *self._stop(index)]
        self.finish_word, self.over = message.get("stop_reason"), True
        self._details = message.get("stop_details") or self._details
        return events

    def _event(self, event: MessagesEvent) -> Iterator[Event]:
        match event.get("type"):
            case "content_block_start":
                yield from self._start(event.get("index", 0), event.get("content_block") or {})
            case "content_block_stop":
                yield from self._stop(event.get("index", 0))
            case "message_start":
                message = event.get("message") or {}
                self._count(message.get("usage"))
                yield from _extra(message, START_FIELDS)
            case "message_delta":
                self._count(event.get("usage"))
                delta = event.get("delta") or {}
                self.finish_word = delta.get("stop_reason") or self.finish_word
                self._details = delta.get("stop_details") or self._details
                yield from _extra({**event, **delta}, END_FIELDS | {"delta"})
            case "message_stop":
                self.over = True
            case "error":
                raise provider_error(event.get("error") or cast("JsonValue", event))
            case "ping":
                pass
            case None if reports_error(event):  # from a gateway between us and the provider
                raise provider_error(cast("JsonValue", event))
            case _:  # future event types
                yield from _extra(event, frozenset())

    def end(self) -> Iterator[Event]:
        torn = self.finish_word is None and not self.over
        yield from self._prose.close()
        finish = FINISH.get(self.finish_word or "", "unknown")
        yield from self._calls.close(cut=torn or finish in BROKEN_OFF)
        if torn:
            raise unfinished()
        if len(self._calls) and finish in ("stop", "unknown"):
            finish = "tool_calls"
        if extra := extra_fields(self._usage, USAGE_FIELDS):
            yield ProviderData(NAME, {"usage": extra})
        why = (self._details.get("category"), self._details.get("explanation"))
        yield MessageEnd(finish, self.usage, reason=reason_of(finish, self.finish_word, *why))

    # ── blocks ────────────────────────────────────────────────────────────────────────────────────

    def _start(self, index: int, block: Block) -> Iterator[Event]:
        self._open[index] = block
        self._pieces[index] = []
        match block.get("type"):
            case "text":
                self._cited_from = self._prose.length
                named = block.get("citations")
                self._cited = [*named] if isinstance(named, list) else []
                yield from self._prose.text(str(block.get("text") or ""))
                yield from _extra(block, frozenset({"type", "text", "citations"}))
            case "thinking":
                yield from self._prose.close()  # Each block of reasoning has its own signature.
                yield from self._prose.reasoning(str(block.get("thinking") or ""))
                self._pieces[index].append(str(block.get("signature") or ""))
            case "tool_use":
                yield from self._prose.close()
                name, id = str(block.get("name") or ""), str(block.get("id") or "")
                yield from self._calls.start(index, name, id=id or None)
            case _:
                pass  # complete when the block stops

    def _delta(self, index: int, delta: MessagesDelta) -> Iterable[Event]:
        match delta.get("type"):
            case "text_delta":
                return self._prose.text(delta.get("text") or "")
            case "thinking_delta":
                return self._prose.reasoning(delta.get("thinking") or "")
            case _:
                return self._other_delta(index, delta)

    def _other_delta(self, index: int, delta: MessagesDelta) -> Iterator[Event]:
        match delta.get("type"):
            case "input_json_delta":
                piece = delta.get("partial_json") or ""
                self._pieces.setdefault(index, []).append(piece)
                if self._open.get(index, {}).get("type") == "tool_use":
                    yield from self._calls.piece(index=index, arguments=piece)
            case "signature_delta":
                self._pieces.setdefault(index, []).append(delta.get("signature") or "")
            case "compaction_delta":
                self._open.setdefault(index, {})["content"] = delta.get("content")
            case "citations_delta":
                self._cited += [delta["citation"]] if delta.get("citation") else []
            case _:
                yield from _extra(delta, frozenset({"type"}))

    def _stop(self, index: int) -> Iterator[Event]:
        block = self._open.pop(index, {})
        pieces = "".join(self._pieces.pop(index, ()))
        match block.get("type"):
            case "thinking":
                yield from self._prose.close(signature=pieces or None)
            case "redacted_thinking":
                yield from self._prose.close()
                yield from self._prose.close(opaque=block)
            case "tool_use":
                whole = block.get("input")
                # Otherwise only the end of the reply shows whether the call has arguments.
                if pieces or whole:
                    yield from self._calls.end(index, whole if isinstance(whole, dict) and whole else None)
            case "text":
                if self._cited:
                    start, end = self._cited_from, self._prose.length
                    yield TextCited([citation_of(one, start, end) for one in self._cited])
                self._cited = []
            case str(type) if type not in OUR_BLOCKS:
                whole = _whole(block, pieces)
                yield from self._prose.item(type, line_of(whole), whole)
            case _:
                pass

    # ── how it ended ──────────────────────────────────────────────────────────────────────────────

    def _count(self, usage: MessagesTokens | None) -> None:
        """Update the counts. They are totals so far, and come at the start, at the end, or partly at each."""
        for name, total in counts(usage).items():
            if total is not None:
                self._usage[name] = total  # type: ignore[literal-required]  # the names are those of MessagesTokens


def _extra(fields: Mapping[str, Any], known: frozenset[str]) -> Iterator[Event]:
    if extra := extra_fields(fields, known):
        yield ProviderData(NAME, extra)


def _whole(block: Block, pieces: str) -> Block:
    """Return a block of the provider's own tools, complete enough to send back: its input came in chunks."""
    return {**block, "input": parse_arguments(pieces) or {}} if pieces else block


def _usage(tokens: MessagesTokens) -> Usage:
    read = count(tokens.get("cache_read_input_tokens"))
    written = count(tokens.get("cache_creation_input_tokens"))
    of_output = counts(tokens.get("output_tokens_details"))
    return Usage.claimed(
        count(tokens.get("input_tokens")) + read + written,  # Anthropic counts cached tokens separately.
        tokens.get("output_tokens") or 0,
        cached=read,
        cache_written=written,
        reasoning=of_output.get("thinking_tokens") or 0,
    )
