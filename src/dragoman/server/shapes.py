"""What goes over HTTP and is not a value of the house already: bodies that come in, and views that go out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from dragoman.messages.message import Message
from dragoman.messages.parts import File, Text
from dragoman.messages.questions import Question, Rule
from dragoman.messages.usage import Usage

# ── what comes in ─────────────────────────────────────────────────────────────────────────────────


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


Title = Annotated[str, Field(max_length=500, examples=["Tidy up my notes"])]
Settings = Annotated[
    dict[str, JsonValue],
    Field(examples=[{"mode": "ask", "tools": {"files": False}}], max_length=20),
]


class NewConversation(Body):
    title: Title | None = None
    settings: Settings = {}


class ConversationChange(Body):
    """What is to be different. In `settings`, null takes one away."""

    title: Title | None = None
    settings: Settings | None = None
    leaf: Annotated[str | None, Field(description="a message: look at its branch")] = None


class Fork(Body):
    message: Annotated[str, Field(description="the last message of the copy")]


class Said(Body):
    """What a person says: a text, or texts and files."""

    text: Annotated[str | None, Field(examples=["What is 17 * 23?"])] = None
    parts: list[Annotated[Text | File, Field(discriminator="type")]] | None = None

    def content(self) -> str | list[Text | File]:
        return self.parts if self.parts is not None else self.text or ""


class NewTurn(Said):
    parent: Annotated[str | None, Field(description="the message to answer to, if not the leaf")] = None
    queue: Annotated[bool, Field(description="wait for the turn that runs, instead of being refused")] = False
    model: str | None = None
    agent: str | None = None
    mode: Literal["auto", "ask", "manual", "off"] | None = None
    options: dict[str, JsonValue] = {}


class Again(Body):
    model: str | None = None


class Cancel(Body):
    reason: str = ""


class Result(Body):
    """What came of a call that the client ran."""

    text: str | None = None
    value: JsonValue = None
    failed: bool = False


class Prompt(Body):
    text: Annotated[str, Field(min_length=1, max_length=100_000, examples=["Review this text: "])]


class Login(Body):
    password: Annotated[str, Field(max_length=1000)]


# ── what goes out ─────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Origin:
    """The call that opened a sub-conversation."""

    conversation: str
    call: str | None


@dataclass(slots=True)
class Summary:
    """A line of the list."""

    id: str
    title: str | None
    leaf: str | None
    settings: dict[str, JsonValue]
    usage: Usage
    created: float
    updated: float
    live: bool
    waiting: int
    parent: Origin | None = None
    snippet: str | None = None


@dataclass(slots=True)
class Page:
    items: list[Summary]
    next: str | None


@dataclass(slots=True)
class LiveTurn:
    id: str
    message: str
    state: str
    live: bool
    started: float


@dataclass(slots=True)
class QueuedTurn:
    """What a person said that waits for the turn before it."""

    id: str
    message: Message


@dataclass(slots=True)
class TreeView:
    """A conversation whole, as it is now: unfinished replies included."""

    conversation: Summary
    messages: list[Message]
    turns: list[LiveTurn]
    questions: list[Question]
    queued: list[QueuedTurn]
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


@dataclass(slots=True)
class Cancelled:
    cancelled: bool


@dataclass(slots=True)
class Done:
    ok: bool = True


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


@dataclass(slots=True)
class GroupView:
    name: str
    rules: str
    on: bool
    server: str | None
    state: str | None
    tools: list[ToolView]


@dataclass(slots=True)
class GroupList:
    groups: list[GroupView]


@dataclass(slots=True)
class ModelView:
    name: str
    provider: str
    title: str
    context: int | None = None
    modalities: list[str] = field(default_factory=list)
    tools: str | None = None
    note: str | None = None
    ready: bool = True
    missing: str | None = None


@dataclass(slots=True)
class ModelList:
    default: str | None
    items: list[ModelView]


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
class GrantView:
    id: str
    rule: Rule
    words: str
    conversation: str | None
    created: float


@dataclass(slots=True)
class GrantList:
    items: list[GrantView]


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
    total: Usage
    models: list[ModelSpent]
    days: list[DaySpent]


@dataclass(slots=True)
class NamedPrompt:
    name: str
    text: str


@dataclass(slots=True)
class PromptList:
    items: list[NamedPrompt]


@dataclass(slots=True)
class CurrentModel:
    """The model that answers where none is named, and what a person should know of it."""

    name: str
    note: str | None = None
    reason: str | None = None


@dataclass(slots=True)
class UploadLimits:
    upload: int


@dataclass(slots=True)
class Me:
    user: str
    version: str
    model: CurrentModel | None
    mode: str
    agents: list[AgentView]
    limits: UploadLimits
    workspace: str | None
    signed_in: bool
    needs_password: bool


@dataclass(slots=True)
class Problem:
    """RFC 9457."""

    title: str
    status: int
    detail: str
    type: str = "about:blank"
    errors: list[dict[str, Any]] = field(default_factory=list)
