"""A message: its author, its place in the tree, and its parts."""

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

# The parts a message is made of: one closed union, distinguished by `type`.


Json: TypeAlias = JsonValue
Arguments: TypeAlias = dict[str, JsonValue]


class CallState(StrEnum):
    """Where a call is. Everything from COMPLETED on is settled: it has its one result."""

    PENDING = "pending"  # its arguments arrive, or nothing has been decided yet
    ASKED = "asked"  # a person is asked whether it may run
    RUNNING = "running"  # it runs, here or in a client
    REVIEWING = "reviewing"  # it ran, and a person is asked whether the model may see the result
    COMPLETED = "completed"
    FAILED = "failed"
    REJECTED = "rejected"  # by a person or by a rule: it did not run
    WITHHELD = "withheld"  # it ran, and the model may not see the result
    SKIPPED = "skipped"  # a limit was reached: it did not run
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"  # the process died while it ran: nobody knows how far it got

    @property
    def settled(self) -> bool:
        return self not in UNSETTLED


UNSETTLED = frozenset({CallState.PENDING, CallState.ASKED, CallState.RUNNING, CallState.REVIEWING})


@dataclass(slots=True, frozen=True)
class Citation:
    """A source that a text names: an address, a file of the provider's, or a passage of an attachment.

    `start` and `end` count characters of the text that rests on it, where the provider says which.
    """

    url: str | None = None
    title: str | None = None
    quote: str | None = None  # the words of the source
    start: int | None = None
    end: int | None = None
    opaque: Json = None  # the provider's own form of it, for wires that want it back


@dataclass(slots=True, frozen=True)
class Text:
    text: str
    citations: tuple[Citation, ...] = ()
    phase: str | None = None  # OpenAI's word for what the text is: `commentary` or `final_answer`
    type: Literal["text"] = "text"


@dataclass(slots=True, frozen=True)
class Reasoning:
    """What a model thought. `wire` and `opaque` say where it may be replayed, and with which bytes."""

    text: str
    signature: str | None = None
    wire: str | None = None
    model: str | None = None
    opaque: Json = None  # a provider's own block, to be sent back exactly as it came
    seconds: float | None = None
    field_name: str | None = None  # under which it came, where a protocol has several
    type: Literal["reasoning"] = "reasoning"


@dataclass(slots=True, frozen=True)
class ProviderItem:
    """Something of a provider's own in a reply: a search it made, code it ran, what came of that.

    It happened on the provider's side, so there is nothing to decide or to run here. `kind` is the provider's
    name for it, `text` a line for people, and `opaque` what is sent back, in its place, to the model it came
    from; no other is shown it.
    """

    kind: str
    text: str = ""
    wire: str | None = None
    model: str | None = None
    opaque: Json = None
    type: Literal["item"] = "item"


