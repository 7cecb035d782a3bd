"""Converse on the wire: its words, what its models differ in, and the events of its stream."""

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

TIERS = {"auto": "default", "standard": "default"}  # others' words for what is called so here
SERVER_CALL = "server_tool_use"  # the type of a call of Amazon's own tools

# ── models ────────────────────────────────────────────────────────────────────────────────────────


class ConverseFamily(NamedTuple):
    """In what models differ, as far as a request has to know. The protocol is one, but not all take all."""

    thinking: Literal["claude", "nova", "effort", "no"] = "effort"
    caches: Literal["no", "prompts", "all"] = "no"  # where points of a cache may stand
    rich_results: bool = False  # results may hold files and a status, and stand beside what a person says
    thoughts_back: Literal["signed", "all", "no"] = "all"
    any_schema: bool = False  # else a tool's schema has no references, and only three words at its root


_CLAUDE = ConverseFamily("claude", "all", rich_results=True, thoughts_back="signed", any_schema=True)
_OLDER_CLAUDE = _CLAUDE._replace(caches="no")
_NOVA = ConverseFamily("no", "prompts", rich_results=True)

# The first whose name is part of the model's.
FAMILIES = (
    *((name, _OLDER_CLAUDE) for name in ("claude-3-haiku", "claude-3-sonnet", "claude-3-opus")),
    *((name, _OLDER_CLAUDE) for name in ("claude-3-5-sonnet-20240620", "claude-v2", "claude-instant")),
    *((name, _CLAUDE) for name in ("anthropic", "claude")),
    ("nova-2", _NOVA._replace(thinking="nova")),
    ("nova-", _NOVA),
    ("deepseek.r1", ConverseFamily("no", thoughts_back="no")),  # it always thinks
    ("deepseek", ConverseFamily(thoughts_back="no")),
    ("", ConverseFamily()),
)


def family(model: str) -> ConverseFamily:
    return next(found for name, found in FAMILIES if name in model)


# ── fields that we read, or that are of no use to anybody ─────────────────────────────────────────

PADDING = "p"  # so that nobody can tell from the length of an event what is in it
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
"""A piece of content: an object with one field, whose name says what it is."""

ConverseEvent: TypeAlias = dict[str, dict[str, Any]]
"""An event as the splitter gives it: its name, and what it holds."""


class ConverseTokens(TypedDict, total=False):
    inputTokens: int | None
    outputTokens: int | None
    cacheReadInputTokens: int | None
    cacheWriteInputTokens: int | None
