"""Convert files for Converse: by their format, with their bytes. Documents have names, too."""

from __future__ import annotations

import re

from dragoman.messages.media import is_text, media_type
from dragoman.messages.message import File
from dragoman.wire.bedrock_converse.shapes import Block
from dragoman.wire.files import file_parts as files
from dragoman.wire.files.file_parts import Attachments

_OFFICE = "application/vnd.openxmlformats-officedocument"

# For each media type, the kind of block that contains it, and its format's name there.
FORMATS: dict[str, tuple[str, str]] = {
    **{f"image/{name}": ("image", name) for name in ("png", "jpeg", "gif", "webp")},
    "application/pdf": ("document", "pdf"),
    "application/msword": ("document", "doc"),
    f"{_OFFICE}.wordprocessingml.document": ("document", "docx"),
    "application/vnd.ms-excel": ("document", "xls"),
    f"{_OFFICE}.spreadsheetml.sheet": ("document", "xlsx"),
    "video/mp4": ("video", "mp4"),
    "video/quicktime": ("video", "mov"),
    "video/mov": ("video", "mov"),
    "video/x-matroska": ("video", "mkv"),
    "video/webm": ("video", "webm"),
    "video/x-flv": ("video", "flv"),
    "video/mpeg": ("video", "mpeg"),
    "video/x-ms-wmv": ("video", "wmv"),
    "video/3gpp": ("video", "three_gp"),
    "audio/mpeg": ("audio", "mp3"),
    "audio/wav": ("audio", "wav"),
    "audio/opus": ("audio", "opus"),
    "audio/aac": ("audio", "aac"),
    "audio/flac": ("audio", "flac"),
    "audio/x-flac": ("audio", "flac"),
    "audio/ogg": ("audio", "ogg"),
    "audio/mp4": ("audio", "m4a"),
    "audio/m4a": ("audio", "m4a"),
    "audio/x-m4a": ("audio", "m4a"),
    "audio/webm": ("audio", "webm"),
}

_NO_NAME = re.compile(r"[^A-Za-z0-9\s()\[\]-]")  # characters that a document's name cannot contain
LONGEST_NAME = 180


def carries(file: File) -> bool:
    return media_type(file) in FORMATS or is_text(file)


class FileBlocks:
    """The files of one request as blocks. No two of its documents can have the same name."""

    def __init__(self, attachments: Attachments) -> None:
        self._attachments = attachments
        self._names: set[str] = set()

    def block(self, file: File) -> Block:
        """Return the file as a block with its bytes, or as text if it has only a URL."""
        kind, format = FORMATS.get(media_type(file), (None, ""))
        data = files.base64_of(file, self._attachments) if kind else None
        if kind is None or not data:
            return {"text": files.text_of(file, self._attachments)}
        block: Block = {"format": format, "source": {"bytes": data}}
        if kind == "document":
            block["name"] = self._name(file.name or "document")
        return {kind: block}

    def _name(self, given: str) -> str:
        plain = " ".join(_NO_NAME.sub("-", given).split())[:LONGEST_NAME].strip() or "document"
        name, count = plain, 1
        while name in self._names:
            count += 1
            name = f"{plain} ({count})"
        self._names.add(name)
        return name
