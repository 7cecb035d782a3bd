"""Builds the content of a read-only link from a list of visible fields, never by removing fields from the
whole.

It contains no ID of a blob, turn, call or conversation, and no user name. Likely secrets and the
conversation's private texts are hidden.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from dragoman.conversation.sharing import Omitted
from dragoman.conversation.tree import Conversation
from dragoman.messages.codec import Codec
from dragoman.messages.message import (
    CallState,
    Error,
    File,
    Message,
    Part,
    ProviderItem,
    Reasoning,
    Text,
    ToolCall,
)
from dragoman.redaction import HIDDEN, redact_text, redact_value, spellings

PartKind = Literal["text", "reasoning", "call", "file", "error"]


@dataclass(slots=True)
class SharedPart:
    """A part of a message.

    A call has `tool`, `state` and, unless omitted, `arguments` and its result as `text`. A file has `name`
    and `media_type`, without its bytes.
    """

    kind: PartKind
    text: str = ""
    tool: str | None = None
    state: str | None = None
    arguments: JsonValue = None
    name: str | None = None
    media_type: str | None = None


@dataclass(slots=True)
class SharedMessage:
    role: str
    parts: list[SharedPart]
    created: float
    model: str | None = None


@dataclass(slots=True)
class SharedConversation:
    """The branch that a conversation shows, or its beginning, for anyone who has the link."""

    title: str
    messages: list[SharedMessage]
    omits: list[str] = field(default_factory=list)
    frozen: bool = False  # The link keeps showing this, whatever changes later.


SHARED: Codec[SharedConversation] = Codec(SharedConversation)


def shown_to_anyone(
    conversation: Conversation,
    path: Sequence[Message],
    upto: str | None,
    omits: Collection[Omitted],
    *,
    frozen: bool = False,
) -> str:
    """Return the shared view as JSON. It is empty if the message named by `upto` is gone."""
    if upto is not None:
        ids = [message.id for message in path]
        path = path[: ids.index(upto) + 1] if upto in ids else ()
    private = conversation.settings.get("private")
    hidden = [str(one) for one in private.values()] if isinstance(private, dict) else []
    view = _View({spelling for one in hidden if one for spelling in spellings(one)}, omits)
    shown = SharedConversation(
        view.text(conversation.title or ""),
        [view.message(message) for message in path if message.author is None],
        sorted(omits),
        frozen,
    )
    return SHARED.dump(shown)


class _View:
    def __init__(self, hidden: Collection[str], omits: Collection[Omitted]) -> None:
        self._hidden = sorted(hidden, key=len, reverse=True)
        self._omits = omits

    def text(self, text: str) -> str:
        for one in self._hidden:
            text = text.replace(one, HIDDEN)
        return redact_text(str(text))

    def message(self, message: Message) -> SharedMessage:
        parts = [shown for part in _with_inner(message) for shown in self._parts(part)]
        return SharedMessage(message.role, parts, message.created, message.model)

    def _parts(self, part: Part) -> Iterator[SharedPart]:
        match part:
            case Text(text=text):
                yield SharedPart("text", self.text(text))
            case Reasoning(text=text) if "reasoning" not in self._omits:
                yield SharedPart("reasoning", self.text(text))
            case ToolCall():
                yield self._call(part)
                if part.result is not None and part.state is not CallState.WITHHELD:
                    yield from (self._file(file) for file in part.result.attachments if self._shows_files)
            case File() if self._shows_files:
                yield self._file(part)
            case ProviderItem(kind=kind, text=text):
                if "results" not in self._omits:
                    yield SharedPart("text", self.text(text or kind))
            case Error(message=text):
                yield SharedPart("error", self.text(text))

    @property
    def _shows_files(self) -> bool:
        return "files" not in self._omits

    def _call(self, call: ToolCall) -> SharedPart:
        shown = SharedPart("call", tool=call.tool, state=str(call.state))
        if "arguments" not in self._omits:
            shown.arguments = self._value(redact_value(call.arguments))
        seen = call.result is not None and call.state is not CallState.WITHHELD
        if seen and call.result is not None and "results" not in self._omits:
            shown.text = self.text(call.result.text)
        return shown

    def _value(self, value: JsonValue) -> JsonValue:
        match value:
            case str():
                return self.text(value)
            case list():
                return [self._value(one) for one in value]
            case dict():
                return {self.text(name): self._value(one) for name, one in value.items()}
            case _:
                return value

    def _file(self, file: File) -> SharedPart:
        return SharedPart("file", name=self.text(file.name or ""), media_type=file.media_type)


def _with_inner(message: Message) -> Iterator[Part]:
    """Yield the parts, with each program's inner calls after its own call."""
    for part in message.parts:
        yield part
        if isinstance(part, ToolCall):
            yield from (one for one in message.inner if one.made_in and one.made_in.call == part.id)
