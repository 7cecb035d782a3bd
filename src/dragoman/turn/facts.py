"""Defines facts, the events of a turn. Facts are stored, and a turn is rebuilt only from them.

A fact names messages, calls and questions by ID. Their contents are rows written in the same transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, JsonValue

from dragoman.messages.codec import Codec
from dragoman.messages.message import CallState
from dragoman.messages.questions import Rule
from dragoman.messages.request import OutputSpec, ToolSpec
from dragoman.messages.usage import Usage
from dragoman.sentences import SaidFields, Spoken


@dataclass(slots=True, frozen=True)
class CallChange:
    """A call of an earlier turn with the changes for a rerun: other arguments, or this result."""

    call: str
    arguments: dict[str, JsonValue] | None = None
    result: str | None = None


@dataclass(slots=True, frozen=True)
class NodeRules:
    """The rules of the process that accepted a send.

    Any process that runs the turn applies them too (P14).
    """

    rules: tuple[Rule, ...] = ()  # rules from its settings
    agent: tuple[Rule, ...] = ()  # rules of the turn's first agent
    mode: str = "auto"
    review: str | dict[str, str] = "never"


@dataclass(slots=True, frozen=True)
class TurnOptions:
    """The options of this turn, stored so that another process can continue it."""

    model: str | None = None
    mode: str | None = None
    system: str | None = None
    options: dict[str, JsonValue] = field(default_factory=dict)
    disabled: tuple[str, ...] = ()  # plugins disabled for this turn
    agent: str | None = None
    workspace: str | None = None  # The folder it works in. A runtime with another folder does not run it.
    tools: dict[str, bool] = field(default_factory=dict)  # tool switches, which override the conversation's
    settings: dict[str, JsonValue] | None = None  # the conversation's settings when the turn started
    started_with: str | None = None  # the model resolved at that time
    dialect: str | None = None  # The form of calls: native or text.
    output: OutputSpec | None = None  # the required form of the answer
    # settings of this turn, which override the conversation's
    over: dict[str, JsonValue] = field(default_factory=dict)
    # Tools that came with the message. Its sender's client runs them.
    client_tools: tuple[ToolSpec, ...] = ()
    traceparent: str | None = None  # the caller's trace, in W3C format
    again_from: CallChange | None = None  # set if the turn starts in the middle of an earlier one
    state: JsonValue = None  # state that an application shares with its agent, as received
    compact: bool = False  # Compact earlier messages, however full the context is.
    accepted: NodeRules | None = None  # None: stored by a version without this field

    def under(self, later: TurnOptions) -> TurnOptions:
        """Return these options overridden by `later`. Values resolved at the start are left out, to be
        resolved again."""
        return TurnOptions(
            model=later.model or self.model,
            mode=later.mode or self.mode,
            system=later.system if later.system is not None else self.system,
            options={**self.options, **later.options},
            disabled=later.disabled or self.disabled,
            agent=later.agent or self.agent,
            tools={**self.tools, **later.tools},
            dialect=later.dialect or self.dialect,
            output=later.output or self.output,
            over=laid_over(self.over, later.over),
            client_tools=later.client_tools or self.client_tools,
            state=later.state if later.state is not None else self.state,
            compact=later.compact,
        )


def laid_over(settings: Mapping[str, JsonValue], later: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return settings with `later` over them. An additional private text does not remove earlier ones."""
    before, more = settings.get("private"), later.get("private")
    laid = {**settings, **later}
    if isinstance(before, dict) and isinstance(more, dict):
        laid["private"] = {**before, **more}
    return laid


_HELD_TO = ("mode", "tools", "review", "private", "max_rounds", "continuations", "history")


def held_to(options: TurnOptions, settings: Mapping[str, JsonValue]) -> TurnOptions:
    """Update the options of a queued turn to the restrictions its conversation has now.

    Its model, its agent and other resolved values stay.
    """
    kept = {name: value for name, value in (options.settings or {}).items() if name not in _HELD_TO}
    now = {name: settings[name] for name in _HELD_TO if name in settings}
    return replace(options, settings=laid_over({**kept, **now}, options.over))


@dataclass(slots=True, frozen=True)
class CallMade:
    """A call as a reply contains it."""

    call: str
    tool: str


@dataclass(slots=True, frozen=True)
class Retried(Spoken):
    """A failed attempt at a reply that was followed by another, after `wait` seconds."""

    at: float
    wait: float = 0.0
    reason: str = ""
    status: int | None = None
    said: SaidFields = field(default=None, compare=False)


# ── the turn ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, frozen=True)
class TurnStarted:
    message: str
    options: TurnOptions = TurnOptions()
    at: float = 0.0
    by: str | None = None  # The user who sent the message. None: stored by a version without this field.
    type: Literal["turn_started"] = "turn_started"


@dataclass(slots=True, frozen=True)
class Steered:
    """A user message that arrived while the turn ran. The next request contains it."""

    message: str
    at: float = 0.0
    type: Literal["steered"] = "steered"


@dataclass(slots=True, frozen=True)
class TurnCompleted:
    at: float = 0.0
    type: Literal["turn_completed"] = "turn_completed"


@dataclass(slots=True, frozen=True)
class TurnFailed(Spoken):
    error: str
    kind: str = "error"
    retryable: bool = False
    at: float = 0.0
    type: Literal["turn_failed"] = "turn_failed"
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True, frozen=True)
class TurnCancelled:
    reason: str = ""
    at: float = 0.0
    by: str | None = None  # the user who cancelled it, if any
    type: Literal["turn_cancelled"] = "turn_cancelled"


