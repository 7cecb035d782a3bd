"""Define Converse on the wire: its terms, the differences between its models, and its stream events."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict

from pydantic import JsonValue

NAME = "bedrock_converse"

# ── words ─────────────────────────────────────────────────────────────────────────────────────────

FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "context",
    "guardrail_intervened": "filter",
    "content_filtered": "filter",
    "malformed_tool_use": "malformed",
    "malformed_model_output": "error",
    "refusal": "refusal",
}

TIERS = {"auto": "default", "standard": "default"}  # other providers' words for the default tier
SERVER_CALL = "server_tool_use"  # the type of a call of Amazon's own tools

# ── models ────────────────────────────────────────────────────────────────────────────────────────


class ConverseFamily(NamedTuple):
    """The differences between models that matter for a request. Not all models support the whole protocol."""

    thinking: Literal["claude", "nova", "effort", "no"] = "effort"
    caches: Literal["no", "prompts", "all"] = "no"  # where cache points are allowed
    # results can contain files and a status, and be in one turn with the user's text
    rich_results: bool = False
    thoughts_back: Literal["signed", "all", "no"] = "all"
    # otherwise a tool's schema has no references, and only three keywords at its root
    any_schema: bool = False


_CLAUDE = ConverseFamily("claude", "all", rich_results=True, thoughts_back="signed", any_schema=True)
_OLDER_CLAUDE = _CLAUDE._replace(caches="no")
_NOVA = ConverseFamily("no", "prompts", rich_results=True)

# The first entry whose name is part of the model's name applies.
FAMILIES = (
    *((name, _OLDER_CLAUDE) for name in ("claude-3-haiku", "claude-3-sonnet", "claude-3-opus")),
    *((name, _OLDER_CLAUDE) for name in ("claude-3-5-sonnet-20240620", "claude-v2", "claude-instant")),
    *((name, _CLAUDE) for name in ("anthropic", "claude")),
    ("nova-2", _NOVA._replace(thinking="nova")),
    ("nova-", _NOVA),
    ("deepseek.r1", ConverseFamily("no", thoughts_back="no")),  # It always reasons.
    ("deepseek", ConverseFamily(thoughts_back="no")),
    ("", ConverseFamily()),
)


def family(model: str) -> ConverseFamily:
    return next(found for name, found in FAMILIES if name in model)


# ── fields that we read, or that are of no use to anybody ─────────────────────────────────────────

PADDING = "p"  # Padding hides the content of an event from observers of its length.
STOP_FIELDS = frozenset({"stopReason", PADDING})
METADATA_FIELDS = frozenset({"usage", "metrics", PADDING})
USAGE_FIELDS = frozenset(
    {
        *("inputTokens", "outputTokens", "totalTokens", "cacheReadInputTokens", "cacheWriteInputTokens"),
        *("cacheReadInputTokenCount", "cacheWriteInputTokenCount", "serverToolUsage"),
    }
)

# ── events ────────────────────────────────────────────────────────────────────────────────────────

Block: TypeAlias = dict[str, JsonValue]
"""A content block: an object with one field, whose name is its kind."""

ConverseEvent: TypeAlias = dict[str, dict[str, Any]]
"""An event from the splitter: its name, and its content."""


class ConverseTokens(TypedDict, total=False):
    inputTokens: int | None
    outputTokens: int | None
    cacheReadInputTokens: int | None
    cacheWriteInputTokens: int | None
