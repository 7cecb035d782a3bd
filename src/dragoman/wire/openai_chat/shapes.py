"""Define Chat Completions on the wire: its terms, and the fields of its chunks that we read.

Any field may be missing or null. The imitators differ in which.
"""

from __future__ import annotations

from typing import TypeAlias, TypedDict

from pydantic import JsonValue

from dragoman.wire.calls import RawArguments

NAME = "openai_chat"

# ── words ─────────────────────────────────────────────────────────────────────────────────────────

THINKING = "thinking"  # the type of Mistral's reasoning blocks

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
    "repetition": "error",  # vLLM: the model repeated itself
    "eos": "stop",  # Together
    "eos_token": "stop",  # TGI
    "stop_sequence": "stop",
    "complete": "stop",
    # words that gateways pass on from the other protocols
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
"""One of OpenRouter's `reasoning_details`: text, a summary or encrypted data, or a chunk of one."""


class ChatBlock(TypedDict, total=False):
    """Mistral's content, if it is a list: text, or reasoning that is itself a list of texts."""

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
    extra_content: dict[str, dict[str, str]] | None  # Gemini's signature of a call


class ChatSource(TypedDict, total=False):
    url: str | None
    title: str | None
    content: str | None  # OpenRouter
    start_index: int | None
    end_index: int | None


class ChatAnnotation(ChatSource, total=False):
    """A source of an answer with search. Some imitators put its fields here."""

    type: str
    url_citation: ChatSource | None


class ChatImage(TypedDict, total=False):
    """An image that the model made: OpenRouter, LiteLLM."""

    image_url: dict[str, str] | None


class ChatSound(TypedDict, total=False):
    """Audio from the model: OpenAI. If streamed, it is raw samples."""

    data: str | None
    transcript: str | None


class ChatDelta(TypedDict, total=False):
    content: str | list[ChatBlock] | None
    refusal: str | None
    reasoning_content: str | None  # DeepSeek, llama.cpp
    reasoning: str | None  # Ollama, OpenRouter, vLLM
    reasoning_details: list[ReasoningDetail] | None
    tool_calls: list[ChatCallPiece] | None
    function_call: ChatFunction | None  # the name of calls before there could be several
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
    """The result of Azure's filter for one category."""

    filtered: bool | None
    severity: str | None


class ChatChoice(TypedDict, total=False):
    index: int | None
    delta: ChatDelta | None
    message: ChatDelta | None  # of a reply that is not streamed
    finish_reason: str | None
    usage: ChatTokens | None  # Moonshot writes it here
    logprobs: JsonValue
    error: JsonValue  # OpenRouter
    content_filter_results: dict[str, FilterResult | None] | None  # Azure


class ChatChunk(TypedDict, total=False):
    object: str | None
    citations: list[str] | None  # Perplexity, xAI: URLs
    search_results: list[ChatSource] | None  # Perplexity: with their titles
    choices: list[ChatChoice] | None
    usage: ChatTokens | None
    error: JsonValue
