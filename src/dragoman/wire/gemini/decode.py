"""Decode the chunks of `streamGenerateContent`. No network, no clock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from pydantic import JsonValue

from dragoman.messages.endings import BROKEN_OFF, reason_of
from dragoman.messages.events import Event, FileAdded, FilePartial, MessageEnd, ProviderData, TextCited
from dragoman.messages.message import Citation, File
from dragoman.messages.usage import Usage, count, counted
from dragoman.wire.calls import Calls
from dragoman.wire.gemini.shapes import (
    BLOCKED,
    CANDIDATE_FIELDS,
    CHANCES,
    CHUNK_FIELDS,
    FINISH,
    MALFORMED_CALL,
    NAME,
    PART_FIELDS,
    SOURCES,
    USAGE_FIELDS,
    GeminiCall,
    GeminiCandidate,
    GeminiChunk,
    GeminiPart,
    GeminiTokens,
    SafetyRating,
)
from dragoman.wire.http_client.framing import DONE
from dragoman.wire.prose import ExtraFields, Samples, extra_fields, is_bare, join_halves, read_json
from dragoman.wire.provider_errors import provider_error, reports_error
from dragoman.wire.transport_errors import unfinished
from dragoman.wire.wire import Prose

# Turn results of Google's own tools and their sources into items, lines for people, and citations.


# ── parts ─────────────────────────────────────────────────────────────────────────────────────────

OF_TOOLS = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")
MADE = ("inlineData", "fileData")  # images and audio that the model made
REPLAYED = (*OF_TOOLS, *MADE)


def kind_of(part: Mapping[str, Any]) -> str | None:
    """Return Google's name for a part that is neither text nor a call. None if the part is empty."""
    return next((name for name, value in part.items() if name in REPLAYED and value), None)


def made_file(part: Mapping[str, Any]) -> File | None:
    """Return an image or audio that the model made, as a file. None if the part is something else."""
    signature = part.get("thoughtSignature")
    match part:
        case {"inlineData": {"mimeType": str(type), "data": str(data)}}:
            ending = type.partition("/")[2].partition(";")[0]
            name = f"{type.partition('/')[0]}.{ending}"
            return File(type, url=f"data:{type};base64,{data}", name=name, signature=signature)
        case {"fileData": {"mimeType": str(type), "fileUri": str(address)}}:
            return File(type, url=address, signature=signature)
        case _:
            return None


def line_of(kind: str, held: JsonValue) -> str:
    """Return a line for people about such a part."""
    match held:
        case {"code": str(text)} | {"output": str(text)} | {"outcome": str(text)}:
            return text
        case {"toolType": str(tool), "args": args}:
            return f"{tool} {args}" if args else tool
        case {"toolType": str(tool)}:
            return tool
        case {"mimeType": str(type), "data": str(data)}:
            return f"{type}, {len(data) * 3 // 4:,} bytes"
        case {"mimeType": str(type), "fileUri": str(address)}:
            return f"{type} at {address}"
        case _:
            return kind


# ── sources ───────────────────────────────────────────────────────────────────────────────────────


def grounding_line(metadata: Mapping[str, Any]) -> str:
    """Return the search queries."""
    queries = metadata.get("webSearchQueries") or metadata.get("retrievalQueries") or ()
    return ", ".join(map(str, queries))


def pages_line(metadata: Mapping[str, Any]) -> str:
    """Return the pages that were read."""
    pages = metadata.get("urlMetadata") or ()
    return ", ".join(str(page.get("retrievedUrl") or "") for page in pages if isinstance(page, dict))


