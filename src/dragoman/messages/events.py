"""Defines the events of a running turn. Names are noun first, and events are numbered within their turn.

Decoders create the events of a reply (reasoning, text, call.input, message.end) without a number, and the
turn's log numbers them on publication. Events are not stored. Facts are (`turn/facts.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, JsonValue

from dragoman.messages.codec import Codec
from dragoman.messages.message import Arguments, CallState, Citation, File, MadeIn, Message, ToolResult
from dragoman.messages.usage import Usage
from dragoman.sentences import SaidFields, Spoken

# ── the turn ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class TurnStart:
    turn: str
    conversation: str
    message: str  # ID of the user's message
    resumed: bool = False
    seq: int = 0
    type: Literal["turn.start"] = "turn.start"


@dataclass(slots=True)
class TurnState:
    state: str
    seq: int = 0
    type: Literal["turn.state"] = "turn.state"


@dataclass(slots=True)
class TurnEnd(Spoken):
    state: str
    text: str
    usage: Usage
    error: str | None = None
    limit: str | None = None  # a description of the limit that was reached
    finish: str = ""  # The end of its last reply: a word of `messages/endings.py`.
    seq: int = 0
    type: Literal["turn.end"] = "turn.end"
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class StepStart:
    """A request is sent. If `attempt` is above 1, drop everything that you received of `message`."""

    step: int
    attempt: int
    message: str
    parent: str | None
    model: str
    seq: int = 0
    type: Literal["step.start"] = "step.start"


@dataclass(slots=True)
class StepRetry(Spoken):
    """The provider did not answer. Dragoman asks again after a wait, before anything of the reply arrived."""

    attempt: int  # number of the next attempt: 2 is the first repetition
    attempts: int  # Maximum number of attempts.
    seconds: float  # seconds until the next attempt
    reason: str
    status: int | None = None  # HTTP status of the provider's response, if any
    seq: int = 0
    type: Literal["step.retry"] = "step.retry"
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class StepModel(Spoken):
    """The next model of a chain gets the request, before anything of the reply arrived."""

    model: str
    reason: str = ""  # empty for the first model
    seq: int = 0
    type: Literal["step.model"] = "step.model"
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class StepEnd:
    step: int
    usage: Usage
    seq: int = 0
    type: Literal["step.end"] = "step.end"


@dataclass(slots=True)
class Notice(Spoken):
    """Information that needs no action."""

    text: str
    kind: str = "notice"
    seq: int = 0
    type: Literal["notice"] = "notice"
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class ErrorRaised(Spoken):
    message: str
    kind: str = "error"
    retryable: bool = False
    seq: int = 0
    type: Literal["error"] = "error"
    said: SaidFields = field(default=None, compare=False)


# ── a reply, as it arrives ────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class ReasoningStart:
    seq: int = 0
    type: Literal["reasoning.start"] = "reasoning.start"


@dataclass(slots=True)
class ReasoningDelta:
    text: str
    seq: int = 0
    type: Literal["reasoning.delta"] = "reasoning.delta"


@dataclass(slots=True)
class ReasoningEnd:
    signature: str | None = None
    wire: str | None = None
    opaque: JsonValue = None
    seconds: float | None = None
    field_name: str | None = None
    seq: int = 0
    type: Literal["reasoning.end"] = "reasoning.end"


@dataclass(slots=True)
class TextStart:
    seq: int = 0
    type: Literal["text.start"] = "text.start"


@dataclass(slots=True)
class TextDelta:
    text: str
    seq: int = 0
    type: Literal["text.delta"] = "text.delta"


@dataclass(slots=True)
class TextEnd:
    """The text is complete. `was_reasoning`: it turned out to be reasoning (`wire/thinking.py`)."""

    was_reasoning: bool = False
    phase: str | None = None
    seq: int = 0
    type: Literal["text.end"] = "text.end"


@dataclass(slots=True)
class TextCited:
    """Sources of the latest text, which can be complete already: providers name them late."""

    citations: list[Citation]
    seq: int = 0
    type: Literal["text.cited"] = "text.cited"


@dataclass(slots=True)
class ItemAdded:
    """The provider ran a tool, such as a search: a whole part of the reply."""

    kind: str
    text: str = ""
    wire: str | None = None
    opaque: JsonValue = None
    seq: int = 0
    type: Literal["item.added"] = "item.added"


@dataclass(slots=True)
class FileAdded:
    """An image or audio that the model made: a complete part of the reply.

    A wire puts its bytes into a data: URL. A turn stores them before it publishes the event.
    """

    file: File
    seq: int = 0
    type: Literal["file.added"] = "file.added"


@dataclass(slots=True)
class FilePartial:
    """An unfinished file of the reply, for display only. Readers can drop it.

    Without an `offset`, it is the current version of the file and replaces earlier ones. With one, it is the
    chunk that starts at that byte. The complete file follows as a `FileAdded`. Partial files never become
    part of a message.
    """

    file: File
    index: int = 0  # index of the file, if a reply makes several
    offset: int | None = None
    seq: int = 0
    type: Literal["file.partial"] = "file.partial"


@dataclass(slots=True)
class CallInputStart:
    """The input of a call starts.

    `format` names the text format in which the model wrote the call. `guessed` is true if the model is not
    known to write it, so that the call needs approval.
    """

    call: str
    tool: str
    provider_id: str | None = None
    format: str = ""
    guessed: bool = False
    seq: int = 0
    type: Literal["call.input.start"] = "call.input.start"


@dataclass(slots=True)
class CallInputDelta:
    """A chunk of the arguments, for display only."""

    call: str
    text: str
    seq: int = 0
    type: Literal["call.input.delta"] = "call.input.delta"


@dataclass(slots=True)
class CallInputEnd:
    """The arguments are complete: an object, or the `raw` text with its error."""

    call: str
    tool: str
    arguments: Arguments | None
    raw: str | None = None
    signature: str | None = None
    seq: int = 0
    type: Literal["call.input.end"] = "call.input.end"


@dataclass(slots=True)
class MessageEnd:
    """The reply is over. `finish` is a word of `messages/endings.py`, and `reason` is the provider's own
    word.

    `unfinished` is true if nothing marked its end. It may have been truncated.
    """

    finish: str
    usage: Usage = field(default_factory=Usage)
    message: str = ""
    unfinished: bool = False
    reason: str = ""
    seq: int = 0
    type: Literal["message.end"] = "message.end"


@dataclass(slots=True)
class ProviderData:
    """Other fields of a provider's chunk, such as a service tier, under the provider's names.

    Dragoman does not store them. A plugin can.
    """

    wire: str
    data: dict[str, JsonValue]
    seq: int = 0
    type: Literal["provider.data"] = "provider.data"


@dataclass(slots=True)
class MessageAdded:
    """A plugin or a steering user added a message."""

    message: Message
    seq: int = 0
    type: Literal["message.added"] = "message.added"


# ── a call ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class CallAsked(Spoken):
    """Dragoman asks a user: about the call, about its result, or for the tool."""

    call: str
    question: str
    kind: str
    tool: str
    arguments: Arguments
    text: str
    because: str = "rule"  # The reason for asking: see `messages.questions.Cause`.
    rules: list[str] = field(default_factory=list)  # the rules that "always" would add, as text
    choices: list[str] = field(default_factory=list)
    schema: dict[str, JsonValue] = field(default_factory=dict)  # schema for edited arguments or a reply
    diff: str = ""  # the changes it would make to files, if the tool can tell
    told: list[str] = field(default_factory=list)  # arguments fully contained in the diff
    in_parts: bool = False  # whether single hunks of the diff can be chosen
    free: bool = False  # whether the user can answer with free text instead of a choice
    seq: int = 0
    type: Literal["call.asked"] = "call.asked"
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class CallAnswered:
    """A user answered the question, in this client or another."""

    call: str
    question: str
    verdict: str
    seq: int = 0
    type: Literal["call.answered"] = "call.answered"


@dataclass(slots=True)
class InnerCallMade:
    """A running program makes a call. The usual events of the call follow."""

    call: str
    tool: str
    arguments: Arguments
    made_in: MadeIn
    seq: int = 0
    type: Literal["call.made"] = "call.made"


@dataclass(slots=True)
class CallStart:
    call: str
    tool: str
    arguments: Arguments
    client: bool = False  # whether a client runs it and delivers the result
    at: float | None = None
    seq: int = 0
    type: Literal["call.start"] = "call.start"


@dataclass(slots=True)
class CallProgress:
    call: str
    value: JsonValue
    seq: int = 0
    type: Literal["call.progress"] = "call.progress"


@dataclass(slots=True)
class CallEnd:
    call: str
    tool: str
    arguments: Arguments
    state: CallState
    result: ToolResult
    original: Arguments | None = None
    at: float | None = None
    seq: int = 0
    type: Literal["call.end"] = "call.end"


Event: TypeAlias = (
    TurnStart
    | TurnState
    | TurnEnd
    | StepStart
    | StepRetry
    | StepModel
    | StepEnd
    | Notice
    | ErrorRaised
    | ReasoningStart
    | ReasoningDelta
    | ReasoningEnd
    | TextStart
    | TextDelta
    | TextEnd
    | TextCited
    | ItemAdded
    | FileAdded
    | FilePartial
    | CallInputStart
    | CallInputDelta
    | CallInputEnd
    | ProviderData
    | MessageEnd
    | MessageAdded
    | CallAsked
    | CallAnswered
    | InnerCallMade
    | CallStart
    | CallProgress
    | CallEnd
)

EVENT: Codec[Event] = Codec(Annotated[Event, Field(discriminator="type")])
