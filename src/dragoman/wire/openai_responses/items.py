"""What OpenAI's own tools did, in a line for people, and the sources they found."""

from __future__ import annotations

from typing import cast

from pydantic import JsonValue

from dragoman.messages.message import Citation
from dragoman.wire.openai_responses.shapes import ResponsesAnnotation
from dragoman.wire.surrogates import join_all

TELLING = (
    *("queries", "query", "url", "commands", "command", "code"),
    *("revised_prompt", "name", "server_label"),
)
MOST = 300  # characters of a line


def describe(item: JsonValue) -> str:
    """A search's words, the first line of code, a tool's name: whatever says most about the item."""
    if not isinstance(item, dict):
        return ""
    action = item.get("action")
    fields = {**item, **action} if isinstance(action, dict) else item
    for name in TELLING:
        match fields.get(name):
            case str() as text if text.strip():
                return text.strip().partition("\n")[0][:MOST]
            case [str(), *_] as texts:
                return " · ".join(map(str, texts))[:MOST]
    return ""


def citation(note: ResponsesAnnotation) -> Citation:
    return Citation(
        note.get("url"),
        note.get("title") or note.get("filename") or note.get("file_id"),
        None,
        note.get("start_index"),
        note.get("end_index"),
        join_all(cast("JsonValue", note)),
    )
