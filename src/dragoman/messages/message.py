"""Defines messages: their author, their position in the tree, and their parts."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, JsonValue
from pydantic_core import to_json

from dragoman.messages.usage import Usage
from dragoman.sentences import SaidFields, Spoken

# The parts of a message: one closed union, distinguished by `type`.


Json: TypeAlias = JsonValue
Arguments: TypeAlias = dict[str, JsonValue]


class CallState(StrEnum):
    """The state of a call. From COMPLETED on, a call is settled and has its one result."""

    PENDING = "pending"  # Its arguments are arriving, or no decision was made yet.
    ASKED = "asked"  # A user is asked whether it may run.
    RUNNING = "running"  # It runs here or in a client.
    REVIEWING = "reviewing"  # It ran, and a user is asked whether the model may see the result.
    COMPLETED = "completed"
    FAILED = "failed"
    REJECTED = "rejected"  # A user or a rule rejected it. It did not run.
    WITHHELD = "withheld"  # It ran, and the model must not see the result.
    SKIPPED = "skipped"  # A limit was reached. It did not run.
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"  # The process died while it ran. Its outcome is unknown.

    @property
    def settled(self) -> bool:
        return self not in UNSETTLED


UNSETTLED = frozenset({CallState.PENDING, CallState.ASKED, CallState.RUNNING, CallState.REVIEWING})


@dataclass(slots=True, frozen=True)
class Citation:
    """A source that a text names: a URL, a provider's file, or a passage of an attachment.

    `start` and `end` count characters of the text that relies on it, if the provider gives them.
    """

    url: str | None = None
    title: str | None = None
    quote: str | None = None  # text quoted from the source
    start: int | None = None
    end: int | None = None
    opaque: Json = None  # The provider's form of it, for wires that send it back.


@dataclass(slots=True, frozen=True)
class Text:
    text: str
    citations: tuple[Citation, ...] = ()
    phase: str | None = None  # OpenAI's type of the text: `commentary` or `final_answer`.
    type: Literal["text"] = "text"


@dataclass(slots=True, frozen=True)
class Reasoning:
    """The reasoning of a model. `wire` and `opaque` tell where it can be replayed, and with which bytes."""

    text: str
    signature: str | None = None
    wire: str | None = None
    model: str | None = None
    opaque: Json = None  # a provider's block, to be sent back unchanged
    seconds: float | None = None
    field_name: str | None = None  # the field it arrived in, if a protocol has several
    type: Literal["reasoning"] = "reasoning"


@dataclass(slots=True, frozen=True)
class ProviderItem:
    """A provider-specific item of a reply: a search, executed code, or a result.

    It happened on the provider's side, so Dragoman has nothing to decide or run. `kind` is the provider's
    name for it, and `text` is a line for users. `opaque` is sent back in its position, only to the model it
    came from.
    """

    kind: str
    text: str = ""
    wire: str | None = None
    model: str | None = None
    opaque: Json = None
    type: Literal["item"] = "item"


@dataclass(slots=True, frozen=True)
class File:
    """An image, audio or a document, with its bytes in the blob store (`blob`) or elsewhere (`url`).

    `made_by` is the model that made the file, if any. `signature` is its provider's mark, sent back with the
    file to that model only.
    """

    media_type: str
    blob: str | None = None
    url: str | None = None
    name: str | None = None
    size: int | None = None
    made_by: str | None = None
    signature: str | None = None
    type: Literal["file"] = "file"


@dataclass(slots=True, frozen=True)
class ToolResult(Spoken):
    """The result of a call. The model reads `text`. `value` is the JSON it was made from, if any.

    `blob` holds the whole output if `text` contains only its start and end.
    """

    text: str
    value: Json = None
    title: str | None = None
    metadata: dict[str, JsonValue] = field(default_factory=dict)
    attachments: tuple[File, ...] = ()
    blob: str | None = None
    # A note for the model in addition to the text: edited arguments, an edited result.
    note: str | None = None
    said: SaidFields = field(default=None, compare=False)


def result_instead(before: ToolResult | None, text: str) -> ToolResult:
    """Return a user-written result. It is parsed as JSON if the original was JSON, for a program that needs a
    value."""
    if before is not None and before.value is not None:
        try:
            return ToolResult(text, json.loads(text))
        except ValueError:
            pass
    return ToolResult(text)


@dataclass(slots=True, frozen=True)
class MadeIn:
    """The position in a program that makes a call: the program's call, the line, and the number of
    the call."""

    call: str
    line: int
    number: int


@dataclass(slots=True, frozen=True)
class ToolCall:
    """A call with its state and its result. A settled call without a result cannot be built."""

    id: str
    tool: str
    arguments: Arguments = field(default_factory=dict)
    raw: str | None = None  # The received argument text, if it differs from the JSON of the arguments.
    state: CallState = CallState.PENDING
    result: ToolResult | None = None
    provider_id: str | None = None
    signature: str | None = None  # a provider's mark on the call, to be sent back unchanged
    signed_by: str | None = None  # The model that the mark belongs to. Other models do not know it.
    original: Arguments | None = None  # the model's arguments, if a user or plugin changed them
    format: str | None = field(default=None, compare=False)  # Its text format. "": native. None: unknown.
    guessed: bool = False  # The model is not known to write that format.
    started: float | None = None
    ended: float | None = None
    made_in: MadeIn | None = None  # The program that made it. None: the model made it.
    type: Literal["call"] = "call"

    def __post_init__(self) -> None:
        if self.state.settled and self.result is None:
            raise ValueError(f"call {self.id} is {self.state} but has no result")

    @property
    def asked_for(self) -> Arguments:
        """Return the arguments that the model requested, whatever a user or a plugin changed."""
        return self.arguments if self.original is None else self.original

    @property
    def is_text(self) -> bool:
        """Return whether it only looked like a call: a rejected guess (D7)."""
        return self.guessed and self.state is CallState.REJECTED

    @property
    def hash(self) -> str:
        """Return the fingerprint that an approval is bound to."""
        return arguments_hash(self.tool, self.arguments)


@dataclass(slots=True, frozen=True)
class Summary:
    """Replaces everything before `keeps_from` in a request. The originals stay."""

    text: str
    # The first message still sent unchanged. None: no message before this one is sent.
    keeps_from: str | None
    type: Literal["summary"] = "summary"


@dataclass(slots=True, frozen=True)
class Error(Spoken):
    """Marks an interrupted reply with the reason. Never sent to a model."""

    message: str
    kind: str = "error"
    retryable: bool = False
    type: Literal["error"] = "error"
    said: SaidFields = field(default=None, compare=False)


Part: TypeAlias = Annotated[
    Text | Reasoning | ToolCall | ProviderItem | File | Summary | Error, Field(discriminator="type")
]


_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def canonical(value: Json) -> str:
    """Return one spelling for equal JSON values."""
    return _CANONICAL.encode(value)


def json_text(value: Json) -> str:
    """Return JSON with the keys in their order, which is much faster if nothing is compared."""
    try:
        return to_json(value).decode()
    except ValueError:  # a lone surrogate
        return canonical(value)


def arguments_hash(tool: str, arguments: Arguments) -> str:
    text = f"{tool}\0{canonical(arguments)}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[
        :32
    ]  # JSON can contain a lone surrogate.


Role: TypeAlias = Literal["user", "assistant"]

# Provider-specific items that are an answer: images and audio that the model made.
MADE_ITEMS = frozenset({"inlineData", "fileData", "image_generation_call"})


@dataclass(slots=True, frozen=True)
class Message:
    """One message of a conversation's tree. An assistant's message is one model reply."""

    id: str
    conversation: str
    parent: str | None
    role: Role
    parts: tuple[Part, ...]
    turn: str | None = None
    author: str | None = None  # The plugin that appended it. None for users and models.
    model: str | None = None
    finish: str | None = None  # The end of the reply: a word of `messages/endings.py`.
    usage: Usage | None = None
    created: float = 0.0
    metadata: dict[str, JsonValue] = field(default_factory=dict)
    # Calls made by programs among its calls, which are not part of the reply.
    inner: tuple[ToolCall, ...] = ()
    by: str | None = None  # The user who sent it. The name alone grants no rights.

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def reasoning(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Reasoning))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def all_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls of the reply, then those that its programs made."""
        return (*self.calls, *self.inner) if self.inner else self.calls

    @property
    def files(self) -> tuple[File, ...]:
        return tuple(part for part in self.parts if isinstance(part, File))

    @property
    def answers(self) -> bool:
        """Return whether it contains anything for the user, or calls to run."""
        made = any(isinstance(part, ProviderItem) and part.kind in MADE_ITEMS for part in self.parts)
        return bool(self.text.strip() or self.calls or self.files or made)

    @property
    def says_nothing(self) -> bool:
        """Return whether it has nothing to send to a model, as for placeholders and bare errors."""
        return all(
            isinstance(part, Error) or (isinstance(part, Text) and not part.text) for part in self.parts
        )


# A file stored by a provider, and its ID there.


@dataclass(slots=True, frozen=True)
class ProviderFile:
    """One blob, uploaded to one account."""

    account: str  # the provider's name, and a fingerprint of the URL and the key
    blob: str
    id: str
    # The time when the provider deletes it. None if it stays until it is deleted explicitly.
    expires: float | None = None
