"""Chat Completions on the wire: their words, and the chunks as far as we read them.

Any field may be missing or null; the imitators differ in which.
"""

from __future__ import annotations

from typing import TypeAlias, TypedDict

from pydantic import JsonValue

from dragoman.wire.calls import RawArguments

NAME = "openai_chat"

# ── words ─────────────────────────────────────────────────────────────────────────────────────────

THINKING = "thinking"  # the type of Mistral's blocks that hold a thought

FINISH = {
    "stop": "stop",
    "end_turn": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",  # Mistral: the model's limit, not the answer's
    "content_filter": "filter",
    "error": "error",
    "insufficient_system_resource": "error",  # DeepSeek
    "network_error": "error",  # Z.ai
    "sensitive": "filter",  # Z.ai
    "abort": "error",  # vLLM
    "repetition": "error",  # vLLM: it said the same again and again
    "eos": "stop",  # Together
    "eos_token": "stop",  # TGI
    "stop_sequence": "stop",
    "complete": "stop",
    # what gateways pass on from the other protocols
    "tool_use": "tool_calls",
    "refusal": "refusal",
    "safety": "safety",
    "recitation": "recitation",
    "prohibited_content": "filter",
    "blocklist": "filter",
    "spii": "filter",
    "malformed_function_call": "malformed",
    "model_context_window_exceeded": "context",
}
"""By the word in lower case."""

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
DOCUMENTS = ("application/pdf",)
AUDIO_FORMATS = {"audio/wav": "wav", "audio/mpeg": "mp3"}

# ── fields that we read, or that are of no use to anybody ─────────────────────────────────────────

CHUNK_FIELDS = frozenset(
    {"id", "object", "created", "model", "choices", "usage", "error", "system_fingerprint", "obfuscation"}
)
CONSTANT_FIELDS = frozenset({"service_tier", "provider"})  # the same in every chunk
CHOICE_FIELDS = frozenset({"index", "delta", "message", "finish_reason", "usage", "error", "logprobs"})
DELTA_FIELDS = frozenset(
    {
        *("role", "content", "refusal", "tool_calls", "function_call"),
        *("reasoning_content", "reasoning", "reasoning_details", "images", "audio"),
    }
)
USAGE_FIELDS = frozenset(
    {
        *("prompt_tokens", "completion_tokens", "total_tokens", "cost"),
        *("prompt_tokens_details", "completion_tokens_details", "prompt_cache_hit_tokens"),
    }
)

# ── chunks ────────────────────────────────────────────────────────────────────────────────────────

ReasoningDetail: TypeAlias = dict[str, JsonValue]
"""One of OpenRouter's `reasoning_details`: text, a summary or encrypted data, or a piece of one."""


class ChatBlock(TypedDict, total=False):
    """Mistral's content, where it is a list: text, or a thought that is a list of texts again."""

    type: str
    text: str | None
    thinking: list[ChatBlock] | str | None


class ChatFunction(TypedDict, total=False):
    name: str | None
    arguments: RawArguments


class ChatCallPiece(TypedDict, total=False):
    index: int | None
    id: str | None
    function: ChatFunction | None
    extra_content: dict[str, dict[str, str]] | None  # Gemini's mark on a call


class ChatSource(TypedDict, total=False):
    url: str | None
    title: str | None
    content: str | None  # OpenRouter
    start_index: int | None
    end_index: int | None


class ChatAnnotation(ChatSource, total=False):
    """A source of the answer, of searching models. Some imitators write its fields right here."""

    type: str
    url_citation: ChatSource | None


class ChatImage(TypedDict, total=False):
    """A picture that the model made: OpenRouter, LiteLLM."""

    image_url: dict[str, str] | None


class ChatSound(TypedDict, total=False):
    """What the model speaks: OpenAI. Streamed it is bare samples."""

    data: str | None
    transcript: str | None


class ChatDelta(TypedDict, total=False):
    content: str | list[ChatBlock] | None
    refusal: str | None
    reasoning_content: str | None  # DeepSeek, llama.cpp
    reasoning: str | None  # Ollama, OpenRouter, vLLM
    reasoning_details: list[ReasoningDetail] | None
    tool_calls: list[ChatCallPiece] | None
    function_call: ChatFunction | None  # what calls were called before there could be several
    annotations: list[ChatAnnotation] | None
    images: list[ChatImage] | None
    audio: ChatSound | None


class ChatTokens(TypedDict, total=False):
    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None
    prompt_tokens_details: dict[str, int | None] | None
    completion_tokens_details: dict[str, int | None] | None
    prompt_cache_hit_tokens: int | None  # DeepSeek
    cost: float | None  # OpenRouter


class FilterResult(TypedDict, total=False):
    """What Azure's filter says of one category."""

    filtered: bool | None
    severity: str | None


class ChatChoice(TypedDict, total=False):
    index: int | None
    delta: ChatDelta | None
    message: ChatDelta | None  # of a reply that comes whole
    finish_reason: str | None
    usage: ChatTokens | None  # Moonshot writes it here
    logprobs: JsonValue
    error: JsonValue  # OpenRouter
    content_filter_results: dict[str, FilterResult | None] | None  # Azure


class ChatChunk(TypedDict, total=False):
    object: str | None
    citations: list[str] | None  # Perplexity, xAI: addresses
    search_results: list[ChatSource] | None  # Perplexity: with their titles
    choices: list[ChatChoice] | None
    usage: ChatTokens | None
    error: JsonValue
