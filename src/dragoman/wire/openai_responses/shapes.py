"""The Responses API on the wire: its words, and the events of its stream as far as we read them.

Any field may be missing or null; the imitators differ in which.
"""

from __future__ import annotations

from typing import TypedDict

from pydantic import JsonValue

NAME = "openai_responses"

# ── words ─────────────────────────────────────────────────────────────────────────────────────────

DONE = b"[DONE]"  # OpenRouter's habit

FINISH = {"completed": "stop", "failed": "error"}
WHY_INCOMPLETE = {"max_output_tokens": "length", "content_filter": "filter"}

ENCRYPTED_REASONING = "reasoning.encrypted_content"
AUDIO_FORMATS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}

# ── events ────────────────────────────────────────────────────────────────────────────────────────


class ResponsesContent(TypedDict, total=False):
    """A part of a message or of a thought."""

    type: str
    text: str | None
    refusal: str | None


class ResponsesItem(TypedDict, total=False):
    """A message, a thought, a call, or one of the many things that happen on their side."""

    type: str
    id: str | None
    status: str | None
    content: list[ResponsesContent] | None
    summary: list[ResponsesContent] | None
    encrypted_content: str | None
    call_id: str | None
    name: str | None
    arguments: str | None


class ResponsesTokens(TypedDict, total=False):
    input_tokens: int | None
    output_tokens: int | None
    input_tokens_details: dict[str, int | None] | None
    output_tokens_details: dict[str, int | None] | None
    cost: float | None  # OpenRouter


class Response(TypedDict, total=False):
    status: str | None
    output: list[ResponsesItem] | None
    usage: ResponsesTokens | None
    incomplete_details: dict[str, str] | None
    error: JsonValue


class ResponsesEvent(TypedDict, total=False):
    """One event of the stream; which of the other fields are there depends on `type`."""

    type: str
    output_index: int | None
    summary_index: int | None
    item_id: str | None
    item: ResponsesItem
    delta: str | None
    arguments: str | None
    response: Response
    error: JsonValue
