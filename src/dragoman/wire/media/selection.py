"""Select what a media model receives: the current message, and the files it works on (M1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile

from dragoman.messages.endings import REFUSED, WITHOUT_ANSWER
from dragoman.messages.media import WORKS_ON, Modality, ModelType, is_text, modality
from dragoman.messages.message import File, Message, Part, Text, ToolCall
from dragoman.messages.request import Request, RequestMessage
from dragoman.wire.files.file_parts import Attachments, text_of
from dragoman.wire.lowering import result_files

_UNANSWERED = REFUSED | WITHOUT_ANSWER | {"cancelled"}


# ── of a conversation ─────────────────────────────────────────────────────────────────────────────


def current_message(path: Sequence[Message], asked: str, type: ModelType) -> RequestMessage:
    """Return the message `asked` that a turn answers, with what the user has added since.

    If it has no file of the kind that the model works on, add the latest earlier one.
    """
    place = next((place for place, message in enumerate(path) if message.id == asked), 0)
    parts = [part for message in path[place:] if message.role == "user" for part in message.parts]
    kind = WORKS_ON.get(type)
    if kind is not None and not any(is_kind(part, kind) for part in parts):
        parts += latest_files(earlier_parts(path[:place]), kind)
    return RequestMessage("user", tuple(parts))


def earlier_parts(path: Sequence[Message]) -> list[tuple[Part, ...]]:
    """Return the parts of earlier messages, newest first.

    Cancelled, refused and failed answers are left out with their questions, so their files are not attached
    again.
    """
    found: list[tuple[Part, ...]] = []
    answered, newer = False, None
    for message in reversed(path):
        if message.role == "user":
            answered = answered and (newer is None or newer.role == "assistant" or newer.turn == message.turn)
        elif newer is None or newer.role == "user":  # The end of an answer has its outcome.
            answered = message.answers and message.finish not in _UNANSWERED
        if answered:
            found.append(message.parts)
        newer = message
    return found


def latest_files(messages: Iterable[Sequence[Part]], kind: Modality | None) -> list[File]:
    """Return the files of this kind in the first message that has some, including results of calls."""
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


# ── of a request ──────────────────────────────────────────────────────────────────────────────────


def select(request: Request, kind: Modality | None) -> Request:
    """Return the request with one message: its latest text, and the files of this kind with it."""
    chosen = [
        part
        for part in last_said(request.messages)
        if isinstance(part, Text) or is_kind(part, kind) or is_kind(part, "text")
    ]
    return replace(request, messages=(RequestMessage("user", tuple(chosen)),))


def last_said(messages: Sequence[RequestMessage]) -> list[Part]:
    """Return the user's latest parts. A turn makes one message of them. A plugin can add another."""
    behind = list(takewhile(lambda message: message.role == "user", reversed(messages)))
    return [part for message in reversed(behind) for part in message.parts]


def is_kind(part: Part, kind: Modality | None) -> bool:
    return isinstance(part, File) and modality(part) == kind


def prompt_of(request: Request, attachments: Attachments) -> str:
    """Return the text of a selected request, including text files."""
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
