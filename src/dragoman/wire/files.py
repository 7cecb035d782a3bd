"""The files of a request as bodies carry them. Pure: `wire/attachments.py` reads the bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dragoman.errors import ConfigError
from dragoman.messages.parts import File, ToolCall
from dragoman.messages.request import Request
from dragoman.wire.lowering import result_files


@dataclass(slots=True, frozen=True)
class Attachments:
    """The blobs of one request, coded: text files as text, all others as base64."""

    base64: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(map(len, self.base64.values())) + sum(map(len, self.texts.values()))


NO_ATTACHMENTS = Attachments()


def blobs_of(request: Request) -> Iterator[File]:
    """The files that a request may carry and whose bytes are ours."""
    for message in request.messages:
        for part in message.parts:
            for file in result_files(part) if isinstance(part, ToolCall) else (part,):
                if isinstance(file, File) and file.blob is not None:
                    yield file


def kind(file: File) -> str:
    """`image`, `audio`, `video`, `text`, or `application` for documents."""
    return file.media_type.partition("/")[0]


def base64_of(file: File, attachments: Attachments) -> str | None:
    """The bytes, written as base64; None where there is only an address."""
    if file.blob is not None:
        return _coded(file.blob, attachments.base64)
    if file.url is not None and file.url.startswith("data:") and ";base64," in file.url[:200]:
        return file.url.partition(",")[2]
    return None


def address_of(file: File, attachments: Attachments) -> str:
    """An address that holds the file, or where it can be fetched."""
    if file.blob is None:
        return file.url or ""
    return f"data:{file.media_type};base64,{base64_of(file, attachments)}"


def text_of(file: File, attachments: Attachments) -> str:
    """A text file as the text it is, any other as the fact that it is there."""
    name = file.name or "a file"
    if kind(file) == "text" and file.blob is not None:
        return f"[{name}]\n{_coded(file.blob, attachments.texts)}"
    where = f" at {file.url}" if file.url and not file.url.startswith("data:") else ""
    return f"[{name}, {file.media_type}{where}, cannot be shown here]"


def _coded(blob: str, coded: Mapping[str, str]) -> str:
    if blob not in coded:
        raise ConfigError(f"blob {blob} is to be sent, but nobody has read it")
    return coded[blob]
