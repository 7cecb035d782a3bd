"""Define the values that HTTP responses contain, if the library has no fitting type."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import JsonValue, WithJsonSchema

from dragoman.conversation.sharing import Share
from dragoman.dialects.dialect import NAMES, NATIVE
from dragoman.evaluation.expected import Answered, Met
from dragoman.evaluation.report import CaseRun, Report
from dragoman.messages.events import FilePartial
from dragoman.messages.media import ModelType
from dragoman.messages.message import Arguments, Message
from dragoman.messages.questions import MODES, Action, Mode, Question, Rule
from dragoman.messages.usage import Spending, Usage
from dragoman.providers.facts import Price
from dragoman.sentences import SaidFields, Spoken
from dragoman.store.store import AuditEntry
from dragoman.tools.authorize import REVIEWS
from dragoman.turn.settings import AUTO
from dragoman.turn.trace import Totals, TurnTrace
from dragoman.workspace.diff import FileDiff


@dataclass(slots=True)
class UnfinishedTurn(Spoken):
    """A turn that has not ended. `queued` means that it waits for a worker, or for a slot under a limit.
    `interrupted` means that no process runs it: it can be continued or cancelled."""

    id: str
    message: str
    state: str
    live: bool
    started: float
    retrying: str | None = None  # why the model is asked again, while the turn waits for that
    arriving: FilePartial | None = None  # the progress of a file that the model is generating
    said: SaidFields = field(default=None, compare=False)


_REVIEW = {"type": "string", "enum": list(REVIEWS)}
SETTINGS: dict[str, dict[str, Any]] = {
    "model": {"type": "string"},
    "agent": {"type": "string"},
    "mode": {"type": "string", "enum": list(MODES)},
    "system": {"type": "string"},
    "options": {"type": "object", "additionalProperties": {}},
    "tools": {"type": "object", "additionalProperties": {"type": "boolean"}},
    "review": {"anyOf": [_REVIEW, {"type": "object", "additionalProperties": _REVIEW}]},
    "max_rounds": {"type": "integer", "minimum": 0},
    "continuations": {"type": "integer", "minimum": 0},
    "history": {"type": "integer", "minimum": 0},
    "private": {"type": "object", "additionalProperties": {"type": "string"}},
    "dialect": {"type": "string", "enum": [AUTO, NATIVE, *NAMES]},
    "workspace": {"type": "string"},
    "metadata": {"type": "object", "additionalProperties": {"type": "string"}},
    "always_tools": {"type": "array", "items": {"type": "string"}},
}
"""The settings of a conversation for the description. `turn/settings.py` validates them."""


@dataclass(slots=True)
class Origin:
    """The call that opened a sub-conversation."""

    conversation: str
    call: str | None


@dataclass(slots=True)
class ConversationSummary:
    """A line of the conversation list."""

    id: str
    title: str | None
    leaf: str | None
    settings: Annotated[
        dict[str, JsonValue], WithJsonSchema({"type": "object", "properties": SETTINGS})
    ]  # The type is wide, because values that older versions stored are returned, too.
    usage: Usage
    created: float
    updated: float
    live: bool
    waiting: int
    parent: Origin | None = None
    snippet: str | None = None
    found: str | None = None  # the message that matched a search
    pinned: bool = False
    archived: bool = False
    tags: list[str] = field(default_factory=list)
    owner: str = ""
    role: str | None = None  # the reader's role: reads, answers, takes_part or owns; None in a snapshot
    shared: bool = False  # whether it has members


@dataclass(slots=True)
class MemberView:
    user: str
    role: str  # reads, answers, takes_part or owns
    added_by: str = ""
    added: float = 0.0


@dataclass(slots=True)
class MemberList:
    items: list[MemberView]


@dataclass(slots=True)
class PresentUser:
    user: str
    typing: bool = False


@dataclass(slots=True)
class PresenceView:
    """The owner and members who have the conversation open now. Readers of a link do not count."""

    conversation: str
    users: list[PresentUser]


@dataclass(slots=True)
class ShareView:
    """An invitation or a link. `upto` is the last message that a link shows."""

    id: str
    kind: Literal["invitation", "link"]
    role: str
    created_by: str
    created: float
    expires: float | None
    upto: str | None
    frozen: bool
    omits: list[str]

    @classmethod
    def of(cls, one: Share) -> ShareView:
        return cls(
            one.id,
            one.kind,
            one.role,
            one.created_by,
            one.created,
            one.expires,
            one.upto,
            one.frozen is not None,
            [*one.omits],
        )


@dataclass(slots=True)
class ShareList:
    items: list[ShareView]


@dataclass(slots=True)
class NewShareView:
    """A new invitation or link. The token is shown only here."""

    share: ShareView
    token: str


@dataclass(slots=True)
class Page:
    items: list[ConversationSummary]
    next: str | None
    tags: list[str] = field(default_factory=list)  # all tags of the user, on the first page only


@dataclass(slots=True)
class QueuedTurn:
    """A user's message that waits for the previous turn. If that has ended, it waits for what `waits_for`
    names."""

    id: str
    message: Message
    waits_for: str | None = None


@dataclass(slots=True)
class SteeringMessage:
    """A user's message that a running turn receives before its next step."""

    id: int
    turn: str
    message: Message