def grounding_citations(metadata: Mapping[str, Any], text: str | None) -> Iterator[Citation]:
    """Yield the sources of a grounded answer: for each passage, or for the whole if no passage is named.

    `text` is the answer. None if it has several texts and the passages cannot be assigned.
    """
    sources = [_source(chunk) for chunk in metadata.get("groundingChunks") or ()]
    used: set[int] = set()
    data = None if text is None else text.encode("utf-8", "surrogatepass")
    for support in metadata.get("groundingSupports") or ():
        start, end = _passage(data, support.get("segment") or {})
        for index in support.get("groundingChunkIndices") or ():
            if isinstance(index, int) and 0 <= index < len(sources):
                used.add(index)
                yield _citation(sources[index], start, end)
    for index, source in enumerate(sources):
        if index not in used:
            yield _citation(source, None, None)


def quoted_citations(metadata: Mapping[str, Any], text: str | None) -> Iterator[Citation]:
    """Yield the sources of long quotations from training data."""
    data = None if text is None else text.encode("utf-8", "surrogatepass")
    for given in metadata.get("citations") or metadata.get("citationSources") or ():
        start, end = _passage(data, given)
        yield Citation(_text(given.get("uri")), _text(given.get("title")), None, start, end)


def _source(chunk: JsonValue) -> dict[str, Any]:
    """Return the page, place or document of a chunk."""
    found = (
        next((one for one in chunk.values() if isinstance(one, dict)), {}) if isinstance(chunk, dict) else {}
    )
    return {**found}


def _citation(source: dict[str, Any], start: int | None, end: int | None) -> Citation:
    title = source.get("title") or source.get("domain")
    return Citation(_text(source.get("uri")), _text(title), _text(source.get("text")), start, end)


