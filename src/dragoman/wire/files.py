"""The bytes of file parts in the forms in which bodies carry them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TypeAlias

from dragoman.errors import ConfigError
from dragoman.messages.parts import File

Load: TypeAlias = Callable[[str], bytes]
"""Reads a blob. Encoders are pure: whoever has a blob store passes it in."""


def no_blobs(blob: str) -> bytes:
    raise ConfigError(f"blob {blob} is to be sent, but the wire was built without `load`")


def kind(file: File) -> str:
    """`image`, `audio`, `video`, `text`, or `application` for documents."""
    return file.media_type.partition("/")[0]


def base64_of(file: File, load: Load) -> str | None:
    """The bytes, written as base64; None where there is only an address."""
    if file.blob is not None:
        return base64.b64encode(load(file.blob)).decode()
    if file.url is not None and file.url.startswith("data:") and ";base64," in file.url[:200]:
        return file.url.partition(",")[2]
    return None


def address_of(file: File, load: Load) -> str:
    """An address that holds the file, or leads to it."""
    if file.blob is None:
        return file.url or ""
    return f"data:{file.media_type};base64,{base64_of(file, load)}"


def text_of(file: File, load: Load) -> str:
    """A text file as the text it is, any other as the fact that it is there."""
    name = file.name or "a file"
    if kind(file) == "text" and file.blob is not None:
        return f"[{name}]\n{load(file.blob).decode(errors='replace')}"
    where = f" at {file.url}" if file.url and not file.url.startswith("data:") else ""
    return f"[{name}, {file.media_type}{where}, cannot be shown here]"
