"""The Messages API on the wire: its words, what its models differ in, and the events of its stream."""

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
    "pause_turn": "pause",  # its own tools took long: it goes on when its reply is sent back
    "compaction": "pause",  # it summed up by itself, and stops where it was asked to
    "refusal": "refusal",
}

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
DOCUMENTS = ("application/pdf",)

THINKING = ("thinking", "redacted_thinking")
SERVER_CALLS = ("server_tool_use", "mcp_tool_use")
SERVER_FIELDS = ("tools", "mcp_servers", "context_management")  # where a request asks for these
OUR_BLOCKS = frozenset({"text", "tool_use", "tool_result", "image", "document", *THINKING})


def is_server_block(type: str) -> bool:
    """What the provider's own tools add to a reply. It goes back as it came."""
    return type in SERVER_CALLS or type.endswith("_tool_result") or type in ("compaction", "mcp_tool_listing")


# ── models ────────────────────────────────────────────────────────────────────────────────────────


class ClaudeFamily(NamedTuple):
    """In what models differ, as far as a request has to know."""

    max_tokens: int  # asked for where the request names no limit: the field may not be missing
    thinking: Literal["no", "budget", "adaptive"]
    sampling: bool = True  # whether temperature and top_p are taken
    structured: bool = False  # takes strict tools, and examples of their arguments
    interleaves: bool = (
        False  # thinks between calls only where a beta asks for it; newer ones do by themselves
    )


_4 = ClaudeFamily(32_000, "budget", interleaves=True)
_4_5 = ClaudeFamily(32_000, "budget", structured=True, interleaves=True)

# The first whose name is part of the model's. What is not listed among Anthropic's is newer than this table.
FAMILIES = (
    ("claude-3-7", ClaudeFamily(32_000, "budget")),
    ("claude-3-5", ClaudeFamily(8_192, "no")),
    ("claude-3-", ClaudeFamily(4_096, "no")),
    *((name, _4) for name in ("opus-4-0", "opus-4-1", "opus-4-2", "sonnet-4-0", "sonnet-4-2")),
    *((name, _4_5) for name in ("opus-4-5", "sonnet-4-5")),
    ("haiku-4-5", ClaudeFamily(32_000, "budget", structured=True)),
    *((name, ClaudeFamily(32_000, "adaptive", structured=True)) for name in ("opus-4-6", "sonnet-4-6")),
    ("claude-", ClaudeFamily(32_000, "adaptive", sampling=False, structured=True)),
    ("", ClaudeFamily(8_192, "budget")),  # who imitates the protocol knows its older form
)

FILES_BETA = "files-api-2025-04-14"  # what files that are named by an id need
INTERLEAVED_THINKING = "interleaved-thinking-2025-05-14"


def family(model: str) -> ClaudeFamily:
    plain = re.sub("[.@]", "-", model)  # gateways write 4.5, Vertex puts an @ before the date
    return next(found for name, found in FAMILIES if name in plain)


BUDGETS = {"minimal": 1_024, "low": 4_096, "medium": 10_000, "high": 20_000, "xhigh": 26_000, "max": 30_000}
SMALLEST_BUDGET = 1_024
EFFORTS = {"minimal": "low"}  # the only word of ours that is not one of theirs

TIERS = {"default": "standard_only", "standard": "standard_only"}  # others' words for what is not "auto"

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
"""A piece of content. Some are sent back as they came, so none is taken apart further than need be."""


class StopDetails(TypedDict, total=False):
    """Why it refused."""

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
