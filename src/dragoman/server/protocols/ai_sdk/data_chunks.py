"""Chunks of a UI message for files, questions, and what else the AI SDK has no word for."""

from __future__ import annotations

from dataclasses import asdict
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.messages import events as e
from dragoman.messages.asked import approval_text
from dragoman.messages.message import File
from dragoman.messages.questions import Question
from dragoman.messages.usage import Usage

Chunk: TypeAlias = dict[str, JsonValue]


def file_chunk(file: File) -> Chunk:
    """By its address here: `useChat` takes any."""
    url = file.url or f"/api/files/{file.blob}?type={file.media_type}"
    return {"type": "file", "url": url, "mediaType": file.media_type}


def question_chunk(id: str, asked: Question | e.CallAsked) -> Chunk:
    """Everything that a person is to know who answers it, wherever; `shown` is all of it in one text, with
    nothing invisible in it."""
    about: Chunk = {
        "id": id,
        "call": asked.call,
        "kind": asked.kind,
        "tool": asked.tool,
        "arguments": asked.arguments,
        "text": asked.text,
        "because": asked.because,
        "choices": [*asked.choices],
        "free": asked.free,
        "schema": asked.schema,
        "diff": asked.diff,
        "told": [*asked.told],
        "shown": approval_text(asked),
    }
    return data_chunk("question", about, id=id)


def data_chunk(name: str, data: JsonValue, *, id: str | None = None, transient: bool = False) -> Chunk:
    """What the protocol has no word for."""
    chunk: Chunk = {"type": f"data-{name}", "data": data}
    if id is not None:
        chunk["id"] = id
    if transient:
        chunk["transient"] = True
    return chunk


def usage_data(usage: Usage) -> JsonValue:
    return {key: value for key, value in asdict(usage).items() if value is not None}
