"""Define Gemini's API on the wire: its terms, the differences between its models, and its chunks."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypedDict

from pydantic import JsonValue

NAME = "gemini"

# ── words ─────────────────────────────────────────────────────────────────────────────────────────

FINISH = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "safety",
    "IMAGE_SAFETY": "safety",
    "MODEL_ARMOR": "safety",
    "RECITATION": "recitation",
    "IMAGE_RECITATION": "recitation",
    "LANGUAGE": "filter",
    "BLOCKLIST": "filter",
    "PROHIBITED_CONTENT": "filter",
    "IMAGE_PROHIBITED_CONTENT": "filter",
    "SPII": "filter",
    "MALFORMED_FUNCTION_CALL": "malformed",
    "UNEXPECTED_TOOL_CALL": "malformed",
    "MALFORMED_RESPONSE": "error",
    "TOO_MANY_TOOL_CALLS": "error",
    "MISSING_THOUGHT_SIGNATURE": "error",
    "NO_IMAGE": "error",
    "IMAGE_OTHER": "error",
    "OTHER": "error",
}

# Why a prompt was blocked. All other reasons come from the content filter.
BLOCKED = {"SAFETY": "safety", "IMAGE_SAFETY": "safety", "JAILBREAK": "safety", "MODEL_ARMOR": "safety"}

MALFORMED_CALL = "MALFORMED_FUNCTION_CALL"

# Google requires this if a call came from another model, or its signature is lost.
NO_SIGNATURE = "skip_thought_signature_validator"

MEDIA = frozenset(
    {
        *("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"),
        *("audio/wav", "audio/mpeg", "audio/aiff", "audio/x-aiff", "audio/aac", "audio/ogg", "audio/flac"),
        *("audio/x-flac", "audio/opus", "audio/webm", "audio/mp4", "audio/m4a", "audio/x-m4a", "audio/pcm"),
        *("video/mp4", "video/mpeg", "video/mpg", "video/mov", "video/quicktime", "video/avi"),
        *("video/x-msvideo", "video/x-flv", "video/webm", "video/wmv", "video/x-ms-wmv", "video/3gpp"),
        "application/pdf",
    }
)

# Media types that a result can contain. Others come after it.
RESULT_MEDIA = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf"})

# ── models ────────────────────────────────────────────────────────────────────────────────────────


class GeminiFamily(NamedTuple):
    """The differences between models that matter for a request."""

    thinking: Literal["no", "budget", "level"]
    signs_calls: bool = False  # refuses an unsigned call in the current turn
    json_with_tools: bool = False  # accepts a response schema together with tools
    json_schema: bool = True  # reads JSON schema; older models read a subset of OpenAPI's
    call_ids: bool = False  # assigns IDs to calls, and matches results by them
    files_in_results: bool = False  # accepts images and documents inside the result of a call
    tools_beside_hosted: bool = False  # accepts our tools together with Google's own


# The first entry whose name is part of the model's name applies. An unlisted model is newer than this table.
FAMILIES = (
    ("gemini-1", GeminiFamily("no", json_schema=False)),
    ("gemini-2.0", GeminiFamily("no", json_schema=False)),
    ("gemini-2", GeminiFamily("budget")),
    ("gemma", GeminiFamily("no", json_schema=False)),
    (
        "",
        GeminiFamily(
            "level",
            signs_calls=True,
            json_with_tools=True,
            call_ids=True,
            files_in_results=True,
            tools_beside_hosted=True,
        ),
    ),
)


def family(model: str) -> GeminiFamily:
    return next(found for name, found in FAMILIES if name in model)


BUDGETS = {"none": 0, "minimal": 512, "low": 2_048, "medium": 8_192, "high": 24_576}
LEAST_OF_PRO = 128
LEVELS = {"none": "minimal", "minimal": "minimal", "low": "low", "medium": "medium", "high": "high"}
MOST = "high"  # for efforts above the highest that Google has

TIERS = {"default": "standard", "auto": "unspecified"}  # other providers' words for theirs
IN_CACHE = ("systemInstruction", "tools", "toolConfig")

# ── fields that we read, or that are of no use to anybody ─────────────────────────────────────────

CHUNK_FIELDS = frozenset({"candidates", "usageMetadata", "error", "modelVersion", "responseId", "createTime"})
SOURCES = ("groundingMetadata", "urlContextMetadata", "citationMetadata")
CHANCES = "logprobsResult"
CANDIDATE_FIELDS = frozenset({"content", "index", "finishReason", "finishMessage", "tokenCount"})
PART_FIELDS = frozenset({"text", "thought", "thoughtSignature"})
USAGE_FIELDS = frozenset(
    {
        *("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount"),
        *("cachedContentTokenCount", "promptTokensDetails", "candidatesTokensDetails", "cacheTokensDetails"),
    }
)

# ── chunks ────────────────────────────────────────────────────────────────────────────────────────


class GeminiCall(TypedDict, total=False):
    id: str | None
    name: str
    args: dict[str, JsonValue] | None


class GeminiPart(TypedDict, total=False):
    text: str | None
    thought: bool | None
    thoughtSignature: str | None
    functionCall: GeminiCall | None


class GeminiContent(TypedDict, total=False):
    parts: list[GeminiPart] | None


class GeminiCandidate(TypedDict, total=False):
    content: GeminiContent | None
    finishReason: str | None
    finishMessage: str | None
    safetyRatings: list[SafetyRating] | None
    groundingMetadata: dict[str, JsonValue] | None
    urlContextMetadata: dict[str, JsonValue] | None
    citationMetadata: dict[str, JsonValue] | None


class SafetyRating(TypedDict, total=False):
    category: str | None
    blocked: bool | None


class GeminiFeedback(TypedDict, total=False):
    blockReason: str | None
    blockReasonMessage: str | None
    safetyRatings: list[SafetyRating] | None


class GeminiTokens(TypedDict, total=False):
    promptTokenCount: int | None
    candidatesTokenCount: int | None
    thoughtsTokenCount: int | None
    cachedContentTokenCount: int | None


class GeminiChunk(TypedDict, total=False):
    candidates: list[GeminiCandidate] | None
    promptFeedback: GeminiFeedback | None
    usageMetadata: GeminiTokens | None
    error: JsonValue