@dataclass(slots=True)
class QueueView:
    """Messages that no turn has taken yet, in order. Each can still be withdrawn."""

    conversation: str
    queued: list[QueuedTurn]
    steering: list[SteeringMessage]


@dataclass(slots=True)
class TreeView:
    """A whole conversation as it is now, including unfinished replies. A live stream begins with it.

    If it comes again in a stream, it replaces everything before it.
    """

    type: Literal["snapshot"]
    conversation: ConversationSummary
    messages: list[Message]
    turns: list[UnfinishedTurn]
    questions: list[Question]
    queued: list[QueuedTurn]
    steering: list[SteeringMessage]
    revision: int


@dataclass(slots=True)
class Begun:
    turn: str
    message: str | None = None


@dataclass(slots=True)
class TurnInfo:
    id: str
    conversation: str
    message: str
    state: str
    live: bool
    started: float
    usage: Usage
    waits_for: str | None = None
    rounds: int = 0
    calls: list[CallInfo] = field(default_factory=list)
    ended: float | None = None
    finish: str = ""
    limit: str = ""
    error: TurnError | None = None
    trail_size: int = 0
    answer_slice: tuple[int, int] = (0, 0)
    by: str = ""  # the user who sent its message


@dataclass(slots=True)
class CallInfo:
    """A call of a turn."""

    id: str
    tool: str
    state: str


@dataclass(slots=True)
class TurnError:
    """Why a turn failed."""

    message: str
    kind: str
    retryable: bool


@dataclass(slots=True)
class Cancelled:
    cancelled: bool


@dataclass(slots=True)
class Done:
    ok: bool = True


@dataclass(slots=True)
class DiffView:
    """File changes, each as a unified diff. `notes` name changes that could not be recorded. For a turn,
    `undone` names those that were undone since."""

    files: list[FileDiff]
    notes: list[str]
    undone: list[str] = field(default_factory=list)


@dataclass(slots=True)
class RevertView:
    """The changed paths, the skipped paths, and the new position of the conversation."""

    paths: list[str]
    notes: list[str]
    leaf: str | None
    moved: bool


@dataclass(slots=True)
class QuestionList:
    items: list[Question]


@dataclass(slots=True)
class ToolView:
    name: str
    offered_as: str | None
    description: str
    permission: str
    schema: dict[str, JsonValue]
    client: bool
    server: str | None
    on: bool
    review: str
    replay: str
    ruled: list[Rule] = field(default_factory=list)  # rules of the settings about its permission
    tokens: int = 0  # tokens of its definition, estimated by length
    loaded: Literal["always", "found", "called", "no"] = "always"  # `no`: the model can find it


@dataclass(slots=True)
class GroupView(Spoken):
    name: str
    rules: str
    on: bool
    server: str | None
    state: str | None
    tools: list[ToolView]
    problem: str | None = None  # why its server is not available
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class GroupList:
    groups: list[GroupView]


