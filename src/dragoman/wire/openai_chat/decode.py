"""Decode the chunks of a chat completion. No network, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from pydantic import JsonValue

from dragoman.errors import ProviderError
from dragoman.messages.endings import BROKEN_OFF, reason_of
from dragoman.messages.events import Event, FileAdded, MessageEnd, ProviderData, TextCited
from dragoman.messages.message import Citation
from dragoman.messages.usage import Usage, count, counted, counts
from dragoman.wire.calls import Calls
from dragoman.wire.files.file_parts import file_at
from dragoman.wire.http_client.framing import DONE
from dragoman.wire.openai_chat.shapes import (
    CHOICE_FIELDS,
    CHUNK_FIELDS,
    CONSTANT_FIELDS,
    DELTA_FIELDS,
    FINISH,
    NAME,
    THINKING,
    USAGE_FIELDS,
    ChatAnnotation,
    ChatBlock,
    ChatCallPiece,
    ChatChoice,
    ChatChunk,
    ChatFunction,
    ChatImage,
    ChatTokens,
    FilterResult,
    ReasoningDetail,
)
from dragoman.wire.prose import ExtraFields, Samples, extra_fields, join_all, read_json
from dragoman.wire.provider_errors import provider_error, reports_error
from dragoman.wire.wire import Prose

# Merge OpenRouter's `reasoning_details` from chunks, in the form in which they must be sent back.


GROWING = ("text", "summary")
WORTH_KEEPING = (*GROWING, "data", "signature")


def merged_details(pieces: Iterable[ReasoningDetail]) -> list[JsonValue]:
    """Return the details, each once. Those with one index belong together. Encrypted data comes whole."""
    details: list[ReasoningDetail] = []
    for piece in pieces:
        detail = None if piece.get("data") else _begun(details, piece)
        if detail is None:
            details.append(dict(piece))
        else:
            _add(detail, piece)
    return [detail for detail in details if any(detail.get(key) for key in WORTH_KEEPING)]


def readable_details(details: Iterable[ReasoningDetail]) -> str:
    """Return the readable text in them."""
    return "".join(text for detail in details for key in GROWING if isinstance(text := detail.get(key), str))


def _begun(details: list[ReasoningDetail], piece: ReasoningDetail) -> ReasoningDetail | None:
    index, type = piece.get("index"), piece.get("type")
    for detail in reversed(details):
        if detail.get("index") == index and detail.get("type") == (type or detail.get("type")):
            return None if detail.get("data") else detail
        if index is None:  # only the order tells where it belongs
            return None
    return None


def _add(detail: ReasoningDetail, piece: ReasoningDetail) -> None:
    for key, value in piece.items():
        held = detail.get(key)
        if key in GROWING and isinstance(held, str) and isinstance(value, str):
            detail[key] = held + value
        elif value or held is None:
            detail[key] = value


# Collect the sources of search models: from annotations of the answer, or from separate lists.


class CitedSources:
    """The sources of one reply. Lists are repeated in every chunk, and grow: the last one counts."""

    def __init__(self) -> None:
        self._cited: list[Citation] = []
        self._listed: dict[str, Citation] = {}

    def add(self, annotations: Iterable[ChatAnnotation]) -> None:
        for annotation in annotations:
            source = annotation.get("url_citation") or annotation
            if source.get("url"):
                citation = Citation(
                    source.get("url"),
                    source.get("title"),
                    source.get("content"),
                    source.get("start_index"),
                    source.get("end_index"),
                    join_all(cast("JsonValue", annotation)),
                )
                if citation not in self._cited:
                    self._cited.append(citation)

    def note(self, chunk: ChatChunk) -> None:
        for url in chunk.get("citations") or ():
            if isinstance(url, str):
                self._listed.setdefault(url, Citation(url))
        for found in chunk.get("search_results") or ():
            if address := found.get("url"):
                self._listed[address] = Citation(address, found.get("title"))

    def all(self) -> list[Citation]:
        """Return the sources in annotations, or else those in lists: if both come, they are the same."""
        return self._cited or [*self._listed.values()]


class ChatDecoder:
    """One reply. `finish_word` is the provider's word for how the reply ended."""

    def __init__(self, reply: str) -> None:
        self.finish_word: str | None = None
        self._prose = Prose(NAME)
        self._in_text = False
        self._blank = ""  # white space that came while no text was open
        self._details: list[ReasoningDetail] = []
        self._calls = Calls(reply)
        self._usage: ChatTokens = {}
        self._chunk_fields = ExtraFields(CHUNK_FIELDS, CONSTANT_FIELDS)
        self._choice_fields = ExtraFields(CHOICE_FIELDS)
        self._delta_fields = ExtraFields(DELTA_FIELDS, repeated=True)
        self._refuses = False
        self._filtered = ""  # the reason, if the provider names it
        self._others: list[ChatChoice] | None = []  # of other replies, while nothing of the first has come
        self._sources = CitedSources()
        self._made: list[str | None] = []  # the URLs of images
        self._samples = Samples()
        self._over = False  # `[DONE]` has come, or the counts that come after everything else

    @property
    def usage(self) -> Usage:
        """The usage known so far."""
        return _usage(self._usage)

    def feed(self, frame: bytes) -> Iterable[Event]:
        if frame.startswith(DONE):
            self._over = True
            return ()
        return self._chunk(read_json(frame))

    def whole(self, body: JsonValue) -> Iterable[Event] | None:
        """Return the events of a completion that was not streamed: its message is one large chunk."""
        choices = body.get("choices") if isinstance(body, dict) else None
        if not isinstance(choices, list):
            return None
        if not any(isinstance(one, dict) and _is_reply(one) for one in choices):
            return None
        events = [*self._read(cast("ChatChunk", body))]
        self._over = True
        return events

    def _chunk(self, chunk: ChatChunk) -> Iterable[Event]:
        return self._plain_text(chunk) or self._read(chunk)

    def _plain_text(self, chunk: ChatChunk) -> Iterable[Event]:
        """Return the events of a chunk with only text, as most are: a fast path."""
        choices = chunk.get("choices")
        if not choices or not self._in_text or len(chunk) != self._chunk_fields.size:
            return ()
        choice = choices[0]
        delta = choice.get("delta")
        if choice.get("index") or not delta or len(delta) != 1 or len(choice) != self._choice_fields.size:
            return ()
        content = delta.get("content")
        if type(content) is not str or choice.get("finish_reason") or choice.get("logprobs"):
            return ()
        if chunk.get("usage") or chunk.get("error"):
            return ()
        self._over = False
        return self._prose.text(content)

    def _read(self, chunk: ChatChunk) -> Iterator[Event]:
        if error := chunk.get("error"):
            raise _error_of(error)
        if usage := chunk.get("usage"):  # may come early, late, or repeatedly, with or without choices
            self._usage, self._over = counted(usage, self._usage), True
        if choices := chunk.get("choices"):
            self._over = False  # Some servers count in every chunk, which does not mark the end.
            for choice in choices:
                yield from self._one_of(choice)
        elif reports_error(chunk):  # vLLM and others: the chunk itself is the error
            raise _error_of(cast("JsonValue", chunk))
        self._sources.note(chunk)
        if len(chunk) != self._chunk_fields.size and (extra := self._chunk_fields.new(chunk)):
            yield ProviderData(NAME, extra)

    def _one_of(self, choice: ChatChoice) -> Iterator[Event]:
        """Use the first of several replies. If none has its number, the one that came first."""
        if not choice.get("index"):
            self._others = None
            yield from self._choice(choice)
        elif self._others is not None:
            self._others.append(choice)

    def break_off(self) -> Iterator[Event]:
        """Yield the audio received so far."""
        yield from self._close()
        if sound := self._samples.take():
            yield FileAdded(sound)

    def end(self) -> Iterator[Event]:
        for choice in self._others or ():
            if choice.get("index") == (self._others or [{}])[0].get("index"):
                yield from self._choice(choice)
        yield from self.break_off()
        if sources := self._sources.all():
            yield TextCited(sources)
        word = self.finish_word or ""
        finish = FINISH.get(word.lower(), "unknown")
        if self._refuses and finish in ("stop", "tool_calls", "unknown"):
            word, finish = "refusal", "refusal"
        torn = self.finish_word is None and not self._over  # or complete: not all imitators mark the end
        yield from self._calls.close(cut=torn or finish in BROKEN_OFF)
        if len(self._calls) and finish in ("stop", "unknown") and not torn:
            finish = "tool_calls"
        if extra := extra_fields(self._usage, USAGE_FIELDS):
            yield ProviderData(NAME, {"usage": extra})
        reason = reason_of(finish, word, self._filtered if finish == "filter" else None)
        yield MessageEnd(finish, self.usage, unfinished=torn, reason=reason)

    # ── prose ─────────────────────────────────────────────────────────────────────────────────────

    def _choice(self, choice: ChatChoice) -> Iterator[Event]:
        if error := choice.get("error"):
            raise _error_of(error)
        if delta := choice.get("delta") or choice.get("message"):
            if thought := delta.get("reasoning_content"):
                yield from self._reasoning(thought, "reasoning_content")
            elif thought := delta.get("reasoning"):
                yield from self._reasoning(thought, "reasoning")
            if pieces := delta.get("reasoning_details"):
                self._details += pieces
                if not thought:  # otherwise it has the same text
                    yield from self._reasoning(readable_details(pieces))
            if content := delta.get("content"):
                yield from self._text(content) if isinstance(content, str) else self._blocks(content)
            if refusal := delta.get("refusal"):
                self._refuses = True
                yield from self._text(refusal)
            if calls := delta.get("tool_calls"):
                yield from self._call_pieces(calls)
            if legacy := delta.get("function_call"):
                yield from self._legacy_call(legacy)
            if images := delta.get("images"):
                yield from self._images(images)
            if sound := delta.get("audio"):
                yield from self._text(sound.get("transcript") or "")
                self._samples.add(sound.get("data") or "")
            if annotations := delta.get("annotations"):
                self._sources.add(annotations)
            ordinary = len(delta) == self._delta_fields.size and (thought or content or refusal or calls)
            if not ordinary and (extra := self._delta_fields.new(delta)):
                yield ProviderData(NAME, extra)
        if chances := choice.get("logprobs"):
            yield ProviderData(NAME, {"logprobs": join_all(chances)})
        if len(choice) != self._choice_fields.size and (extra := self._choice_fields.new(choice)):
            yield ProviderData(NAME, extra)
        if word := choice.get("finish_reason"):
            self.finish_word = word
        if results := choice.get("content_filter_results"):
            self._filtered = _filtered(results) or self._filtered
        self._usage = counted(choice.get("usage"), self._usage)

    def _images(self, images: list[ChatImage]) -> Iterator[Event]:
        for image in images:
            file = file_at((image.get("image_url") or {}).get("url") or "", len(self._made) + 1)
            if file is not None and file.url not in self._made:  # some repeat them in every chunk
                self._made.append(file.url)
                yield from self._close()
                yield FileAdded(file)

    def _text(self, text: str) -> Iterable[Event]:
        return self._prose.text(text) if self._in_text else self._begin_text(self._blank + text)

    def _begin_text(self, text: str) -> Iterator[Event]:
        if not text.strip():  # Some models put blank lines before a call, which are not an answer.
            self._blank = text
            return
        if self._details:
            yield from self._close()
        self._blank, self._in_text = "", True
        yield from self._prose.text(text)

    def _reasoning(self, thought: str, field_name: str | None = None) -> Iterator[Event]:
        if thought:
            self._prose.field_name = field_name
            self._blank, self._in_text = "", False
            yield from self._prose.reasoning(thought)

    def _blocks(self, blocks: list[ChatBlock]) -> Iterator[Event]:
        for block in blocks:
            if text := block.get("text"):
                yield from self._text(text)
            thinking = block.get("thinking") or ()
            for thought in (thinking,) if isinstance(thinking, str) else thinking:
                text = thought if isinstance(thought, str) else thought.get("text")
                yield from self._reasoning(text or "", THINKING)

    def _close(self) -> Iterator[Event]:
        self._blank, self._in_text = "", False
        yield from self._prose.close(opaque=merged_details(self._details) or None)
        self._details = []

    # ── calls ─────────────────────────────────────────────────────────────────────────────────────

    def _call_pieces(self, pieces: list[ChatCallPiece]) -> Iterator[Event]:
        yield from self._close()
        named: set[int | None] = set()  # two names at one index of one chunk are two calls
        for piece in pieces:
            function = piece.get("function") or {}
            index, name = piece.get("index"), function.get("name")
            yield from self._calls.piece(
                index=index,
                id=piece.get("id"),
                name=name,
                arguments=function.get("arguments"),
                signature=_signature(piece),
                new=bool(name) and index in named,
            )
            if name:
                named.add(index)

    def _legacy_call(self, function: ChatFunction) -> Iterator[Event]:
        yield from self._close()
        yield from self._calls.piece(
            index="function_call", name=function.get("name"), arguments=function.get("arguments")
        )


