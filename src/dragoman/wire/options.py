"""The options of a request, and fields a person adds to its body."""

from __future__ import annotations

from typing import TypeAlias

from pydantic import JsonValue

Body: TypeAlias = dict[str, JsonValue]


def with_extra(body: Body, extra: Body) -> Body:
    """What is extra wins. Groups of fields are merged, and tools come beside ours: a provider's own."""
    merged = dict(body)
    for name, value in extra.items():
        held = merged.get(name)
        if isinstance(held, dict) and isinstance(value, dict):
            merged[name] = with_extra(held, value)
        elif name == "tools" and isinstance(held, list) and isinstance(value, list):
            merged[name] = [*held, *value]
        else:
            merged[name] = value
    return merged
