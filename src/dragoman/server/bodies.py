"""Validate the bodies of requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    Strict,
    StringConstraints,
    with_config,
)
from typing_extensions import TypedDict  # pydantic needs this one on Python 3.11

from dragoman.conversation.sharing import Omitted, Role
from dragoman.conversation.tree import LONGEST_TAG, MOST_TAGS
from dragoman.messages.message import Arguments, File, Part, Text
from dragoman.messages.questions import Mode, Rule, Scope, Verdict
from dragoman.messages.request import ToolSpec
from dragoman.tools.tool import Review
from dragoman.turn.facts import TurnOptions
from dragoman.turn.output import spec_of_schema
from dragoman.turn.send import MOST, turn_options, with_contexts


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


# ── conversations ─────────────────────────────────────────────────────────────────────────────────


def _whole(value: object) -> object:
    """Return a whole float as an integer: JSON has a single number type."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Count = Annotated[int, Field(ge=0, strict=True), BeforeValidator(_whole)]
Reviews = (
    Review | Annotated[dict[str, Review], Field(examples=[{"shell": "always", "mcp.*": "on_error"}])]
)  # one policy for all tools, or policies by patterns of names and permissions
Switches = Annotated[
    dict[str, Annotated[bool, Strict()]], Field(examples=[{"files": False, "files.read_file": True}])
]


# Unknown settings are refused later, with a better message than pydantic's.
@with_config(ConfigDict(extra="allow", json_schema_extra={"additionalProperties": False}))
class ConversationSettings(TypedDict, total=False):
    """Settings of one conversation. They override those of its agent and of the program."""

    model: Annotated[str | None, Field(description="as PROVIDER/MODEL")]
    agent: Annotated[str | None, Field(description="who answers")]
    mode: Annotated[Mode | None, Field(description="how calls are approved")]
    system: Annotated[str | None, Field(description="a system prompt, after the general one")]
    options: Annotated[dict[str, JsonValue] | None, Field(description="of requests, such as temperature")]
    tools: Annotated[Switches | None, Field(description="groups and tools that are on or off")]
    review: Annotated[Reviews | None, Field(description="results that a person sees before the model")]
    max_rounds: Annotated[Count | None, Field(description="batches of calls in one turn; 0 means no tools")]
    continuations: Annotated[
        Count | None, Field(description="how often the model continues a reply that was cut off")
    ]
    history: Annotated[Count | None, Field(description="earlier turns that a request contains")]
    private: Annotated[dict[str, str] | None, Field(description="names for texts that no provider may see")]
    dialect: Annotated[str | None, Field(description="how the model calls tools: auto, native, or as text")]
    workspace: Annotated[str | None, Field(description="the folder that tools work in, by its name")]
    metadata: Annotated[dict[str, str] | None, Field(description="your own values, which no model sees")]
    always_tools: Annotated[list[str] | None, Field(description="tools of servers that are always loaded")]


Title = Annotated[str, Field(max_length=500, examples=["Tidy up my notes"])]
Settings = Annotated[
    ConversationSettings, Field(examples=[{"mode": "ask", "tools": {"files": False}, "review": "always"}])
]


Tag = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_TAG, strip_whitespace=True)]


class NewConversation(Body):
    title: Title | None = None
    settings: Settings = {}


class ConversationChange(Body):
    """Changes to a conversation. In `settings`, null removes a setting."""

    title: Title | None = None
    settings: Settings | None = None
    leaf: Annotated[str | None, Field(description="a message: look at its branch")] = None
    pinned: Annotated[bool | None, Field(description="in reach, and kept whatever the retention")] = None
    archived: Annotated[bool | None, Field(description="out of the list, until one writes in it")] = None
    tags: Annotated[list[Tag] | None, Field(max_length=MOST_TAGS)] = None


class MemberRole(Body):
    role: Role


class Typing(Body):
    on: bool = True


class NewOwner(Body):
    user: Annotated[str, Field(min_length=1, max_length=200)]