@dataclass(slots=True)
class ModelView(Spoken):
    name: str
    provider: str
    title: str
    context: int | None = None
    modalities: list[str] = field(default_factory=list)
    tools: str | None = None
    note: str | None = None
    ready: bool = True
    missing: str | None = None
    price: Price | None = None  # dollars for a million tokens; None if unknown
    type: ModelType = "chat"  # its kind of output
    unit_prices: dict[str, float] = field(default_factory=dict)  # for an image, a minute, million_characters
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class ProviderView(Spoken):
    """A provider. Any of its models can be named as NAME/MODEL, whether it is listed or not."""

    name: str
    title: str
    ready: bool
    missing: str | None = None
    local: bool = False  # It needs no key, and is available while it runs.
    custom: bool = False  # It comes from the settings, not from the built-in catalog.
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class ModelList:
    default: str | None
    items: list[ModelView]
    providers: list[ProviderView] = field(default_factory=list)
    options: dict[str, Any] = field(
        default_factory=dict
    )  # JSON schemas by the type of model, for types other than chat


@dataclass(slots=True)
class AgentView:
    name: str
    description: str
    model: str | None
    tools: list[str] | None


@dataclass(slots=True)
class AgentList:
    items: list[AgentView]


@dataclass(slots=True)
class PartialCall:
    """A call with only some of its changes."""

    arguments: Arguments


@dataclass(slots=True)
class GrantView:
    id: str
    rule: Rule
    words: str
    conversation: str | None
    folder: str | None  # the folder in which it applies; None means every folder
    created: float
    expires: float | None


@dataclass(slots=True)
class GrantList:
    items: list[GrantView]


@dataclass(slots=True)
class RuleView:
    """A rule of the settings or of an agent."""

    rule: Rule
    agent: str | None = None


@dataclass(slots=True)
class RuleList:
    """Rules. The last matching one decides, and grants follow after all of them."""

    items: list[RuleView]


@dataclass(slots=True)
class RuleDecision:
    """The decision of rules and grants, before mode, bounds and plugins apply. Without a rule, a user is
    asked."""

    action: Action
    rule: Rule | None


@dataclass(slots=True)
class TraceView:
    """The timeline of a turn. `now` is the server's time, up to which an unfinished turn has run."""

    trace: TurnTrace
    totals: Totals
    now: float


@dataclass(slots=True)
class ModelSpent:
    model: str | None
    usage: Usage
    messages: int


@dataclass(slots=True)
class DaySpent:
    day: str
    usage: Usage


@dataclass(slots=True)
class UsageView:
    """Usage. `rows` is set if the request names dimensions. `cost` does not include `unpriced` replies."""

    total: Usage
    models: list[ModelSpent]
    days: list[DaySpent]
    rows: list[Spending] = field(default_factory=list)


@dataclass(slots=True)
class Link:
    """A path on the server that signs one browser in."""

    path: str
    expires: float


@dataclass(slots=True)
class NamedPrompt:
    name: str
    text: str
    shared: bool = False  # The prompt is in the settings, where the admin changes it.


@dataclass(slots=True)
class PromptList:
    items: list[NamedPrompt]


@dataclass(slots=True)
class CurrentModel(Spoken):
    """The default model, and a note that users should read."""

    name: str
    note: str | None = None
    reason: str | None = None
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class UploadLimits:
    upload: int
    rounds: int | None = None  # default maximum of call batches in one turn


@dataclass(slots=True)
class Me:
    user: str
    version: str
    model: CurrentModel | None
    mode: Mode
    agents: list[AgentView]
    limits: UploadLimits
    workspace: str | None
    workspaces: list[str]  # other workspaces that a conversation can use
    signed_in: bool
    needs_password: bool


@dataclass(slots=True)
class AuditLog:
    items: list[AuditEntry]


@dataclass(slots=True)
class WaysToSignIn:
    """A way to sign in other than a password, a key or a link."""

    provider: str | None  # the provider's name; `GET oidc/login` leads there


