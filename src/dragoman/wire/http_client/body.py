"""Write bodies as bytes: large ones in chunks, so that the writing thread does not block all others, with
files in between, which are read while they are sent."""

from __future__ import annotations

import re
import secrets
from binascii import a2b_base64
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError, to_json

from dragoman.messages.message import File, Part, Reasoning, Text, ToolCall, canonical
from dragoman.messages.request import Request
from dragoman.wire.http_client.payload import FileContent, InBase64, Payload, PayloadPart
from dragoman.wire.prose import join_all, join_halves

LARGE = 1 << 20  # characters
PIECE = 1 << 18  # characters of a long string written in one step: the thread yields between two of them

Body: TypeAlias = dict[str, JsonValue]


def write(body: Body) -> bytes:
    """Return a body as JSON."""
    try:
        return to_json(body, inf_nan_mode="null")
    except PydanticSerializationError:  # a lone surrogate somewhere in the history
        return to_json(join_all(body), inf_nan_mode="null")


def write_large(body: Body, files: Mapping[str, FileContent] | None = None) -> Payload:
    """Return a body as JSON, with long strings written separately: writing all in one call would block every
    thread.

    `files` are those whose placeholders the body contains, in place of their base64.
    """
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
    """Return whether its texts and URLs are so long that writing them takes a while."""
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


# Write bodies that are forms (`multipart/form-data`), for file uploads. Large files are read while they are
# sent.


_HERE = "@"  # a placeholder: base64 does not contain this character


def form_file(name: str, media_type: str, base64: str) -> Body:
    """Return a file in the form in which a body contains it until it is written."""
    return {"filename": name, "media_type": media_type, "base64": base64}


def write_form(body: Body, files: Mapping[str, FileContent] | None = None) -> tuple[Payload, str]:
    """Return a form and its content type. A list becomes a repeated field.

    `files` are those whose placeholders the body contains, in place of their base64.
    """
    boundary = f"dragoman-{secrets.token_hex(16)}"
    parts: list[PayloadPart] = []
    for name, value in body.items():
        for one in value if isinstance(value, list) else (value,):
            parts += [f"--{boundary}\r\n".encode(), *_field(name, one, files or {}), b"\r\n"]
    parts.append(f"--{boundary}--\r\n".encode())
    return Payload(parts), f"multipart/form-data; boundary={boundary}"


def write_upload(
    fields: Mapping[str, str], name: str, media_type: str, content: FileContent
) -> tuple[Payload, str]:
    """Return a form for one file, after these fields."""
    return write_form({**fields, "file": form_file(name, media_type, _HERE)}, {_HERE: content})


def write_related(about: Body, media_type: str, content: FileContent) -> tuple[Payload, str]:
    """Return one file after a description of it (`multipart/related`), as Google requires."""
    boundary = f"dragoman-{secrets.token_hex(16)}"
    head = f"--{boundary}\r\nContent-Type: application/json\r\n\r\n{canonical(about)}\r\n"
    head += f"--{boundary}\r\nContent-Type: {_quoted(media_type)}\r\n\r\n"
    end = f"\r\n--{boundary}--\r\n"
    return Payload([head.encode(), content, end.encode()]), f"multipart/related; boundary={boundary}"


def _field(name: str, value: JsonValue, files: Mapping[str, FileContent]) -> Iterator[PayloadPart]:
    disposition = f'Content-Disposition: form-data; name="{_quoted(name)}"'
    match value:
        case {"filename": str(filename), "media_type": str(media_type), "base64": str(base64)}:
            head = f'{disposition}; filename="{_quoted(filename)}"\r\nContent-Type: {_quoted(media_type)}'
            yield f"{head}\r\n\r\n".encode()
            yield files[base64] if base64 in files else a2b_base64(base64)
        case str():
            yield f"{disposition}\r\n\r\n{value}".encode("utf-8", "replace")
        case _:
            yield f"{disposition}\r\n\r\n{canonical(value)}".encode("utf-8", "replace")


def _quoted(text: str) -> str:
    """Escape a text for a header line of a form."""
    return text.replace('"', "%22").replace("\r", " ").replace("\n", " ")