Lifetime = Annotated[float | None, Field(description="seconds for which it is valid; null: a week")]


class NewInvitation(Body):
    role: Role = "reads"
    seconds: Lifetime = None


class NewLink(Body):
    upto: Annotated[str | None, Field(description="the last message it shows; null: all of them")] = None
    frozen: Annotated[bool, Field(description="what it shows now, whatever follows")] = False
    omits: Annotated[list[Omitted], Field(description="what it leaves out", max_length=4)] = []
    seconds: Lifetime = None


class Token(Body):
    token: Annotated[str, Field(min_length=1, max_length=200)]


class Fork(Body):
    message: Annotated[str, Field(description="the last message of the copy")]
    own_folder: Annotated[
        bool, Field(description="it works in a copy of the workspace, as it was at that message")
    ] = False


# ── turns ─────────────────────────────────────────────────────────────────────────────────────────


class MessageBody(Body):
    """A user's message: text, or text and files."""

    text: Annotated[str | None, Field(examples=["What is 17 * 23?"])] = None
    parts: list[Annotated[Text | File, Field(discriminator="type")]] | None = None
    contexts: Annotated[
        dict[str, str], Field(description="strings by their titles, sent before the message", max_length=100)
    ] = {}

    def content(self) -> str | Sequence[Part]:
        said: str | Sequence[Part] = self.parts if self.parts is not None else self.text or ""
        return with_contexts(said, self.contexts)


class TurnBody(Body):
    """Settings of one turn. They override those of the conversation and the agent."""

    model: Annotated[str | None, Field(description="as PROVIDER/MODEL")] = None
    agent: Annotated[str | None, Field(description="who answers")] = None
    mode: Annotated[Mode | None, Field(description="how calls are approved")] = None
    system: Annotated[str | None, Field(description="a system prompt, after the general one")] = None
    options: Annotated[
        dict[str, JsonValue], Field(description="of requests, such as temperature; null takes one away")
    ] = {}
    disable: Annotated[list[str], Field(description="plugins that stay out of it", max_length=100)] = []
    tools: Annotated[Switches, Field(description="groups and tools that are on or off")] = {}
    dialect: Annotated[
        str | None, Field(description="how the model calls tools: auto, native, or as text, such as xml_tag")
    ] = None
    review: Annotated[Reviews | None, Field(description="results that a person sees before the model")] = None
    max_rounds: Annotated[Count | None, Field(description="batches of calls; 0 means no tools")] = None
    continuations: Annotated[
        Count | None, Field(description="how often the model continues a reply that was cut off")
    ] = None
    history: Annotated[Count | None, Field(description="earlier turns that its requests contain")] = None
    compact: Annotated[bool, Field(description="summarize what came before first")] = False
    private: Annotated[
        dict[str, str] | None, Field(description="names for texts that no provider may see")
    ] = None
    workspace: Annotated[
        str | None, Field(description="the folder that tools work in, by its name; empty: the server's own")
    ] = None
    output_schema: Annotated[
        dict[str, JsonValue] | None,
        Field(description="a JSON schema: the answer is such a value, as JSON; what does not fit goes back"),
    ] = None
    client_tools: Annotated[
        list[ToolSpec],
        Field(description="tools that the sender runs, and delivers the results of", max_length=MOST),
    ] = []

    def turn_options(self) -> TurnOptions:
        """Return the options that are stored with the turn. Raises BadRequest if one of them is invalid."""
        schema = self.output_schema
        return turn_options(
            spec_of_schema(schema) if schema is not None else None,
            model=self.model,
            agent=self.agent,
            mode=self.mode,
            system=self.system,
            options=self.options,
            disable=self.disable,
            tools=self.tools,
            dialect=self.dialect,
            review=self.review,
            max_rounds=self.max_rounds,
            continuations=self.continuations,
            history=self.history,
            private=self.private,
            workspace=self.workspace,
            compact=self.compact,
            client_tools=self.client_tools,
        )


