"""Writes bodies that are forms (`multipart/form-data`), as files are uploaded, with their bytes in them."""

from __future__ import annotations

import io
import secrets
from binascii import a2b_base64
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.messages.parts import canonical

Body: TypeAlias = dict[str, JsonValue]

_PIECE = 1 << 20  # characters of base64 that are read at once: a thread gives way between two of them


def form_file(name: str, media_type: str, base64: str) -> Body:
    """A file, as a body holds it until it is written."""
    return {"filename": name, "media_type": media_type, "base64": base64}


def write_form(body: Body) -> tuple[bytes, str]:
    """The bytes of a form, and its type. A list is a field that comes several times."""
    boundary = f"dragoman-{secrets.token_hex(16)}"
    out = io.BytesIO()
    for name, value in body.items():
        for one in value if isinstance(value, list) else (value,):
            out.write(f"--{boundary}\r\n".encode())
            out.writelines(_field(name, one))
            out.write(b"\r\n")
    out.write(f"--{boundary}--\r\n".encode())
    return out.getvalue(), f"multipart/form-data; boundary={boundary}"


def write_upload(fields: Mapping[str, str], name: str, media_type: str, data: bytes) -> tuple[bytes, str]:
    """The same for one file whose bytes are at hand, after these fields."""
    boundary = f"dragoman-{secrets.token_hex(16)}"
    head = b"".join(
        b"".join((f"--{boundary}\r\n".encode(), *_field(field, value), b"\r\n"))
        for field, value in fields.items()
    )
    disposition = f'Content-Disposition: form-data; name="file"; filename="{_quoted(name)}"'
    file = f"--{boundary}\r\n{disposition}\r\nContent-Type: {_quoted(media_type)}\r\n\r\n".encode()
    end = f"\r\n--{boundary}--\r\n".encode()
    out = io.BytesIO()
    out.write(head + file)
    out.writelines(data[at : at + _PIECE] for at in range(0, len(data), _PIECE))
    out.write(end)
    return out.getvalue(), f"multipart/form-data; boundary={boundary}"


def write_related(about: Body, media_type: str, data: bytes) -> tuple[bytes, str]:
    """One file after a description of it (`multipart/related`), as Google takes them."""
    boundary = f"dragoman-{secrets.token_hex(16)}"
    out = io.BytesIO()
    out.write(f"--{boundary}\r\nContent-Type: application/json\r\n\r\n{canonical(about)}\r\n".encode())
    out.write(f"--{boundary}\r\nContent-Type: {_quoted(media_type)}\r\n\r\n".encode())
    out.writelines(data[at : at + _PIECE] for at in range(0, len(data), _PIECE))
    out.write(f"\r\n--{boundary}--\r\n".encode())
    return out.getvalue(), f"multipart/related; boundary={boundary}"


def _field(name: str, value: JsonValue) -> Iterator[bytes]:
    disposition = f'Content-Disposition: form-data; name="{_quoted(name)}"'
    match value:
        case {"filename": str(filename), "media_type": str(media_type), "base64": str(base64)}:
            head = f'{disposition}; filename="{_quoted(filename)}"\r\nContent-Type: {_quoted(media_type)}'
            yield f"{head}\r\n\r\n".encode()
            for at in range(0, len(base64), _PIECE):
                yield a2b_base64(base64[at : at + _PIECE])
        case str():
            yield f"{disposition}\r\n\r\n{value}".encode("utf-8", "replace")
        case _:
            yield f"{disposition}\r\n\r\n{canonical(value)}".encode("utf-8", "replace")


def _quoted(text: str) -> str:
    """What a line of a form can hold."""
    return text.replace('"', "%22").replace("\r", " ").replace("\n", " ")
