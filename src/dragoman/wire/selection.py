"""What a model that does not talk is sent of a conversation: the last thing that was said, and its files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile

from dragoman.messages.media import Modality, is_text, modality
from dragoman.messages.parts import File, Part, Text, ToolCall
from dragoman.messages.request import Request, RequestMessage
from dragoman.wire.files import Attachments, text_of
from dragoman.wire.lowering import result_files


def select(request: Request, kind: Modality | None, *, reuse: bool = False) -> Request:
    """The request with one message: the words that were said last, and the files of this kind with them. With
    `reuse`, where there are none, those that came last before."""
    said = last_said(request.messages)
    chosen = [part for part in said if isinstance(part, Text) or is_kind(part, kind) or is_kind(part, "text")]
    if reuse and not any(is_kind(part, kind) for part in said):
        chosen += latest_files((message.parts for message in reversed(request.messages)), kind)
    return replace(request, messages=(RequestMessage("user", tuple(chosen)),))


def last_said(messages: Sequence[RequestMessage]) -> list[Part]:
    """What a person has said since the last answer."""
    behind = list(takewhile(lambda message: message.role == "user", reversed(messages)))
    return [part for message in reversed(behind) for part in message.parts]


def latest_files(messages: Iterable[Sequence[Part]], kind: Modality | None) -> list[File]:
    """The files of this kind in the first of these messages that has some, results of calls included."""
    for parts in messages:
        brought = [
            file
            for part in parts
            for file in (result_files(part) if isinstance(part, ToolCall) else (part,))
            if isinstance(file, File) and modality(file) == kind
        ]
        if brought:
            return brought
    return []


def is_kind(part: Part, kind: Modality | None) -> bool:
    return isinstance(part, File) and modality(part) == kind


def prompt_of(request: Request, attachments: Attachments) -> str:
    """The words of a selected request, those of text files included."""
    (message,) = request.messages
    texts = [
        part.text
        if isinstance(part, Text)
        else text_of(part, attachments).partition("\n")[2]  # without the line that names the file
        for part in message.parts
        if isinstance(part, Text) or (isinstance(part, File) and is_text(part))
    ]
    return "\n\n".join(text.strip() for text in texts if text.strip())


def files_in(request: Request, kind: Modality) -> list[File]:
    (message,) = request.messages
    return [part for part in message.parts if isinstance(part, File) and modality(part) == kind]
