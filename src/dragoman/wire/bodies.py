"""Bodies as bytes: large ones in parts, so that a thread that writes one does not stop all others, and files
between them, which are read when they are sent."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError, to_json

from dragoman.messages.message import File, Part, Reasoning, Text, ToolCall
from dragoman.messages.request import Request
from dragoman.wire.payload import FileContent, InBase64, Payload, PayloadPart
from dragoman.wire.surrogates import join_all, join_halves

LARGE = 1 << 20  # characters
PIECE = 1 << 18  # characters of a long text that are written at once: a thread gives way between two of them

Body: TypeAlias = dict[str, JsonValue]


def write(body: Body) -> bytes:
    """A body as JSON."""
    try:
        return to_json(body, inf_nan_mode="null")
    except PydanticSerializationError:  # half a character somewhere in the history
        return to_json(join_all(body), inf_nan_mode="null")


def write_large(body: Body, files: Mapping[str, FileContent] | None = None) -> Payload:
    """The same, with long texts written apart from the rest: one call would hold up every thread. `files` are
    those whose placeholders stand in the body, in place of their base64."""
    files = files or {}
    texts: list[str] = []
    mark = secrets.token_hex(16)

    def set_apart(value: JsonValue) -> JsonValue:
        match value:
            case str() if len(value) > PIECE:
                texts.append(value)
                return f"{mark}{len(texts) - 1}@"
            case dict():
                return {name: set_apart(one) for name, one in value.items()}
            case list():
                return [set_apart(one) for one in value]
            case _:
                return value

    around = write({name: set_apart(value) for name, value in body.items()})
    first, *others = re.split(f"({'|'.join([mark, *files])})(?:(\\d+)@)?".encode(), around)
    parts: list[PayloadPart] = [first]
    for name, number, rest in zip(others[::3], others[1::3], others[2::3], strict=True):
        if number is None:
            parts.append(InBase64(files[name.decode()]))
        else:
            parts += _written(texts[int(number)])
        parts.append(rest)
    return Payload(parts)


def is_large(request: Request) -> bool:
    """Whether the texts and addresses in it are so long that writing them takes a while."""
    return sum(_size(part) for message in request.messages for part in message.parts) > LARGE


def _size(part: Part) -> int:
    if isinstance(part, Text | Reasoning):
        return len(part.text)
    if isinstance(part, ToolCall):
        return len(part.result.text) if part.result is not None else 0
    return len(part.url or "") if isinstance(part, File) else 0


def _written(text: str) -> Iterator[bytes]:
    text = join_halves(text)
    for at in range(0, len(text), PIECE):
        yield to_json(text[at : at + PIECE])[1:-1]
