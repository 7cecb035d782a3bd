"""Which results a person sees before the model does: of all tools, or by patterns of what they are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, get_args

from dragoman.tools.permissions import matches
from dragoman.tools.tool import Review, Tool

ReviewPolicy: TypeAlias = Review | Mapping[str, Review]
"""One word for all tools, or one for each pattern: `{"shell": "always", "mcp.*": "on_error"}`."""

REVIEWS: tuple[Review, ...] = get_args(Review)  # the stricter, the later


def review_of(tool: Tool, *policies: ReviewPolicy | None, offered_as: str = "") -> Review:
    """The strictest of what the tool itself and these say of it, by whichever of its names."""
    wanted = [tool.review]
    for policy in policies:
        if isinstance(policy, str):
            wanted.append(policy)
        elif policy is not None:
            wanted += [
                review for pattern, review in policy.items() if concerns_tool(pattern, tool, offered_as)
            ]
    return max(wanted, key=REVIEWS.index)


def concerns_tool(pattern: str, tool: Tool, offered_as: str = "") -> bool:
    """By its name, or the longer one that it is offered by where another has the same, or by its
    permission, as rules do."""
    return any(matches(pattern, name) for name in (tool.name, tool.permission, offered_as) if name)


def wrong_with(policy: object) -> str:
    """Why this says nothing about results; empty where it does."""
    words = ", ".join(REVIEWS)
    if not isinstance(policy, Mapping):
        return "" if policy in REVIEWS else f"review {policy!r}: it is one of {words}, or a table of patterns"
    for pattern, review in policy.items():
        if not isinstance(pattern, str) or not pattern.strip():
            return f"review {pattern!r}: a pattern is a tool's name or permission, such as 'mcp.*'"
        if review not in REVIEWS:
            return f"review {pattern!r} = {review!r}: it is one of {words}"
    return ""
