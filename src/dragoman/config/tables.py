"""Lists every setting of `dragoman.toml`. The reference in the docs is made from this file."""

from __future__ import annotations

import re
from typing import (
    Annotated,
    Literal,
    Required,  # Pydantic requires this one on Python 3.11.
    TypeAlias,
)

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, with_config
from typing_extensions import TypedDict

from dragoman.errors import ConfigError
from dragoman.providers.catalog_tables import ProviderTable, TraitsTable, Variable
from dragoman.store.blobs.place import check_place
from dragoman.tools.mcp.servers import McpServer
from dragoman.web_address import parse_path, web_address
from dragoman.wire.http_client.network import is_loopback

# ── durations ─────────────────────────────────────────────────────────────────────────────────────
# Durations as users write them: `90 days`, `12w`, `36 hours`.


_SECONDS = {"h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600, "y": 365 * 24 * 3600}
_WORDS = {
    "h": "h",
    "hour": "h",
    "hours": "h",
    "d": "d",
    "day": "d",
    "days": "d",
    "w": "w",
    "week": "w",
    "weeks": "w",
    "y": "y",
    "year": "y",
    "years": "y",
}


def parse_duration(text: str) -> float:
    """Return seconds. Raise a readable ValueError for an invalid duration: a month has no fixed length, and a
    bare number has no unit."""
    found = re.fullmatch(r"\s*(\d{1,6})\s*([a-z]+)\s*", text, re.IGNORECASE)
    unit = _WORDS.get(found[2].lower()) if found else None
    if found is None or unit is None or not int(found[1]):
        raise ValueError("write a number and hours, days, weeks or years, such as '90 days' or 90d")
    return float(int(found[1]) * _SECONDS[unit])


ReviewWord: TypeAlias = Literal["never", "on_error", "always"]
ModeWord: TypeAlias = Literal["auto", "ask", "manual", "off"]
Rules: TypeAlias = list[str]
Positive: TypeAlias = Annotated[int, Field(gt=0)]


def _as_float(value: object) -> object:
    return float(value) if type(value) is int else value


Amount: TypeAlias = Annotated[float, Field(gt=0), BeforeValidator(_as_float)]


Share: TypeAlias = Annotated[float, Field(gt=0, le=1), BeforeValidator(_as_float)]


def _place(text: str) -> str:
    try:
        check_place(text)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return text


def _origin(text: str) -> str:
    parts = web_address(text)
    if parts is None or text != f"{parts.scheme}://{parts.netloc}":
        raise ValueError("write an origin as browsers send it: https://app.example.org, without a path")
    return text


_OURS = (
    *("/api", "/assets", "/c", "/callback", "/healthz", "/metrics", "/oidc", "/preview", "/readyz"),
    *("/sandbox", "/shared", "/v1"),
)


def _below(text: str) -> str:
    if parse_path(text) != text:
        raise ValueError(
            "write a path such as /chat, with plain characters, a slash at the start and none at the end"
        )
    if (first := f"/{text.split('/')[1]}") in _OURS:
        raise ValueError(f"the server itself uses the path {first}; choose another")
    return text


def _duration(text: str) -> str:
    parse_duration(text)
    return text


Duration: TypeAlias = Annotated[str, AfterValidator(_duration)]
Origin: TypeAlias = Annotated[str, AfterValidator(_origin)]
Below: TypeAlias = Annotated[str, AfterValidator(_below)]


Teams: TypeAlias = Annotated[list[str], Field(description="teams that can use it; default everybody")]


@with_config(extra="forbid", strict=True)
class LimitsTable(TypedDict, total=False):
    """Limits of one turn."""

    max_rounds: Annotated[int, Field(ge=0, description="rounds of calls; 0 means no tools")]
    max_tokens: Annotated[Positive, Field(description="tokens, input and output")]
    max_cost: Annotated[Amount, Field(description="US dollars, if the price is known")]
    max_seconds: Annotated[Amount, Field(description="seconds from its start, including waits")]
    max_calls: Annotated[Positive, Field(description="tool calls")]


@with_config(extra="forbid", strict=True)
class AllLimitsTable(LimitsTable, total=False):
    """Limits of one turn, and of one user per day."""

    max_daily_tokens: Annotated[Positive, Field(description="tokens of a user per day, in UTC")]
    max_daily_cost: Annotated[
        Amount,
        Field(description="US dollars of a user per day, without replies of unknown price"),
    ]


@with_config(extra="forbid", strict=True)
class TeamTable(TypedDict, total=False):
    """Users who share daily limits: those named here, and those of an OpenID Connect group with this name."""

    members: Annotated[list[str], Field(description="names of users")]
    max_daily_tokens: Annotated[Positive, Field(description="tokens of all members per day, in UTC")]
    max_daily_cost: Annotated[Amount, Field(description="US dollars of all members per day")]


@with_config(extra="forbid", strict=True)
class AgentTable(TypedDict, total=False):
    """A named set of prompt, model, tools, permissions and limits."""

    description: Annotated[str, Field(description="its strengths: other agents read this")]
    prompt: Annotated[str, Field(description="its system prompt, after the general one")]
    model: Annotated[str, Field(description="as PROVIDER/MODEL")]
    mode: Annotated[ModeWord, Field(description="how its calls are approved")]
    options: Annotated[
        dict[str, JsonValue], Field(description="options of its requests, such as temperature")
    ]
    tools: Annotated[list[str], Field(description="groups (files) and tools (files.read_file) it has")]
    allow: Annotated[
        Rules, Field(description="rules for calls without approval: PERMISSION or PERMISSION:PATTERN")
    ]
    ask: Annotated[Rules, Field(description="rules for calls that need approval anyway")]
    deny: Annotated[Rules, Field(description="rules for calls that are denied")]
    limits: Annotated[LimitsTable, Field(description="limits of its turns")]
    tool_budget: Annotated[int | str, Field(description="as tool_budget above, for its requests")]
    handoffs: Annotated[list[str], Field(description="agents it can hand a conversation over to")]
    teams: Teams


@with_config(extra="forbid", strict=True)
class PromptTable(TypedDict, total=False):
    """A text that users send again and again. They see it next to their own prompts."""

    text: Required[Annotated[str, Field(min_length=1, max_length=100_000, description="the text")]]
    teams: Teams


@with_config(extra="allow", strict=True)
class PluginTable(TypedDict, total=False):
    """A plugin: of an installed package by its name, of a `plugins` folder, or by `use`. Other keys are its
    parameters."""

    use: Annotated[str, Field(description="its class, as package.module:Class")]
    enabled: Annotated[bool, Field(description="false leaves it out")]


@with_config(extra="forbid", strict=True)
class RetentionTable(TypedDict, total=False):
    """When Dragoman deletes conversations."""

    conversations: Annotated[
        Duration,
        Field(description="time without activity, such as 90 days; waiting and pinned conversations stay"),
    ]
    audit: Annotated[Duration, Field(description="how long entries of the audit log are kept")]


def _issuer(text: str) -> str:
    parts = web_address(text)
    if parts is None or parts.query or parts.fragment or parts.username is not None:
        raise ValueError("write an address without a query, as the provider writes it in its tokens")
    if parts.scheme != "https" and not is_loopback(parts.hostname):
        raise ValueError("write an https:// address; over http, an attacker on the network could sign in")
    return text


Issuer: TypeAlias = Annotated[str, AfterValidator(_issuer)]
Named: TypeAlias = Annotated[str, Field(min_length=1)]


@with_config(extra="forbid", strict=True)
class OidcTable(TypedDict, total=False):
    """An OpenID Connect provider at which users sign in, besides passwords and keys."""

    issuer: Required[Annotated[Issuer, Field(description="its address, exactly as its tokens name it")]]
    client_id: Required[Annotated[Named, Field(description="what the provider knows this server by")]]
    client_secret_from: Annotated[
        Variable, Field(description="the environment variable, or name in the keyring, that holds the secret")
    ]
    name: Annotated[Named, Field(description="on the button: Sign in with NAME")]
    scopes: Annotated[list[Named], Field(description="asked for")]
    name_claim: Annotated[Named, Field(description="the claim with what a new user is called")]
    groups_claim: Annotated[Named, Field(description="the claim with the groups, such as realm_access.roles")]
    allowed_groups: Required[
        Annotated[
            list[Named],
            Field(min_length=1, description='a user has to be in one; ["*"] is every account there'),
        ]
    ]
    admin_group: Annotated[Named, Field(description="its users may set the server up; by default none may")]
    session: Annotated[Duration, Field(description="how long a sign-in holds")]


@with_config(extra="forbid", strict=True)
class ServerTable(TypedDict, total=False):
    """`dragoman serve`."""

    host: Annotated[str, Field(description="address to listen on; a public one needs a password")]
    port: Annotated[int, Field(ge=0, le=65535, description="0 takes a free one")]
    hosts: Annotated[list[str], Field(description="host names that browsers can use, in addition to its own")]
    proxies: Annotated[
        list[str], Field(description="addresses of proxies whose forwarded headers are trusted")
    ]
    path: Annotated[
        Below, Field(description="path below which a proxy shows it, such as /chat; default the root")
    ]
    origins: Annotated[
        list[Origin], Field(description="origins of other pages that can use the API, with a key")
    ]
    password_from: Annotated[Variable, Field(description="the environment variable that holds the password")]
    upload_limit: Annotated[Positive, Field(description="bytes of one attachment")]
    open: Annotated[bool, Field(description="open the web UI in the browser at the start")]
    metrics: Annotated[
        Literal["owner", "loopback", "off"],
        Field(
            description="readers of /metrics: the admin with a key, programs of this machine, or no client"
        ),
    ]
    oidc: Annotated[OidcTable, Field(description="a provider at which users sign in: see below")]


@with_config(extra="forbid", strict=True)
class WorkersTable(TypedDict, total=False):
    """The role of a process, and the number of turns that run at the same time, without those that wait for
    approval."""

    role: Annotated[
        Literal["web", "worker", "both"],
        Field(description="serve users, run turns, or both; web and worker need a store in PostgreSQL"),
    ]
    per_node: Annotated[Positive, Field(description="turns at the same time in one process")]
    per_person: Annotated[Positive, Field(description="turns of one user at the same time, on all servers")]
    per_provider: Annotated[
        Positive, Field(description="turns at the same time with one provider, on all servers")
    ]


@with_config(extra="forbid", strict=True)
class WorkspaceTable(TypedDict, total=False):
    """Another folder, for conversations and messages whose setting `workspace` names it."""

    folder: Required[Annotated[str, Field(min_length=1, description="its path")]]
    prompt: Annotated[str, Field(description="text for the model, before its AGENTS.md")]


@with_config(extra="forbid", strict=True)
class SnapshotsTable(TypedDict, total=False):
    """Records of file changes, to show and undo them."""

    enabled: Annotated[bool, Field(description="false: record nothing")]
    max_file_size: Annotated[Positive, Field(description="maximum bytes of a recorded file")]
    max_files: Annotated[
        Positive, Field(description="maximum number of files; a bigger folder is not recorded")
    ]
    max_seconds: Annotated[Amount, Field(description="seconds for one scan of the folder")]
    keep_days: Annotated[Positive, Field(description="days until records are deleted")]


@with_config(extra="forbid", strict=True)
class FormatterTable(TypedDict, total=False):
    """A formatter or linter that runs on each file that a tool wrote."""

    files: Required[
        Annotated[
            list[str],
            Field(
                min_length=1, description="patterns: `*.py` in any folder, or a path such as `src/**/*.py`"
            ),
        ]
    ]
    command: Required[
        Annotated[
            list[Annotated[str, Field(min_length=1)]],
            Field(
                min_length=1,
                description="words of the command; `{file}` is the file, which otherwise comes last",
            ),
        ]
    ]
    timeout: Annotated[Amount, Field(le=60, description="seconds for one file")]
    enabled: Annotated[bool, Field(description="false: don't run it")]


@with_config(extra="forbid", strict=True)
class ShellTable(TypedDict, total=False):
    """The sandbox for programs that tools start: shell commands, formatters, programs of your tools."""

    cage: Annotated[
        Literal["auto", "always", "off"],
        Field(description="auto: use a cage if possible; always: run nothing without one; off: no cage"),
    ]
    unasked: Annotated[
        bool, Field(description="false: caged calls need approval, too; default true in a trusted folder")
    ]
    env: Annotated[
        list[str],
        Field(description="variables that programs receive, in addition to PATH, HOME, LANG and the like"),
    ]
    watch: Annotated[
        bool,
        Field(description="false: faster, without the exact list of refused writes"),
    ]


@with_config(extra="forbid", strict=True)
class ConfigTable(TypedDict, total=False):
    """The whole file."""

    model: Annotated[str, Field(min_length=1, description="the model that answers, as PROVIDER/MODEL")]
    store: Annotated[str, Field(description="database with all conversations: a file, or postgresql://…")]
    blobs: Annotated[
        str,
        AfterValidator(_place),
        Field(description="place of attachments: folder, database, file:///, s3://, gs:// or az://…"),
    ]
    migrate: Annotated[
        bool,
        Field(description="update the store's tables at the start; else run `dragoman store migrate`"),
    ]
    workspace: Annotated[str, Field(description="folder of file tools and the shell")]
    system: Annotated[str, Field(description="system prompt of every conversation")]
    project_prompt: Annotated[
        bool, Field(description="false: ignore AGENTS.md and CLAUDE.md of the workspace")
    ]
    mode: Annotated[ModeWord, Field(description="how calls are approved")]
    on_reject: Annotated[Literal["continue", "stop"], Field(description="effect of a rejection on the turn")]
    tools: Annotated[
        list[str],
        Field(description="groups: basics, files, shell, web, browser, programs, and those of packages"),
    ]
    allow: Annotated[
        Rules, Field(description="rules for calls without approval: PERMISSION or PERMISSION:PATTERN")
    ]
    ask: Annotated[Rules, Field(description="rules for calls that need approval anyway")]
    deny: Annotated[Rules, Field(description="rules for calls that are denied")]
    options: Annotated[
        dict[str, JsonValue], Field(description="options of every request, such as temperature")
    ]
    tool_history: Annotated[
        Literal["full", "results", "hint", "none"],
        Field(description="how much of earlier calls the model receives again"),
    ]
    history_parts: Annotated[
        list[Literal["text", "reasoning", "call", "file", "item"]],
        Field(description="parts of earlier messages that the model receives, besides text; default all"),
    ]
    compact_at: Annotated[
        Share | Literal[False],
        Field(description="share of the context at which Dragoman compacts old messages; false for never"),
    ]
    continuations: Annotated[
        int,
        Field(
            ge=0,
            description="how often a cut-off reply continues; default 3, and 0 with the option max_tokens",
        ),
    ]
    private: Annotated[dict[str, str], Field(description="names for texts that no provider can see")]
    review: Annotated[
        ReviewWord | dict[str, ReviewWord],
        Field(description="results that you see before the model; a table sets it for tools, by pattern"),
    ]
    tool_budget: Annotated[
        int | str,
        Field(
            description="budget above which the model finds tools of servers on demand: a number of tools, a "
            'share of the context such as "10%", or "off"; default 40 tools or a tenth'
        ),
    ]
    always_tools: Annotated[list[str], Field(description="servers and tools that are always offered")]
    small_model: Annotated[str, Field(description="model for titles and summaries")]
    titles_by_model: Annotated[bool, Field(description="let the model title conversations")]
    title_length: Annotated[
        int, Field(ge=8, le=200, description="characters of a title made of the first words")
    ]
    skills: Annotated[list[str], Field(description="more folders with skills")]
    mcp_file: Annotated[str, Field(description="JSON file with mcpServers, as other programs write it")]
    limits: AllLimitsTable
    agents: dict[str, AgentTable]
    prompts: dict[str, PromptTable]
    teams: dict[str, TeamTable]
    plugins: dict[str, PluginTable]
    mcp: dict[str, McpServer]
    server: ServerTable
    workers: WorkersTable
    retention: RetentionTable
    snapshots: SnapshotsTable
    workspaces: dict[str, WorkspaceTable]
    formatters: dict[str, FormatterTable]
    shell: ShellTable
    providers: dict[str, ProviderTable]
    families: dict[str, TraitsTable]
