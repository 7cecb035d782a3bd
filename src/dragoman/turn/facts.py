"""What happened in a turn, in the past tense. Facts are stored; a turn is rebuilt from nothing else.

A fact names messages, calls and questions by id; their contents are rows written in the same transaction.
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
    """A call of an earlier turn, as it is to be this time: with other arguments, or with this result."""

    call: str
    arguments: dict[str, JsonValue] | None = None
    result: str | None = None


@dataclass(slots=True, frozen=True)
class NodeRules:
    """The rules of the node that accepted a send. Whichever node runs the turn keeps to them, too (P14)."""

    rules: tuple[Rule, ...] = ()  # of its settings
    agent: tuple[Rule, ...] = ()  # of the agent the turn begins with
    mode: str = "auto"
    review: str | dict[str, str] = "never"


@dataclass(slots=True, frozen=True)
class TurnOptions:
    """What the caller asked of this turn, kept so that another process can go on with it."""

    model: str | None = None
    mode: str | None = None
    system: str | None = None
    options: dict[str, JsonValue] = field(default_factory=dict)
    disabled: tuple[str, ...] = ()  # plugins that stay out of this turn
    agent: str | None = None
    workspace: str | None = None  # the folder it works in: a runtime with another one leaves it alone
    tools: dict[str, bool] = field(default_factory=dict)  # switches, over the conversation's
    settings: dict[str, JsonValue] | None = None  # of the conversation, when it was started
    started_with: str | None = None  # the model that was found for it then
    dialect: str | None = None  # how calls are made: native, or as text
    output: OutputSpec | None = None  # what the answer has to look like
    over: dict[str, JsonValue] = field(default_factory=dict)  # settings of this turn, over the conversation's
    client_tools: tuple[ToolSpec, ...] = ()  # came with the message; its sender runs them
    traceparent: str | None = None  # the trace that whoever started it belongs to, as W3C writes it
    again_from: CallChange | None = None  # it begins in the middle of an earlier one
    state: JsonValue = None  # what an application shares with its agent, as it brought it
    compact: bool = False  # summarize what came before, however full the context is
    accepted: NodeRules | None = None  # None: by a version that did not store them

    def under(self, later: TurnOptions) -> TurnOptions:
        """These, with what the later ones say over them. What was found out at the start is found anew."""
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
    """Settings with later ones over them. Who names one more text that is private takes back nothing that was
    private before."""
    before, more = settings.get("private"), later.get("private")
    laid = {**settings, **later}
    if isinstance(before, dict) and isinstance(more, dict):
        laid["private"] = {**before, **more}
    return laid


_HELD_TO = ("mode", "tools", "review", "private", "max_rounds", "continuations", "history")


def held_to(options: TurnOptions, settings: Mapping[str, JsonValue]) -> TurnOptions:
    """Of a turn that has not begun: with what its conversation is held to by now. Its model, its agent and
    the rest of what was found for it stay."""
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
    """An attempt at a reply that failed and was followed by another, after a wait of so many seconds."""

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
    by: str | None = None  # the user who sent the message; None: by a version that did not store it
    type: Literal["turn_started"] = "turn_started"


@dataclass(slots=True, frozen=True)
class Steered:
    """A person said something while the turn ran; the next request contains it."""

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
    by: str | None = None  # the user who cancelled it, if one did
    type: Literal["turn_cancelled"] = "turn_cancelled"


# ── a step ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, frozen=True)
class RequestBuilt:
    step: int
    attempt: int
    reply: str  # the id its reply will have
    model: str
    at: float = 0.0
    type: Literal["request_built"] = "request_built"


@dataclass(slots=True, frozen=True)
class ReplyReceived:
    step: int
    message: str | None  # None: a plugin took the reply and placed nothing, or nothing had arrived
    calls: tuple[CallMade, ...] = ()
    finish: str = "stop"
    usage: Usage = Usage()
    first: float = 0.0  # when its first piece came; 0 where none did
    retries: tuple[Retried, ...] = ()  # of the step, since its process asked for the reply
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
    limit: str = ""  # that keeps the turn from going on, in words
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
    """A person is asked whether the call may run."""

    call: str
    question: str
    at: float = 0.0
    type: Literal["call_asked"] = "call_asked"


@dataclass(slots=True, frozen=True)
class CallStarted(Spoken):
    """On disk before the tool runs. `client`: a client runs it, and delivers the result."""

    call: str
    client: bool = False
    because: str = ""  # the rule, the grant or the answer that let it run
    review: str = ""  # whether a person is to see its result first, by what was known of its tool then
    at: float = 0.0
    type: Literal["call_started"] = "call_started"
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True, frozen=True)
class CallInterrupted:
    """Found running by a new owner; a person is asked whether it is to run again."""

    call: str
    question: str
    at: float = 0.0
    type: Literal["call_interrupted"] = "call_interrupted"


@dataclass(slots=True, frozen=True)
class ToolAsked:
    """The running tool asks a person something of its own."""

    call: str
    question: str
    at: float = 0.0
    type: Literal["tool_asked"] = "tool_asked"


@dataclass(slots=True, frozen=True)
class ResultAsked:
    """The call ran; a person is asked whether the model may see what came of it."""

    call: str
    question: str
    at: float = 0.0
    type: Literal["result_asked"] = "result_asked"


@dataclass(slots=True, frozen=True)
class QuestionAnswered:
    """`approved` is the fingerprint of the arguments that may now run, if any may."""

    call: str
    question: str
    verdict: str
    approved: str | None = None
    at: float = 0.0
    type: Literal["question_answered"] = "question_answered"


@dataclass(slots=True, frozen=True)
class QuestionWithdrawn:
    """A tool no longer waits for the answer to what it asked."""

    call: str
    question: str
    at: float = 0.0
    type: Literal["question_withdrawn"] = "question_withdrawn"


@dataclass(slots=True, frozen=True)
class ModelAsked:
    """The running tool had another model make or hear something, which was paid for. Without a call: what was
    used beside the replies of the turn, by one that broke off or by a part of a summary."""

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
    limit: str = ""  # which limit, in words
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
    """The first fact of a turn that is queued, as it is stored, after its conversation's settings changed."""
    first = FACT.load(fact)
    if not isinstance(first, TurnStarted):
        return fact
    return FACT.dump(replace(first, options=held_to(first.options, settings)))


def options_in(facts: Sequence[Any]) -> TurnOptions:
    """What a turn was started with, by its stored facts; of one without a beginning, nothing."""
    first = FACT.load(facts[0]) if facts else None
    return first.options if isinstance(first, TurnStarted) else TurnOptions()
