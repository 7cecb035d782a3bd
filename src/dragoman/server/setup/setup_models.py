"""Define the requests and responses of the setup routes. No response contains a key."""

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
    """A custom server that speaks one of the known protocols."""

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
    """An MCP server: a program to start, or an address."""

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
    """An agent as in the settings. Omitted fields use the defaults."""

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
    """The content of a skill's `SKILL.md`. Other fields of the front matter are kept."""

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
    """The parameters of the address that a browser returned with from its sign-in."""

    state: Annotated[str, Field(max_length=2000)]
    code: Annotated[str | None, Field(max_length=10_000)] = None
    iss: Annotated[str | None, Field(max_length=2000)] = None
    error: Annotated[str | None, Field(max_length=200)] = None
    error_description: Annotated[str | None, Field(max_length=10_000)] = None


# ── answers ───────────────────────────────────────────────────────────────────────────────────────


Advice: TypeAlias = Literal["key", "address", "later", "talk"]
"""What can help: another key, another address, waiting, or one of the provider's models."""


@dataclass(slots=True)
class ProviderSetup(Spoken):
    """A provider, and how this server signs in to it."""

    name: str
    title: str
    ready: bool
    missing: str | None  # why its models cannot answer
    local: bool  # It needs no key, and is available while it runs.
    keys: list[str]  # the names of its key
    key_name: str | None  # the name under which a key was found
    key_from: KeySource | None
    signs_in: str | None  # the credentials that were found, in words
    address: str | None
    own: bool  # The file that the web UI writes contains it, so it can be removed.
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class ProviderSetupList:
    file: str  # the file for custom providers
    stores_in: KeyPlace  # where a new key is stored
    shared: bool  # whether other servers use the same store
    items: list[ProviderSetup]


@dataclass(slots=True)
class ProviderTest(Spoken):
    """The outcome of a request for a provider's list of models."""

    works: bool
    models: list[str]
    error: str | None
    advice: Advice | None
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class OfferedModel:
    """A downloadable model with its published data, and an estimate of how it runs on this machine."""

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
    """A running or finished download."""

    name: str
    repo: str
    size: int  # bytes
    done: int
    state: Literal["running", "done", "failed"]
    error: str | None = None
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class DownloadSetup:
    checked: str  # the day on which the list was last checked
    offers: list[OfferedModel]
    items: list[Download]


LoginState: TypeAlias = Literal[
    "starting", "waiting", "finishing", "done", "unneeded", "refused", "timed_out", "failed"
]
"""`unneeded` means that the server required no authentication."""


@dataclass(slots=True)
class ServerLogin(Spoken):
    """The progress of a sign-in at an MCP server, without tokens."""

    server: str
    state: LoginState
    url: str | None  # the address to sign in at, while the sign-in waits
    host: str | None  # the host of that address
    until: float | None  # when the sign-in expires
    error: str | None
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class ServerTool:
    name: str
    description: str
    for_resources: bool  # a tool of Dragoman's that reads the server's resources


@dataclass(slots=True)
class ServerSetup(Spoken):
    """An MCP server with its settings, its state, and the reason for a failure."""

    name: str
    kind: str  # stdio, http or sse
    where: str  # the command line, or the address, without secrets
    origin: str | None  # file and line
    own: bool  # The file that the web UI writes contains it, so it can be removed.
    enabled: bool
    state: str  # idle, starting, running, failed, login, or off if it is disabled
    error: str | None
    log: list[str]  # the last lines of its standard error
    tools: list[ServerTool]
    left_out: list[str]  # tools that cannot be offered, with the reason
    signs_in: bool  # whether the admin can sign in to it here
    login: ServerLogin | None  # the latest sign-in, if there was one
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class ServerSetupList:
    file: str
    shared: bool
    items: list[ServerSetup]


@dataclass(slots=True)
class ServerPlan:
    """Exactly what would run, for the admin to confirm. `confirm` is valid once, for five minutes."""

    name: str
    program: str | None  # the path of the command
    argv: list[str]
    cwd: str | None
    url: str | None
    env: dict[str, str]  # secrets are references
    headers: dict[str, str]
    secrets: list[str]  # names under which secrets will be stored
    file: str  # the file that is written
    rules: list[Rule]  # existing rules for a server of this name
    confirm: str
    oauth: bool  # whether it requires a sign-in in the browser


@dataclass(slots=True)
class AgentSetup:
    name: str
    description: str
    prompt: str
    model: str | None
    tools: list[str] | None
    rules: list[Rule]
    origin: str | None
    own: bool  # The file that the web UI writes contains it, so it can be changed there.
    teams: list[str]  # teams that can use it; none means everybody


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
    own: bool  # It is in the admin's folder, so it can be changed there.
    version: str  # differs for each version of the file


@dataclass(slots=True)
class SkillSetupList:
    folder: str  # the folder for new skills
    items: list[SkillSetup]
    left_out: list[str]  # unreadable skills, with the reason


@dataclass(slots=True)
class FolderTrust:
    """A folder with settings, tools or programs, and the admin's decision about it."""

    folder: str
    state: Literal["trusted", "changed", "not_trusted", "unsafe"]
    would: list[str]  # what it does or would do, as sentences
    changes: list[str]  # files that were added, changed or removed since the decision
    reason: str = ""  # why it is never used
    files: list[str] = field(default_factory=list)  # all files that would take effect
    seen: str = ""  # identifies exactly these files, for a decision
    restart: bool = False  # whether the decision is newer than the server's start


class TrustDecision(Body):
    """A decision whether a folder's content is used from the next start on."""

    folder: str
    trusted: bool
    seen: Annotated[str, Field(description="from the list: the files as you saw them")]


@dataclass(slots=True)
class FolderTrustList:
    items: list[FolderTrust]
