"""Decodes the chunks of `streamGenerateContent`. No network, no clock."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic_core import from_json

from dragoman.messages.events import Event, MessageEnd
from dragoman.messages.usage import Usage
from dragoman.wire.calls import Calls
from dragoman.wire.gemini.shapes import (
    FINISH,
    MALFORMED_CALL,
    NAME,
    GeminiCall,
    GeminiCandidate,
    GeminiChunk,
    GeminiPart,
    GeminiTokens,
)
from dragoman.wire.provider_errors import provider_error
from dragoman.wire.transport_errors import unfinished
from dragoman.wire.wire import Prose

BROKEN_OFF = ("length", "filter", "error")


class GeminiDecoder:
    """One reply. `finish_word` is the provider's own word for how it ended."""

    def __init__(self, reply: str) -> None:
        self.finish_word: str | None = None
        self._prose = Prose(NAME)
        self._signature: str | None = None  # that came with text: it follows when the text has ended
        self._blocked = False
        self._calls = Calls(reply)
        self._usage: GeminiTokens = {}

    def feed(self, frame: bytes) -> Iterator[Event]:
        chunk: GeminiChunk = from_json(frame)
        if error := chunk.get("error"):
            raise provider_error(error)
        if usage := chunk.get("usageMetadata"):  # totals so far, also in chunks with nothing else
            self._usage = {**self._usage, **usage}
        if reason := (chunk.get("promptFeedback") or {}).get("blockReason"):
            self.finish_word, self._blocked = reason, True
        if candidates := chunk.get("candidates"):
            yield from self._candidate(candidates[0])

    def end(self) -> Iterator[Event]:
        yield from self._close()
        finish = "filter" if self._blocked else FINISH.get(self.finish_word or "", "unknown")
        yield from self._calls.close(cut=self.finish_word is None or finish in BROKEN_OFF)
        if self.finish_word is None:
            raise unfinished()
        if len(self._calls) and (finish in ("stop", "unknown") or self.finish_word == MALFORMED_CALL):
            finish = "tool_calls"
        yield MessageEnd(finish, _usage(self._usage))

    # ── prose ─────────────────────────────────────────────────────────────────────────────────────

    def _candidate(self, candidate: GeminiCandidate) -> Iterator[Event]:
        for part in (candidate.get("content") or {}).get("parts") or ():
            yield from self._part(part)
        if word := candidate.get("finishReason"):
            self.finish_word = word
            if word == MALFORMED_CALL:
                yield from self._malformed(candidate.get("finishMessage") or "")

    def _part(self, part: GeminiPart) -> Iterator[Event]:
        text, signature = part.get("text") or "", part.get("thoughtSignature")
        if call := part.get("functionCall"):
            yield from self._call(call, signature)
        elif part.get("thought"):
            if self._signature:
                yield from self._close()
            yield from self._prose.reasoning(text)
            if signature:
                yield from self._prose.close(signature=signature)
        else:  # text, a signature alone, or what their own tools did
            if text:
                yield from self._prose.text(text)
            self._signature = signature or self._signature

    def _close(self) -> Iterator[Event]:
        """End what is open; then the signature that came with it, as an empty thought of its own."""
        yield from self._prose.close()
        if self._signature:
            yield from self._prose.close(signature=self._signature)
        self._signature = None

    # ── calls ─────────────────────────────────────────────────────────────────────────────────────

    def _call(self, call: GeminiCall, signature: str | None) -> Iterator[Event]:
        yield from self._close()
        arguments = call.get("args") or {}
        yield from self._calls.whole(call["name"], arguments, id=call.get("id"), signature=signature)

    def _malformed(self, message: str) -> Iterator[Event]:
        """A call that they could not read themselves: its text, if the tool can be made out.

        It cannot be run; the model reads why, and may try again.
        """
        named = re.search(r"default_api[.:]\s*([\w-]+)", message) or re.search(r":\s*([\w-]+)\(", message)
        if named:
            yield from self._close()
            yield from self._calls.whole(named[1], message)


# ── how it ended ──────────────────────────────────────────────────────────────────────────────────


def _usage(tokens: GeminiTokens) -> Usage:
    thought = tokens.get("thoughtsTokenCount") or 0
    return Usage(
        tokens.get("promptTokenCount") or 0,
        (tokens.get("candidatesTokenCount") or 0) + thought,  # they count thoughts beside the answer
        cached=tokens.get("cachedContentTokenCount") or 0,
        reasoning=thought,
    )