def _signature(piece: ChatCallPiece) -> str | None:
    extra = piece.get("extra_content")
    return (extra.get("google") or {}).get("thought_signature") if extra else None


# ── how it ended ──────────────────────────────────────────────────────────────────────────────────


def _usage(tokens: ChatTokens) -> Usage:
    input, output = count(tokens.get("prompt_tokens")), count(tokens.get("completion_tokens"))
    of_input = counts(tokens.get("prompt_tokens_details"))
    of_output = counts(tokens.get("completion_tokens_details"))
    thought = count(of_output.get("reasoning_tokens"))
    if tokens.get("total_tokens") == input + output + thought:
        output += thought  # xAI counts reasoning separately, others include it in the answer
    return Usage.claimed(
        input,
        output,
        cached=of_input.get("cached_tokens") or tokens.get("prompt_cache_hit_tokens") or 0,
        cache_written=of_input.get("cache_write_tokens") or 0,
        reasoning=thought,
        cost=tokens.get("cost"),
    )


def _filtered(results: dict[str, FilterResult | None]) -> str:
    """Return the categories that Azure filtered."""
    return ", ".join(
        name.replace("_", " ") for name, result in results.items() if result and result.get("filtered")
    )


def _error_of(error: JsonValue) -> ProviderError:
    """Return an error inside a stream that began well. The error itself contains the status, if any."""
    report = error if isinstance(error, dict) else {}
    codes = (report.get("status_code"), report.get("status"), report.get("code"))
    status = next((code for code in codes if isinstance(code, int) and 400 <= code < 600), None)
    return provider_error(error, status=status)


def _is_reply(choice: Mapping[str, Any]) -> bool:
    """Return whether a choice has an answer, or was filtered: Azure leaves the message out then."""
    return bool(choice.get("message")) or choice.get("finish_reason") == "content_filter"