def _passage(data: bytes | None, segment: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the start and end of a passage in characters: Google counts bytes. None if the text differs."""
    start, end, words = segment.get("startIndex") or 0, segment.get("endIndex"), segment.get("text")
    if data is None or not isinstance(start, int) or not isinstance(end, int):
        return None, None
    try:
        passage = data[start:end].decode()
        before = len(data[:start].decode())
    except ValueError:
        return None, None
    if end > len(data) or (words is not None and words != passage):
        return None, None
    return before, before + len(passage)


def _text(value: JsonValue) -> str | None:
    return join_halves(value) if isinstance(value, str) and value else None


# ── chances ───────────────────────────────────────────────────────────────────────────────────────


def chances(result: Mapping[str, Any]) -> list[JsonValue]:
    """Return how likely each token was, in the form that messages store."""
    tops = [top.get("candidates") or () for top in result.get("topCandidates") or ()]
    return [
        {**_chance(one), "top_logprobs": [_chance(other) for other in (tops[n] if n < len(tops) else ())]}
        for n, one in enumerate(result.get("chosenCandidates") or ())
    ]


def _chance(candidate: Mapping[str, Any]) -> dict[str, JsonValue]:
    return {"token": _text(candidate.get("token")) or "", "logprob": candidate.get("logProbability")}


class GeminiDecoder:
    """One reply. `finish_word` is the provider's word for how the reply ended."""

    def __init__(self, reply: str) -> None:
        self.finish_word: str | None = None
        self._prose = Prose(NAME)
        # a signature that came with text: it follows when the text has ended
        self._signature: str | None = None
        self._blocked = False  # The prompt was blocked, so the reply is empty.
        self._details: list[str] = []  # Google's reports on how it ended
        self._calls = Calls(reply)
        self._files = 0  # files that the model has made
        self._samples = Samples()
        self._texts: list[str] = []  # the answer, for the sources that come after it
        self._parted = False  # interrupted by something other than text
        self._sources: dict[str, dict[str, Any]] = {}
        self._usage: GeminiTokens = {}
        self._chunk_fields = ExtraFields(CHUNK_FIELDS)
        self._candidate_fields = ExtraFields(CANDIDATE_FIELDS)

    @property
    def usage(self) -> Usage:
        """The usage known so far."""
        return _usage(self._usage)

    def feed(self, frame: bytes) -> Iterable[Event]:
        return () if frame.startswith(DONE) else self._chunk(read_json(frame))

    def _chunk(self, chunk: GeminiChunk) -> Iterable[Event]:
        if error := chunk.get("error"):
            raise provider_error(error)
        if "candidates" not in chunk and reports_error(chunk):  # from a gateway between us and Google
            raise provider_error(cast("JsonValue", chunk))
        if usage := chunk.get("usageMetadata"):  # totals so far, also in chunks with nothing else
            self._usage |= counted(usage, self._usage)
        return self._plain_text(chunk) or self._read(chunk)

    def whole(self, body: JsonValue) -> Iterable[Event] | None:
        """Return the events of a reply that was not streamed, or of all chunks of one in a list."""
        chunks = body if isinstance(body, list) else [body]
        if not any(isinstance(one, dict) and one.keys() & {"candidates", "promptFeedback"} for one in chunks):
            return None
        return [event for one in chunks for event in self._chunk(cast("GeminiChunk", one))]

    def _plain_text(self, chunk: GeminiChunk) -> Iterable[Event]:
        """Return the events of a chunk with only text, as most are: a fast path."""
        candidates = chunk.get("candidates")
        if not candidates or len(chunk) != self._chunk_fields.size:
            return ()
        candidate = candidates[0]
        if len(candidate) != self._candidate_fields.size or candidate.get("finishReason"):
            return ()
        if not candidate.keys().isdisjoint(SOURCES):
            return ()
        parts = (candidate.get("content") or {}).get("parts") or ()
        if len(parts) != 1 or [*parts[0]] != ["text"]:
            return ()
        return self._text(parts[0]["text"] or "")

    def _read(self, chunk: GeminiChunk) -> Iterator[Event]:
        if (feedback := chunk.get("promptFeedback")) and (reason := feedback.get("blockReason")):
            self.finish_word, self._blocked = reason, True
            self._explain(feedback.get("blockReasonMessage"), feedback.get("safetyRatings"))
        if candidates := chunk.get("candidates"):
            yield from self._candidate(candidates[0])
        if len(chunk) != self._chunk_fields.size and (extra := self._chunk_fields.new(chunk)):
            yield ProviderData(NAME, extra)

    def break_off(self) -> Iterator[Event]:
        """Yield the audio received so far."""
        yield from self._close()
        if sound := self._samples.take():
            yield FileAdded(sound)

    def end(self) -> Iterator[Event]:
        yield from self.break_off()
        yield from self._cite()
        word = self.finish_word or ""
        finish = BLOCKED.get(word, "filter") if self._blocked else FINISH.get(word, "unknown")
        yield from self._calls.close(cut=self.finish_word is None or finish in BROKEN_OFF)
        if self.finish_word is None:
            raise unfinished()
        if len(self._calls) and finish in ("stop", "unknown", "malformed"):
            finish = "tool_calls"
        if extra := extra_fields(self._usage, USAGE_FIELDS):
            yield ProviderData(NAME, {"usage": extra})
        yield MessageEnd(finish, self.usage, reason=reason_of(finish, word, *self._details))

    # ── prose ─────────────────────────────────────────────────────────────────────────────────────

    def _candidate(self, candidate: GeminiCandidate) -> Iterator[Event]:
        for part in (candidate.get("content") or {}).get("parts") or ():
            yield from self._part(part)
        for name in SOURCES:
            if isinstance(found := candidate.get(name), dict) and found:
                self._sources[name] = found  # The last one has all that were found.
        if len(candidate) != self._candidate_fields.size:
            extra = self._candidate_fields.new(candidate)
            if isinstance(result := extra.pop(CHANCES, None), dict):
                yield ProviderData(NAME, {"logprobs": chances(result)})
            if others := {name: value for name, value in extra.items() if name not in SOURCES}:
                yield ProviderData(NAME, others)
        if word := candidate.get("finishReason"):
            self.finish_word = word
            message = candidate.get("finishMessage")
            self._explain(message, candidate.get("safetyRatings"))
            if word == MALFORMED_CALL:
                yield from self._malformed(message or "")

    def _explain(self, message: str | None, ratings: list[SafetyRating] | None) -> None:
        blocked = (rating.get("category") for rating in ratings or () if rating.get("blocked"))
        self._details = [one for one in (message, ", ".join(filter(None, blocked))) if one]

    def _part(self, part: GeminiPart) -> Iterator[Event]:
        text, signature = part.get("text") or "", part.get("thoughtSignature")
        if call := part.get("functionCall"):
            yield from self._call(call, signature)
        elif (file := made_file(part)) is not None:
            yield from self._made(file, thought=bool(part.get("thought")))
        elif (kind := kind_of(part)) is not None:
            whole: dict[str, Any] = {**part}
            yield from self._close()
            yield from self._prose.item(kind, line_of(kind, whole[kind]), whole)
        elif part.get("thought"):
            if self._signature:
                yield from self._close()
            yield from self._prose.reasoning(text)
            if signature:
                yield from self._prose.close(signature=signature)
        else:  # text, or a signature alone
            if signature and self._signature and text:
                yield from self._close()  # Each signature stays with the text it came with.
            if text:
                yield from self._text(text)
            elif extra := extra_fields(part, PART_FIELDS):
                yield ProviderData(NAME, extra)
            self._signature = signature or self._signature

    def _made(self, file: File, *, thought: bool) -> Iterator[Event]:
        """Add an image, or a chunk of audio. Reasoning can contain drafts of an image, too."""
        if is_bare(file.media_type):
            self._samples.add((file.url or "").partition(",")[2], file.media_type)
        elif thought:
            yield FilePartial(file, self._files)
        else:
            yield from self._close()
            self._files += 1
            yield FileAdded(file)

    def _text(self, piece: str) -> Iterable[Event]:
        if piece:
            self._parted = self._parted or (bool(self._texts) and not self._prose.length)
            self._texts.append(piece)
        return self._prose.text(piece)

    def _cite(self) -> Iterator[Event]:
        """Yield the sources of the answer and the search queries, which come with its last chunks."""
        text = None if self._parted else join_halves("".join(self._texts))
        grounding, pages = (
            self._sources.get("groundingMetadata", {}),
            self._sources.get("urlContextMetadata", {}),
        )
        found = [*grounding_citations(grounding, text)]
        found += quoted_citations(self._sources.get("citationMetadata", {}), text)
        if found:
            yield TextCited(found)
        if grounding:
            yield from self._prose.item("groundingMetadata", grounding_line(grounding), grounding)
        if pages:
            yield from self._prose.item("urlContextMetadata", pages_line(pages), pages)

    def _close(self) -> Iterator[Event]:
        """End what is open, then add the signature that came with it, as separate empty reasoning."""
        yield from self._prose.close()
        if self._signature:
            yield from self._prose.close(signature=self._signature)
        self._signature = None

    # ── calls ─────────────────────────────────────────────────────────────────────────────────────

    def _call(self, call: GeminiCall, signature: str | None) -> Iterator[Event]:
        yield from self._close()
        name, arguments = call.get("name") or "", call.get("args") or {}
        yield from self._calls.whole(name, arguments, id=call.get("id"), signature=signature)

    def _malformed(self, message: str) -> Iterator[Event]:
        """Add a call that Google could not parse, as its text, if it names the tool.

        The call cannot run. The model reads why, and can try again.
        """
        named = re.search(r"default_api[.:]\s*([\w-]+)", message) or re.search(r":\s*([\w-]+)\(", message)
        if named:
            yield from self._close()
            yield from self._calls.whole(named[1], message)


# ── how it ended ──────────────────────────────────────────────────────────────────────────────────


def _usage(tokens: GeminiTokens) -> Usage:
    thought = count(tokens.get("thoughtsTokenCount"))
    return Usage.claimed(
        tokens.get("promptTokenCount") or 0,
        count(tokens.get("candidatesTokenCount")) + thought,  # Google counts reasoning separately.
        cached=tokens.get("cachedContentTokenCount") or 0,
        reasoning=thought,
    )
