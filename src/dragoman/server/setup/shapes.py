"""What the set-up routes answer. No key is in any of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from dragoman.messages.questions import Rule
from dragoman.providers.sign_in import KeySource
from dragoman.sentences import SaidFields, Spoken
from dragoman.stored_keys import KeyPlace

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


@dataclass(slots=True)
class FolderTrustList:
    items: list[FolderTrust]
