"""What a person says, checked before it is stored."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from pydantic import JsonValue

from dragoman.errors import BadRequest
from dragoman.messages.boundary import check_fields, check_json, check_parts
from dragoman.messages.ids import new_id
from dragoman.messages.message import File, Message, Part, Text
from dragoman.sentences import sentence
from dragoman.store.codecs import MESSAGE


def user_message(
    conversation: str,
    said: str | Sequence[Part],
    parent: str | None,
    now: float,
    metadata: Mapping[str, JsonValue] | None = None,
) -> Message:
    """The message of it. BadRequest where nothing is said, or what cannot be kept."""
    parts = (Text(said),) if isinstance(said, str) else said_parts(said)
    for part in parts:
        check_json(asdict(part), "the message")
    given = dict(metadata or {})
    check_json(given, "the metadata of the message")
    message = Message(new_id("msg"), conversation, parent, "user", parts, created=now, metadata=given)
    if not isinstance(said, str):
        check_fields(MESSAGE, message, "the message")
    if not any(not isinstance(part, Text) or part.text.strip() for part in parts):
        raise BadRequest(sentence("message.blank"))
    check_parts(parts)
    if any(file.blob is None and file.url is None for file in message.files):
        raise BadRequest(sentence("message.empty_file"))
    return message


def with_contexts(said: str | Sequence[Part], contexts: Mapping[str, str]) -> str | Sequence[Part]:
    """What a person says, after texts by their titles: text files, which are shown and stored like
    attachments and sent before the text."""
    if not contexts:
        return said
    files = [
        File("text/plain", url=f"data:text/plain;base64,{b64encode(text.encode()).decode()}", name=title)
        for title, text in contexts.items()
    ]
    return [*files, *((Text(said),) if isinstance(said, str) else said)]


def said_parts(said: object) -> tuple[Text | File, ...]:
    """What a person says, where it is not a plain text."""
    parts = tuple(said) if isinstance(said, Sequence) else (said,)
    for part in parts:
        if not isinstance(part, Text | File):
            raise BadRequest(sentence("message.kind", part=part))
    return parts
