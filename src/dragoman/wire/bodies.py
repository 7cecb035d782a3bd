"""Bodies as bytes: large ones in pieces, so that a thread that writes one does not stop all others."""

from __future__ import annotations

import io
import re
import secrets
from collections.abc import Iterator
from typing import TypeAlias

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError, to_json

from dragoman.messages.parts import File, Part, Reasoning, Text, ToolCall
from dragoman.messages.request import Request
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


def write_large(body: Body) -> bytes:
    """The same bytes, with long texts written apart from the rest: one call would hold up every thread."""
    texts: list[str] = []
    mark = secrets.token_hex(16)

    def set_apart(value: JsonValue) -> JsonValue:
        match value:
            case str() if len(value) > PIECE:
                texts.append(value)
                return f"{mark}{len(texts) - 1}"
            case dict():
                return {name: set_apart(one) for name, one in value.items()}
            case list():
                return [set_apart(one) for one in value]
            case _:
                return value

    around = write({name: set_apart(value) for name, value in body.items()})
    first, *others = re.split(rf'"{mark}(\d+)"'.encode(), around)
    out = io.BytesIO()  # one `join` of all would hold up every thread, and need the memory twice
    out.write(first)
    for number, rest in zip(others[::2], others[1::2], strict=True):
        out.write(b'"')
        out.writelines(_written(texts[int(number)]))
        out.write(b'"' + rest)
    return out.getvalue()


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