class NewTurn(MessageBody, TurnBody):
    """A new message, and how to answer it."""

    parent: Annotated[str | None, Field(description="the message to answer to, if not the leaf")] = None
    queue: Annotated[bool, Field(description="wait for the running turn instead of failing")] = False


class NewVersion(TurnBody):
    revert_files: Annotated[bool, Field(description="first undo file changes since then")] = False


class Edit(MessageBody, NewVersion):
    """New text for a message. Omitted options stay as they were for the message it replaces."""


class Rerun(NewVersion):
    """How to regenerate an answer. Omitted options stay as they were for the answer it replaces."""

    parallel: Annotated[bool, Field(description="also while another answer to it is running")] = False


class RerunCall(NewVersion):
    """How to repeat a call: with other arguments, or with this result. With neither, the call is repeated as
    it was."""

    arguments: Annotated[dict[str, JsonValue] | None, Field(description="in place of those it had")] = None
    result: Annotated[str | None, Field(description="its result; then the call does not run")] = None


class QueueOrder(Body):
    turns: Annotated[list[str], Field(description="queued turns: these come first, so", max_length=1000)]


class NewRating(Body):
    value: Annotated[Literal["good", "bad"], Field(description="what you think of the answer")]
    note: Annotated[str, Field(max_length=2000, description="why")] = ""


class Cancel(Body):
    reason: str = ""


class Revert(Body):
    files_only: Annotated[bool, Field(description="leave the conversation where it is")] = False
    paths: Annotated[
        list[str],
        Field(max_length=10_000, description="only these files of the diff; the conversation stays"),
    ] = []
    force: Annotated[bool, Field(description="overwrite files that changed since")] = False


class Redo(Body):
    force: Annotated[bool, Field(description="also if a file changed since")] = False


# ── calls and questions ───────────────────────────────────────────────────────────────────────────


class ChosenHunk(Body):
    hunk: Annotated[Count, Field(description="its place in the diff, counted from 0")]
    text: Annotated[
        str | None, Field(max_length=1_000_000, description="in place of the hunk's new side, if edited")
    ] = None


class ChosenHunks(Body):
    hunks: Annotated[list[ChosenHunk], Field(max_length=10_000, examples=[[{"hunk": 0}, {"hunk": 2}]])]


class Decision(Body):
    """A user's decision. The kind of the approval request determines the possible verdicts."""

    verdict: Verdict
    scope: Scope = "once"
    arguments: Annotated[Arguments | None, Field(description="run with these instead")] = None
    rules: Annotated[list[Rule], Field(description="the rules to add, of those the question offers")] = []
    reason: Annotated[str | None, Field(max_length=10_000, description="for the model to read")] = None
    value: Annotated[JsonValue, Field(description="the reply to a tool, or the text to release instead")] = (
        None
    )
    hash: Annotated[str | None, Field(description="hash of the arguments you saw; checked if given")] = None


class NewGrant(Body):
    """A rule that is not the answer to an approval request."""

    permission: Annotated[
        str,
        StringConstraints(pattern=r"^[^\x00-\x20:\x7f-\xa0]+$", max_length=200),
        Field(examples=["shell"]),
    ]
    pattern: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=2000),
        Field(examples=["git *"]),
    ] = "*"
    action: Literal["allow", "deny"] = "allow"
    scope: Literal["hour", "always"] = "always"


class Result(Body):
    """The result of a call that the client ran."""

    text: str | None = None
    value: JsonValue = None
    failed: bool = False


# ── people ────────────────────────────────────────────────────────────────────────────────────────


class Prompt(Body):
    text: Annotated[str, Field(min_length=1, max_length=100_000, examples=["Review this text: "])]


class PromptArguments(Body):
    arguments: Annotated[dict[str, Annotated[str, Field(max_length=100_000)]], Field(max_length=100)] = {}


class Credentials(Body):
    password: Annotated[str, Field(max_length=1000)]
