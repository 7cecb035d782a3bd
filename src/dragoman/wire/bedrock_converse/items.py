"""What Amazon's own tools did, the sources it names, and why a guardrail stepped in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from dragoman.messages.message import Citation
from dragoman.wire.bedrock_converse.shapes import Block
from dragoman.wire.surrogates import join_all

BLOCKED = "BLOCKED"  # the action of a rule that stepped in


def line_of(block: Block) -> str:
    """A line for people about a call of theirs, or its result."""
    match block:
        case {"toolUse": {"name": str(name), "input": dict(given)}}:
            value = next((one for one in given.values() if isinstance(one, str) and one), "")
            return f"{name}: {value}" if value else name
        case {"toolResult": {"content": list(content)}}:
            texts = [str(one["text"]) for one in content if isinstance(one, dict) and one.get("text")]
            return " ".join(texts)
        case _:
            return ""


def citation_of(given: Any, start: int, end: int) -> Citation:
    """A source of the text between these characters, with their own form of it."""
    fields = join_all(given)
    held: dict[str, JsonValue] = fields if isinstance(fields, dict) else {}
    location = held.get("location")
    web = location.get("web") if isinstance(location, dict) else None
    address = web.get("url") if isinstance(web, dict) else held.get("source")
    quoted = held.get("sourceContent")
    words = "".join(
        str(one.get("text") or "")
        for one in (quoted if isinstance(quoted, list) else ())
        if isinstance(one, dict)
    )
    title = held.get("title")
    return Citation(
        address if isinstance(address, str) and address else None,
        title if isinstance(title, str) and title else None,
        words or None,
        start,
        end,
        fields,
    )


def blocking_rules(trace: JsonValue) -> Iterator[str]:
    """The names of the rules of a guardrail that stopped something, as far as its trace tells."""
    match trace:
        case dict():
            if trace.get("action") == BLOCKED:
                yield str(trace.get("name") or trace.get("type") or trace.get("match") or BLOCKED)
            for inner in trace.values():
                yield from blocking_rules(inner)
        case list():
            for inner in trace:
                yield from blocking_rules(inner)