@dataclass(slots=True, frozen=True)
class File:
    """An image, a sound or a document: its bytes in the blob store (`blob`), or somewhere else (`url`).

    Of one that a model made, `made_by` is that model, and `signature` its provider's mark, to be sent back
    with it to that model alone.
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
    """What came of a call. `text` is what the model reads; `value` is the JSON it was made from, if any.

    `blob` holds the whole output where `text` is only its head and tail.
    """

    text: str
    value: Json = None
    title: str | None = None
    metadata: dict[str, JsonValue] = field(default_factory=dict)
    attachments: tuple[File, ...] = ()
    blob: str | None = None
    note: str | None = None  # for the model, beside the text: edited arguments, an edited result
    said: SaidFields = field(default=None, compare=False)


def result_instead(before: ToolResult | None, text: str) -> ToolResult:
    """What a person wrote: JSON where the result before it was, for a program that waits for a value."""
    if before is not None and before.value is not None:
        try:
            return ToolResult(text, json.loads(text))
        except ValueError:
            pass
    return ToolResult(text)


@dataclass(slots=True, frozen=True)
class MadeIn:
    """The place in a program where it makes a call: of which call, in which line, as its how manieth."""

    call: str
    line: int
    number: int


@dataclass(slots=True, frozen=True)
class ToolCall:
    """A call, its state and its result, together: a settled call without a result cannot be written."""

    id: str
    tool: str
    arguments: Arguments = field(default_factory=dict)
    raw: str | None = None  # the argument text as it came, only where it is not the arguments' JSON
    state: CallState = CallState.PENDING
    result: ToolResult | None = None
    provider_id: str | None = None
    signature: str | None = None  # a provider's mark on the call, to be sent back as it came
    signed_by: str | None = None  # the model whose mark that is: no other knows it
    original: Arguments | None = None  # what the model asked for, where a person or plugin changed it
    format: str | None = field(default=None, compare=False)  # it is written in; "": native; None: unknown
    guessed: bool = False  # the model is not known to write that format
    started: float | None = None
    ended: float | None = None
    made_in: MadeIn | None = None  # the program that made it; None: the model did
    type: Literal["call"] = "call"

    def __post_init__(self) -> None:
        if self.state.settled and self.result is None:
            raise ValueError(f"call {self.id} is {self.state} but has no result")

    @property
    def asked_for(self) -> Arguments:
        """What the model wanted, whatever a person or a plugin made of it."""
        return self.arguments if self.original is None else self.original

    @property
    def is_text(self) -> bool:
        """Whether it only looked like a call: a guess that was turned down (D7)."""
        return self.guessed and self.state is CallState.REJECTED

    @property
    def hash(self) -> str:
        """The fingerprint an approval is bound to."""
        return arguments_hash(self.tool, self.arguments)


@dataclass(slots=True, frozen=True)
class Summary:
    """Takes the place of everything before `keeps_from` when a request is built. The originals stay."""

    text: str
    keeps_from: str | None  # the first message that is still sent as it is; None: nothing before this one
    type: Literal["summary"] = "summary"


@dataclass(slots=True, frozen=True)
class Error(Spoken):
    """Marks a reply that broke off, and says why. Never sent to a model."""

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
    """One spelling for equal JSON values."""
    return _CANONICAL.encode(value)


def json_text(value: Json) -> str:
    """The JSON of a value with its keys as they come, for where nothing is compared: far quicker."""
    try:
        return to_json(value).decode()
    except ValueError:  # half a character
        return canonical(value)


def arguments_hash(tool: str, arguments: Arguments) -> str:
    text = f"{tool}\0{canonical(arguments)}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[
        :32
    ]  # JSON may hold half a character


Role: TypeAlias = Literal["user", "assistant"]

# Items of a provider's own that are an answer: pictures and sounds that the model made.
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
    author: str | None = None  # the plugin that appended it; None for the person and the model
    model: str | None = None
    finish: str | None = None  # how the reply ended: a word of `messages/endings.py`
    usage: Usage | None = None
    created: float = 0.0
    metadata: dict[str, JsonValue] = field(default_factory=dict)
    inner: tuple[ToolCall, ...] = ()  # calls that programs among its calls made: no part of the reply
    by: str | None = None  # the user who sent it; a text without any right

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
        """Those of the reply, then those that its programs made."""
        return (*self.calls, *self.inner) if self.inner else self.calls

    @property
    def files(self) -> tuple[File, ...]:
        return tuple(part for part in self.parts if isinstance(part, File))

    @property
    def answers(self) -> bool:
        """Whether there is anything in it for a person, or for us to do."""
        made = any(isinstance(part, ProviderItem) and part.kind in MADE_ITEMS for part in self.parts)
        return bool(self.text.strip() or self.calls or self.files or made)

    @property
    def says_nothing(self) -> bool:
        """True for placeholders and bare errors: there is nothing in it that a model could be sent."""
        return all(
            isinstance(part, Error) or (isinstance(part, Text) and not part.text) for part in self.parts
        )


# A file that lies at a provider, and how it is known there.


@dataclass(slots=True, frozen=True)
class ProviderFile:
    """One blob, uploaded to one account."""

    account: str  # whose it is: a provider's name, and a fingerprint of the address and the key
    blob: str
    id: str
    expires: float | None = None  # when the provider deletes it; None where it stays until somebody does
