"""Writes what a server does not read of a schema into its description, where the model reads it."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.messages.message import canonical
from dragoman.wire.schemas import Schema


def note_words(result: Schema, schema: Schema, words: Iterable[str]) -> None:
    """Add these words of a schema to the description of what is sent of it. The tool checks again."""
    held = [f"{word}: {canonical(schema[word])}" for word in words if schema.get(word) is not None]
    if held:
        text = result.get("description")
        note = f"({', '.join(held)})"
        result["description"] = f"{text} {note}" if isinstance(text, str) and text else note
