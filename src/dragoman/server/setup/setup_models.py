"""What the set-up routes take and answer. A key goes in, and never comes back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, SecretStr

from dragoman.messages.questions import Rule
from dragoman.providers.sign_in import KeySource
from dragoman.sentences import SaidFields, Spoken
from dragoman.server.bodies import Body
from dragoman.stored_keys import KeyPlace

_Text = Annotated[str, Field(max_length=4000)]
_Texts = Annotated[dict[Annotated[str, Field(max_length=200)], _Text], Field(max_length=50)]
Secret = Annotated[SecretStr, Field(min_length=1, max_length=20_000)]


class NewKey(Body):
    key: Annotated[Secret, Field(description="stored, and never sent back")]


class NewProvider(Body):
    """A server of one's own, that speaks one of the known protocols."""

    name: Annotated[str, Field(max_length=60, examples=["my-server"])]
    base_url: Annotated[str, Field(max_length=2000, examples=["http://127.0.0.1:8000/v1"])]
    wire: Literal["openai_chat", "openai_responses", "anthropic_messages", "gemini"] = "openai_chat"
    key: Annotated[Secret | None, Field(description="without one, requests carry none")] = None


class NewDownload(Body):
    model: Annotated[
        str,
        Field(min_length=1, max_length=400, examples=["unsloth/Qwen3-4B-Instruct-2507-GGUF:Q4_K_M"]),
    ]


class NewServer(Body):
    """An MCP server: a program to be started, or an address."""

    name: Annotated[str, Field(max_length=60, examples=["files"])]
    command: Annotated[_Text | None, Field(description="the program, without its arguments")] = None
    args: Annotated[list[_Text], Field(max_length=100)] = Field(default_factory=list)
    env: Annotated[_Texts, Field(description="values that look like secrets are stored like keys")] = Field(
        default_factory=dict
    )
    cwd: _Text | None = None
    url: Annotated[_Text | None, Field(description="its address, if it is not a program")] = None
    headers: Annotated[_Texts, Field(description="values that look like secrets are stored like keys")] = (
        Field(default_factory=dict)
    )
    sse: Annotated[bool, Field(description="of an older server")] = False
    oauth: Annotated[bool, Field(description="it wants a sign-in in the browser")] = False


class ConfirmedServer(NewServer):
    confirm: Annotated[str, Field(max_length=200, description="from the plan that you saw")]


_Words = Annotated[str, Field(min_length=1, max_length=2200)]
_Rules = Annotated[list[_Words], Field(max_length=200, examples=[["files.read", "shell:git *"]])]


class AgentBody(Body):
    """What an agent is, as the settings have it. What is left out is as for everybody."""

    description: Annotated[_Text, Field(description="its strengths; other agents read this")] = ""
    prompt: Annotated[str, Field(max_length=100_000, description="after the general system prompt")] = ""
    model: Annotated[str | None, Field(max_length=300, examples=["ollama/qwen3"])] = None
    tools: Annotated[
        list[_Words] | None, Field(max_length=500, description="groups and tools; without it, all of them")
    ] = None
    allow: _Rules = Field(default_factory=list)
    ask: _Rules = Field(default_factory=list)
    deny: _Rules = Field(default_factory=list)
    teams: Annotated[
        list[_Words] | None, Field(max_length=100, description="that can use it; null: as before")
    ] = None


class SkillBody(Body):
    """What a skill says, as its `SKILL.md` has it. What else stands in the front matter stays."""

    description: Annotated[
        _Text, Field(min_length=1, description="the text that the model sees before it loads the skill")
    ]
    when: Annotated[_Text, Field(description="when to use it")] = ""
    always: Annotated[bool, Field(description="its text is in the system prompt of every turn")] = False
    text: Annotated[str, Field(min_length=1, max_length=200_000, description="Markdown")]
    version: Annotated[
        str | None,
        Field(max_length=100, description="of the object you change; a new one has none"),
    ] = None


class Returned(Body):
    """What a browser came back with from where it signed in, as it stood in the address."""

    state: Annotated[str, Field(max_length=2000)]
    code: Annotated[str | None, Field(max_length=10_000)] = None
    iss: Annotated[str | None, Field(max_length=2000)] = None
    error: Annotated[str | None, Field(max_length=200)] = None
    error_description: Annotated[str | None, Field(max_length=10_000)] = None


# ── answers ───────────────────────────────────────────────────────────────────────────────────────


Advice: TypeAlias = Literal["key", "address", "later", "talk"]
"""What may help: another key, another address, to wait, or to try one of its models."""