@dataclass(slots=True)
class SignedOut:
    url: str  # the address at which the provider ends its session


@dataclass(slots=True)
class RatingView:
    """Your rating of a turn's answer."""

    turn: str
    value: Literal["good", "bad"]
    note: str = ""


@dataclass(slots=True)
class EvaluationLine:
    """A run, as a list shows it. `size` is in bytes."""

    name: str
    created: float
    size: int


@dataclass(slots=True)
class VariantLine:
    """A model with its prompt and agent, and how it did."""

    variant: str
    passed: int
    total: int
    low: float  # bounds of the 95 % confidence interval
    high: float
    every_time: float  # share of the cases that passed in all repeats
    better: int
    worse: int
    tokens: int
    cost: float | None
    seconds: float


@dataclass(slots=True)
class CaseLine:
    """A case, and how many of its answers passed, by variant."""

    id: str
    question: str
    recorded: bool | None  # whether the recorded answer passes
    passed: list[int]
    total: list[int]
    changed: list[Literal["better", "worse"] | None]


@dataclass(slots=True)
class EvaluationView:
    """The matrix of a run."""

    name: str
    created: float
    variants: list[VariantLine]
    cases: list[CaseLine]

    @classmethod
    def of(cls, report: Report) -> EvaluationView:
        changes = {(one.case, one.variant): one.better for one in report.changes()}
        better = Counter(variant for (_, variant), good in changes.items() if good)
        worse = Counter(variant for (_, variant), good in changes.items() if not good)
        lines = []
        for variant in report.variants:
            rate = report.pass_rate(variant)
            lines.append(
                VariantLine(
                    str(variant),
                    rate.passed,
                    rate.total,
                    rate.low,
                    rate.high,
                    rate.every_time,
                    better[variant],
                    worse[variant],
                    report.tokens(variant),
                    report.cost(variant),
                    report.seconds(variant),
                )
            )
        cases = []
        for case in report.cases:
            known = [
                [one.passed for one in report.runs_of(case.id, variant) if one.passed is not None]
                for variant in report.variants
            ]
            moved = [changes.get((case.id, variant)) for variant in report.variants]
            recorded = report.recorded.get(case.id)
            cases.append(
                CaseLine(
                    case.id,
                    case.question,
                    recorded.passed if recorded is not None else None,
                    [sum(one) for one in known],
                    [len(one) for one in known],
                    [None if one is None else "better" if one else "worse" for one in moved],
                )
            )
        return cls(report.name, report.created, lines, cases)


@dataclass(slots=True)
class AnswerLine:
    """An answer to a case. `diverges` is the first call that differs from the recorded ones."""

    variant: str
    repeat: int
    passed: bool | None
    answered: Answered
    met: tuple[Met, ...]
    skipped: str = ""
    diverges: int | None = None


@dataclass(slots=True)
class EvaluatedCase:
    """A case with the recorded answer and all others."""

    id: str
    question: str
    turn: str
    recorded: AnswerLine | None
    answers: list[AnswerLine]

    @classmethod
    def of(cls, report: Report, id: str) -> EvaluatedCase:
        def line(run: CaseRun) -> AnswerLine:
            parts = report.divergence(run)
            return AnswerLine(
                str(run.variant),
                run.repeat,
                run.passed,
                run.answered,
                run.met,
                run.skipped,
                parts.at if parts is not None else None,
            )

        case = next(one for one in report.cases if one.id == id)
        recorded = report.recorded.get(id)
        runs = [line(run) for variant in report.variants for run in report.runs_of(id, variant)]
        return cls(id, case.question, case.turn, line(recorded) if recorded is not None else None, runs)


@dataclass(slots=True)
class Problem:
    """Problem details (RFC 9457)."""

    title: str
    status: int
    detail: str
    type: str = "about:blank"
    errors: list[dict[str, Any]] = field(default_factory=list)
    code: str = ""  # the code of the sentence in `detail`, if it has one
    values: dict[str, Any] = field(default_factory=dict)  # the values in that sentence
