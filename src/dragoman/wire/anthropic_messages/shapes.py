"""Define the Messages API on the wire: its terms, the differences between its models, and its stream
events."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias, TypedDict

from pydantic import JsonValue

NAME = "anthropic_messages"

# ── words ─────────────────────────────────────────────────────────────────────────────────────────

FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "context",
    "pause_turn": "pause",  # Its own tools took long. It continues when its reply is sent back.
    "compaction": "pause",  # It compacted the context itself, and stops as requested.
    "refusal": "refusal",
}

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
DOCUMENTS = ("application/pdf",)

THINKING = ("thinking", "redacted_thinking")
SERVER_CALLS = ("server_tool_use", "mcp_tool_use")
SERVER_FIELDS = ("tools", "mcp_servers", "context_management")  # fields of a request that ask for these
OUR_BLOCKS = frozenset({"text", "tool_use", "tool_result", "image", "document", *THINKING})


def is_server_block(type: str) -> bool:
    """Return whether a block of a reply comes from the provider's own tools. It is sent back unchanged."""
    return type in SERVER_CALLS or type.endswith("_tool_result") or type in ("compaction", "mcp_tool_listing")


# ── models ────────────────────────────────────────────────────────────────────────────────────────


class ClaudeFamily(NamedTuple):
    """The differences between models that matter for a request."""

    max_tokens: int  # used if the request sets no limit: the field is required
    thinking: Literal["no", "budget", "adaptive"]
    sampling: bool = True  # whether temperature and top_p are accepted
    structured: bool = False  # accepts strict tools, and examples of their arguments
    interleaves: bool = False  # reasons between calls only with a beta header; newer models always do


_4 = ClaudeFamily(32_000, "budget", interleaves=True)
_4_5 = ClaudeFamily(32_000, "budget", structured=True, interleaves=True)

# The first entry whose name is part of the model's name applies. An unlisted Anthropic model is newer than
# this table.
FAMILIES = (
    ("claude-3-7", ClaudeFamily(32_000, "budget")),
    ("claude-3-5", ClaudeFamily(8_192, "no")),
    ("claude-3-", ClaudeFamily(4_096, "no")),
    *((name, _4) for name in ("opus-4-0", "opus-4-1", "opus-4-2", "sonnet-4-0", "sonnet-4-2")),
    *((name, _4_5) for name in ("opus-4-5", "sonnet-4-5")),
    ("haiku-4-5", ClaudeFamily(32_000, "budget", structured=True)),
    *((name, ClaudeFamily(32_000, "adaptive", structured=True)) for name in ("opus-4-6", "sonnet-4-6")),
    ("claude-", ClaudeFamily(32_000, "adaptive", sampling=False, structured=True)),
    ("", ClaudeFamily(8_192, "budget")),  # Servers that imitate the protocol implement its older form.
)

FILES_BETA = "files-api-2025-04-14"  # required by files that are named by an ID
INTERLEAVED_THINKING = "interleaved-thinking-2025-05-14"


def family(model: str) -> ClaudeFamily:
    plain = re.sub("[.@]", "-", model)  # gateways write 4.5, Vertex puts an @ before the date
    return next(found for name, found in FAMILIES if name in plain)


BUDGETS = {"minimal": 1_024, "low": 4_096, "medium": 10_000, "high": 20_000, "xhigh": 26_000, "max": 30_000}
SMALLEST_BUDGET = 1_024
EFFORTS = {"minimal": "low"}  # the only value of ours that Anthropic does not have

# other providers' words for anything but "auto"
TIERS = {"default": "standard_only", "standard": "standard_only"}

# ── fields that we read, or that are of no use to anybody ─────────────────────────────────────────

START_FIELDS = frozenset(
    {"id", "type", "role", "content", "model", "stop_reason", "stop_sequence", "stop_details", "usage"}
)
END_FIELDS = frozenset({"type", "stop_reason", "usage"})
USAGE_FIELDS = frozenset(
    {
        *("input_tokens", "output_tokens", "output_tokens_details"),
        *("cache_read_input_tokens", "cache_creation_input_tokens"),
    }
)

# ── events ────────────────────────────────────────────────────────────────────────────────────────

Block: TypeAlias = dict[str, JsonValue]
"""A block of content. Some are sent back unchanged, so none is parsed further than necessary."""


class StopDetails(TypedDict, total=False):
    """Why the model refused."""

    category: str | None
    explanation: str | None


class MessagesDelta(TypedDict, total=False):
    type: str
    text: str
    partial_json: str
    thinking: str
    signature: str
    content: JsonValue  # of a compaction
    stop_reason: str | None
    stop_details: StopDetails | None
    citation: JsonValue


class MessagesTokens(TypedDict, total=False):
    input_tokens: int | None
    output_tokens: int | None
    cache_read_input_tokens: int | None
    cache_creation_input_tokens: int | None
    output_tokens_details: dict[str, int | None] | None


class MessagesStart(TypedDict, total=False):
    usage: MessagesTokens | None


class MessagesEvent(TypedDict, total=False):
    type: str
    index: int
    message: MessagesStart
    content_block: Block
    delta: MessagesDelta
    usage: MessagesTokens | None
    error: JsonValue