@dataclass(slots=True)
class ProviderSetup(Spoken):
    """A provider, and how one signs in to it here."""

    name: str
    title: str
    ready: bool
    missing: str | None  # what keeps its models from answering
    local: bool  # it needs no key, and is there while it runs
    keys: list[str]  # the names under which a key is looked for
    key_name: str | None  # the one that holds a key
    key_from: KeySource | None
    signs_in: str | None  # what was found, in words
    address: str | None
    own: bool  # it stands in the file that the page writes, and can be removed
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class ProviderSetupList:
    file: str  # where a provider of one's own is written
    stores_in: KeyPlace  # where a key goes
    shared: bool  # other servers work on the same store
    items: list[ProviderSetup]


@dataclass(slots=True)
class ProviderTest(Spoken):
    """What came of asking a provider for its list of models."""

    works: bool
    models: list[str]
    error: str | None
    advice: Advice | None
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class OfferedModel:
    """A model that can be downloaded, with what is published about it, and how it would run here."""

    model: str
    title: str
    size: float  # GB
    license: str
    claim: str
    source: str
    fit: Literal["gpu", "memory", "slow", "no"]
    recommended: bool


@dataclass(slots=True)
class Download(Spoken):
    """A model that is downloaded, or was."""

    name: str
    repo: str
    size: int  # bytes
    done: int
    state: Literal["running", "done", "failed"]
    error: str | None = None
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class DownloadSetup:
    checked: str  # the day on which the list was checked
    offers: list[OfferedModel]
    items: list[Download]


LoginState: TypeAlias = Literal[
    "starting", "waiting", "finishing", "done", "unneeded", "refused", "timed_out", "failed"
]
"""`unneeded`: the server let us in without asking who we are."""


@dataclass(slots=True)
class ServerLogin(Spoken):
    """A sign-in at an MCP server, and how far it got. No token is in it."""

    server: str
    state: LoginState
    url: str | None  # where the person signs in, while that is waited for
    host: str | None  # whose page that is
    until: float | None  # when it is given up
    error: str | None
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class ServerTool:
    name: str
    description: str
    for_resources: bool  # ours, to read what the server has: none of its own


@dataclass(slots=True)
class ServerSetup(Spoken):
    """An MCP server: what it is, how it is, and why it is not there."""

    name: str
    kind: str  # stdio, http or sse
    where: str  # the command line, or the address, without secrets
    origin: str | None  # file and line
    own: bool  # it stands in the file that the page writes, and can be removed
    enabled: bool
    state: str  # idle, starting, running, failed, login; off where it is not enabled
    error: str | None
    log: list[str]  # the last lines of its standard error
    tools: list[ServerTool]
    left_out: list[str]  # tools that cannot be offered, and why
    signs_in: bool  # one may try to sign in to it here
    login: ServerLogin | None  # the latest sign-in, if there was one
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class ServerSetupList:
    file: str
    shared: bool
    items: list[ServerSetup]


@dataclass(slots=True)
class ServerPlan:
    """Exactly what would run, for a person to confirm. `confirm` is good for this, once, for five minutes."""

    name: str
    program: str | None  # where the command was found
    argv: list[str]
    cwd: str | None
    url: str | None
    env: dict[str, str]  # what is a secret is a reference
    headers: dict[str, str]
    secrets: list[str]  # names under which secrets will be stored
    file: str  # what is written
    rules: list[Rule]  # that hold for a server of this name already
    confirm: str
    oauth: bool  # it is signed in to, in the browser


@dataclass(slots=True)
class AgentSetup:
    name: str
    description: str
    prompt: str
    model: str | None
    tools: list[str] | None
    rules: list[Rule]
    origin: str | None
    own: bool  # it stands in the file that the page writes, and can be changed there
    teams: list[str]  # that can use it; none: everybody


@dataclass(slots=True)
class AgentSetupList:
    file: str
    shared: bool
    agents: list[AgentSetup]


@dataclass(slots=True)
class SkillSetup:
    name: str
    description: str
    when: str
    always: bool
    text: str
    origin: str
    own: bool  # it is in the person's own folder, and can be changed there
    version: str  # another for every other file


@dataclass(slots=True)
class SkillSetupList:
    folder: str  # where a skill of one's own is written
    items: list[SkillSetup]
    left_out: list[str]  # those that could not be read, and why


@dataclass(slots=True)
class FolderTrust:
    """A folder with settings, tools or programs of its own, and what a person decided about it."""

    folder: str
    state: Literal["trusted", "changed", "not_trusted", "unsafe"]
    would: list[str]  # what it does, or would do, in words
    changes: list[str]  # files that are new, changed or gone since the decision
    reason: str = ""  # why it is never used
    files: list[str] = field(default_factory=list)  # all that would act
    seen: str = ""  # stands for exactly these files: a decision names it
    restart: bool = False  # the decision is newer than the server's start


class TrustDecision(Body):
    """Whether what a folder brings is used from the next start on."""

    folder: str
    trusted: bool
    seen: Annotated[str, Field(description="from the list: the files as you saw them")]


@dataclass(slots=True)
class FolderTrustList:
    items: list[FolderTrust]
