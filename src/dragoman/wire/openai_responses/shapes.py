"""Define the Responses API on the wire: its terms, and the fields of its stream events that we read.

Any field may be missing or null. The imitators differ in which.
"""

from __future__ import annotations

import re
from typing import TypedDict

from pydantic import JsonValue

NAME = "openai_responses"

# ── words ─────────────────────────────────────────────────────────────────────────────────────────


FINISH = {"completed": "stop", "failed": "error", "cancelled": "error"}
WHY_INCOMPLETE = {
    "max_output_tokens": "length",
    "content_filter": "filter",
    # words that gateways pass on from the other protocols
    "max_tokens": "length",
    "length": "length",
    "refusal": "refusal",
    "safety": "safety",
    "recitation": "recitation",
    "model_context_window_exceeded": "context",
}

ENCRYPTED_REASONING = "reasoning.encrypted_content"
CHANCES = "message.output_text.logprobs"
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
DOCUMENTS = (
    "application/pdf",
    "application/rtf",
    "application/msword",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.oasis.opendocument.text",
    "application/vnd.ms-powerpoint",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/vnd.ms-excel",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
)

# ── useless and repeated events ───────────────────────────────────────────────────────────────────

SILENT = frozenset(
    {
        *("response.created", "response.queued", "response.in_progress", "keepalive", ""),
        *("response.content_part.added", "response.content_part.done"),
        *("response.output_text.done", "response.refusal.done"),
        *("response.reasoning_text.done", "response.reasoning_summary_text.done"),
        "response.reasoning_summary_part.done",
        *("response.custom_tool_call_input.delta", "response.custom_tool_call_input.done"),
    }
)
# The fields of a response that we read, its name and dates, and fields that only repeat the request.
RESPONSE_FIELDS = frozenset(
    {
        *("status", "output", "usage", "incomplete_details", "error"),
        *("id", "object", "created_at", "completed_at", "model", "previous_response_id", "conversation"),
        *("instructions", "tools", "tool_choice", "parallel_tool_calls", "max_tool_calls", "input"),
        *("temperature", "top_p", "top_logprobs", "max_output_tokens", "reasoning", "text", "truncation"),
        *("presence_penalty", "frequency_penalty", "include", "stream", "store", "background", "metadata"),
        *("prompt", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "user"),
    }
)
USAGE_FIELDS = frozenset(
    {
        *("input_tokens", "output_tokens", "total_tokens", "cost"),
        *("input_tokens_details", "output_tokens_details"),
    }
)

# ── events ────────────────────────────────────────────────────────────────────────────────────────


class ResponsesContent(TypedDict, total=False):
    """A part of a message or of reasoning."""

    type: str
    text: str | None
    refusal: str | None
    annotations: list[ResponsesAnnotation] | None
    logprobs: JsonValue


class ResponsesAnnotation(TypedDict, total=False):
    """A source: a URL, or a file at OpenAI."""

    type: str
    url: str | None
    title: str | None
    filename: str | None
    file_id: str | None
    start_index: int | None
    end_index: int | None


class ResponsesItem(TypedDict, total=False):
    """A message, reasoning, a call, or one of the many events at OpenAI."""

    type: str
    id: str | None
    status: str | None
    content: list[ResponsesContent] | None
    summary: list[ResponsesContent] | None
    encrypted_content: str | None
    call_id: str | None
    name: str | None
    arguments: str | None
    input: str | None  # of a call that takes a text
    phase: str | None  # of a message: commentary, or the final answer


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
    """One event of the stream. `type` determines which other fields it has."""

    type: str
    output_index: int | None
    summary_index: int | None
    item_id: str | None
    item: ResponsesItem
    delta: str | None
    annotation: ResponsesAnnotation
    logprobs: JsonValue
    arguments: str | None
    partial_image_b64: str | None
    output_format: str | None
    response: Response
    error: JsonValue


def searches_tools(model: str) -> bool:
    """Return whether an OpenAI model supports `tool_search`: all since gpt-5.4."""
    version = re.search(r"gpt-(\d+)(?:\.(\d+))?", model)
    return version is not None and (int(version[1]), int(version[2] or 0)) >= (5, 4)
