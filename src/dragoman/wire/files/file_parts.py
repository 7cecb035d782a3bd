"""Represent the files of a request in bodies. Pure: `wire/files/attachments.py` reads the bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from dragoman.errors import ConfigError
from dragoman.messages.media import in_words, is_media_type, is_text, media_type, parse_data_url, text_inside
from dragoman.messages.message import File, Part, Text, ToolCall
from dragoman.messages.request import Request, RequestMessage
from dragoman.sentences import sentence
from dragoman.wire.http_client.payload import FileContent
from dragoman.wire.lowering import result_files


@dataclass(slots=True, frozen=True)
class Attachments:
    """The encoded blobs of one request: text files as text, all others as base64 or as an ID.

    For a larger file, `base64` has a placeholder, and `contents` has what is sent in its place.
    """

    base64: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)  # of uploaded files, at the provider
    contents: Mapping[str, FileContent] = field(default_factory=dict)  # by their placeholders

    @property
    def size(self) -> int:
        """The number of characters in the body itself."""
        return sum(map(len, self.base64.values())) + sum(map(len, self.texts.values()))


NO_ATTACHMENTS = Attachments()


def files_of(request: Request) -> Iterator[File]:
    """Yield the files that a request can carry."""
    for message in request.messages:
        for part in message.parts:
            for file in result_files(part) if isinstance(part, ToolCall) else (part,):
                if isinstance(file, File):
                    yield file


def file_at(address: str, number: int = 1) -> File | None:
    """Return an image that a model made, from a data URL or its address. None for neither."""
    found = parse_data_url(address)
    if found is None and not address.startswith(("http://", "https://")):
        return None
    if found is not None and not is_media_type(found.media_type):
        return None
    type = found.media_type if found is not None else "image/png"
    return File(type, url=address, name=f"{type.partition('/')[0]}-{number}.{type.partition('/')[2]}")


def is_there(file: File) -> bool:
    """Return whether there is anything to send."""
    return bool(file.blob or file.url)


def base64_of(file: File, attachments: Attachments) -> str | None:
    """Return the bytes as base64. None if there is only a URL."""
    if file.blob is not None:
        return _coded(file.blob, attachments.base64)
    if file.url is not None and (inside := parse_data_url(file.url)) is not None and inside.base64:
        return file.url[inside.begins :]
    return None


def id_of(file: File, attachments: Attachments) -> str | None:
    """Return the provider's ID of a file that was uploaded to it."""
    return attachments.ids.get(file.blob) if file.blob is not None else None


def address_of(file: File, attachments: Attachments) -> str:
    """Return a data URL with the file, or the URL from which it can be downloaded."""
    if file.blob is None:
        return file.url or ""
    return f"data:{media_type(file)};base64,{base64_of(file, attachments)}"


def text_of(file: File, attachments: Attachments) -> str:
    """Return a text file as its text, and any other file as a note that it exists."""
    text: str | None = None
    if is_text(file):
        text = _coded(file.blob, attachments.texts) if file.blob is not None else text_inside(file.url or "")
    return in_words(file) if text is None else f"[{file.name or 'a file'}]\n{text}"


def beyond_room(request: Request, room: int, weight: Callable[[File], int]) -> set[str]:
    """Return the blobs that no longer fit into a request. The newest are kept, as long as there is room."""
    kept: set[str] = set()
    left: set[str] = set()
    for file in reversed([*files_of(request)]):
        if file.blob is None or file.blob in kept or file.blob in left:
            continue
        if (size := weight(file)) <= room:
            room -= size
            kept.add(file.blob)
        else:
            left.add(file.blob)
    return left


# ── files that a model cannot take ────────────────────────────────────────────────────────────────


def without_files(request: Request, cannot_take: Callable[[File], bool], why: str) -> Request:
    """Return the request with a line of text in place of each file that the model cannot take."""
    if not any(cannot_take(file) for file in files_of(request)):
        return request

    def readable(part: Part) -> Part:
        if isinstance(part, File) and cannot_take(part):
            return Text(in_words(part, why))
        if isinstance(part, ToolCall) and part.result is not None:
            left_out = [file for file in part.result.attachments if cannot_take(file)]
            if left_out:
                remaining = tuple(file for file in part.result.attachments if file not in left_out)
                lines = "\n".join(in_words(file, why) for file in left_out)
                note = f"{part.result.note}\n{lines}" if part.result.note else lines
                return replace(part, result=replace(part.result, attachments=remaining, note=note))
        return part

    messages = (
        split
        for message in request.messages
        for split in _by_role(message, tuple(map(readable, message.parts)), cannot_take, why)
    )
    return replace(request, messages=tuple(messages))


def _by_role(
    message: RequestMessage, parts: tuple[Part, ...], cannot_take: Callable[[File], bool], why: str
) -> Iterator[RequestMessage]:
    """Yield the message, with notes on the files it made in a separate message after it.

    Models would imitate such notes if they were in the assistant's own words.
    """
    made = [part for part in message.parts if isinstance(part, File) and cannot_take(part)]
    if message.role == "user" or not made:
        yield RequestMessage(message.role, parts)
        return
    lines = "\n".join(in_words(file, why) for file in made)
    own = tuple(new for old, new in zip(message.parts, parts, strict=True) if old not in made)
    if own:
        yield RequestMessage(message.role, own)
    yield RequestMessage("user", (Text(f"[Made by the assistant]\n{lines}"),))


def _coded(blob: str, coded: Mapping[str, str]) -> str:
    if blob not in coded:
        raise ConfigError(sentence("blob.unread", blob=blob))
    return coded[blob]