# ── a step ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, frozen=True)
class RequestBuilt:
    step: int
    attempt: int
    reply: str  # ID for its reply
    model: str
    at: float = 0.0
    type: Literal["request_built"] = "request_built"


@dataclass(slots=True, frozen=True)
class ReplyReceived:
    step: int
    message: str | None  # None if a plugin took the reply and placed nothing, or if nothing had arrived.
    calls: tuple[CallMade, ...] = ()
    finish: str = "stop"
    usage: Usage = Usage()
    first: float = 0.0  # Arrival time of its first chunk. 0 if none arrived.
    retries: tuple[Retried, ...] = ()  # retries of this step since its process requested the reply
    at: float = 0.0
    type: Literal["reply_received"] = "reply_received"


@dataclass(slots=True, frozen=True)
class MessageAppended:
    message: str
    by: str
    request: bool = False  # asks for another step
    at: float = 0.0
    type: Literal["message_appended"] = "message_appended"


@dataclass(slots=True, frozen=True)
class StepFinished(Spoken):
    step: int
    again: bool
    limit: str = ""  # A description of the limit that stops the turn.
    at: float = 0.0
    type: Literal["step_finished"] = "step_finished"
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True, frozen=True)
class CompactionStarted:
    reason: str
    at: float = 0.0
    type: Literal["compaction_started"] = "compaction_started"


@dataclass(slots=True, frozen=True)
class Compacted:
    message: str
    usage: Usage = Usage()
    at: float = 0.0
    type: Literal["compacted"] = "compacted"


# ── a call ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, frozen=True)
class ApprovalAsked:
    """A user is asked whether the call may run."""

    call: str
    question: str
    at: float = 0.0
    type: Literal["call_asked"] = "call_asked"


@dataclass(slots=True, frozen=True)
class CallStarted(Spoken):
    """Stored before the tool runs. With `client`, a client runs it and delivers the result."""

    call: str
    client: bool = False
    because: str = ""  # the rule, grant or answer that let it run
    review: str = ""  # Whether a user reviews the result first, as known about the tool at that time.
    at: float = 0.0
    type: Literal["call_started"] = "call_started"
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True, frozen=True)
class CallInterrupted:
    """A new owner found the call running. A user is asked whether it should run again."""

    call: str
    question: str
    at: float = 0.0
    type: Literal["call_interrupted"] = "call_interrupted"


@dataclass(slots=True, frozen=True)
class ToolAsked:
    """The running tool asks a user something."""

    call: str
    question: str
    at: float = 0.0
    type: Literal["tool_asked"] = "tool_asked"


@dataclass(slots=True, frozen=True)
class ResultAsked:
    """The call ran. A user is asked whether the model may see its result."""

    call: str
    question: str
    at: float = 0.0
    type: Literal["result_asked"] = "result_asked"


@dataclass(slots=True, frozen=True)
class QuestionAnswered:
    """`approved` is the fingerprint of the arguments that may now run, if any."""

    call: str
    question: str
    verdict: str
    approved: str | None = None
    at: float = 0.0
    type: Literal["question_answered"] = "question_answered"


@dataclass(slots=True, frozen=True)
class QuestionWithdrawn:
    """A tool no longer waits for an answer to its question."""

    call: str
    question: str
    at: float = 0.0
    type: Literal["question_withdrawn"] = "question_withdrawn"


@dataclass(slots=True, frozen=True)
class ModelAsked:
    """Usage of another model by the running tool.

    Without a call: usage in addition to the turn's replies, by an interrupted reply or by a part of a
    summary.
    """

    call: str
    model: str
    usage: Usage = Usage()
    at: float = 0.0
    type: Literal["model_asked"] = "model_asked"


@dataclass(slots=True, frozen=True)
class InnerCall:
    """A call as a program makes it: `wanted` is the fingerprint of its tool and arguments."""

    call: str
    tool: str
    wanted: str


@dataclass(slots=True, frozen=True)
class CallsMade:
    """The running program makes these calls, and waits for them."""

    call: str
    calls: tuple[InnerCall, ...]
    at: float = 0.0
    type: Literal["calls_made"] = "calls_made"


@dataclass(slots=True, frozen=True)
class CallFinished(Spoken):
    """The call is settled. `closing`: a limit was reached, and the next request is the last."""

    call: str
    state: CallState
    closing: bool = False
    limit: str = ""  # a description of that limit
    at: float = 0.0
    type: Literal["call_finished"] = "call_finished"
    said: SaidFields = field(default=None, compare=False)


CallFact: TypeAlias = (
    ApprovalAsked
    | CallStarted
    | CallInterrupted
    | ToolAsked
    | ResultAsked
    | QuestionAnswered
    | QuestionWithdrawn
    | ModelAsked
    | CallsMade
    | CallFinished
)

Fact: TypeAlias = (
    TurnStarted
    | Steered
    | TurnCompleted
    | TurnFailed
    | TurnCancelled
    | RequestBuilt
    | ReplyReceived
    | MessageAppended
    | StepFinished
    | CompactionStarted
    | Compacted
    | CallFact
)

FACT: Codec[Fact] = Codec(Annotated[Fact, Field(discriminator="type")])


def renewed(fact: str, settings: Mapping[str, JsonValue]) -> str:
    """Return the stored first fact of a queued turn, updated after its conversation's settings changed."""
    first = FACT.load(fact)
    if not isinstance(first, TurnStarted):
        return fact
    return FACT.dump(replace(first, options=held_to(first.options, settings)))


def options_in(facts: Sequence[Any]) -> TurnOptions:
    """Return the options a turn was started with, from its stored facts. Defaults if its first fact is
    missing."""
    first = FACT.load(facts[0]) if facts else None
    return first.options if isinstance(first, TurnStarted) else TurnOptions()
