"""Writes bodies that are forms (`multipart/form-data`), as files are uploaded. Large files are read when they
are sent."""

from __future__ import annotations

import secrets
from binascii import a2b_base64
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.messages.message import canonical
from dragoman.wire.payload import FileContent, Payload, PayloadPart

Body: TypeAlias = dict[str, JsonValue]

_HERE = "@"  # a placeholder: no base64 has this letter


def form_file(name: str, media_type: str, base64: str) -> Body:
    """A file, as a body holds it until it is written."""
    return {"filename": name, "media_type": media_type, "base64": base64}


def write_form(body: Body, files: Mapping[str, FileContent] | None = None) -> tuple[Payload, str]:
    """A form, and its type. A list is a field that comes several times. `files` are those whose placeholders
    stand in the body, in place of their base64."""
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
    """The same for one file, after these fields."""
    return write_form({**fields, "file": form_file(name, media_type, _HERE)}, {_HERE: content})


def write_related(about: Body, media_type: str, content: FileContent) -> tuple[Payload, str]:
    """One file after a description of it (`multipart/related`), as Google takes them."""
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
    """What a line of a form can hold."""
    return text.replace('"', "%22").replace("\r", " ").replace("\n", " ")
