"""What `dragoman.toml` may say, table by table. The reference in the docs is made from this file."""

from __future__ import annotations

import re
from typing import (
    Annotated,
    Literal,
    Required,  # pydantic wants this one on Python 3.11
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
# Lengths of time as people write them: `90 days`, `12w`, `36 hours`.


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
    """Seconds. ValueError, in words, where it is none: a month has no length, and a number alone no unit."""
    found = re.fullmatch(r"\s*(\d{1,6})\s*([a-z]+)\s*", text, re.IGNORECASE)
    unit = _WORDS.get(found[2].lower()) if found else None
    if found is None or unit is None or not int(found[1]):
        raise ValueError(
            "a length of time is a number and hours, days, weeks or years, such as '90 days' or 90d"
        )
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
        raise ValueError("an origin is written as browsers send it: https://app.example.org, without a path")
    return text


_OURS = ("/api", "/assets", "/c", "/callback", "/healthz", "/metrics", "/oidc", "/readyz", "/sandbox", "/v1")


def _below(text: str) -> str:
    if parse_path(text) != text:
        raise ValueError("a path is written as /chat: a slash before it, none at its end, plain signs")
    if (first := f"/{text.split('/')[1]}") in _OURS:
        raise ValueError(f"{first} is a path of the server itself: take another")
    return text


def _duration(text: str) -> str:
    parse_duration(text)
    return text


Duration: TypeAlias = Annotated[str, AfterValidator(_duration)]
Origin: TypeAlias = Annotated[str, AfterValidator(_origin)]
Below: TypeAlias = Annotated[str, AfterValidator(_below)]


@with_config(extra="forbid", strict=True)
class LimitsTable(TypedDict, total=False):
    """What one turn may use."""

    max_rounds: Annotated[int, Field(ge=0, description="batches of calls; 0 means no tools")]
    max_tokens: Annotated[Positive, Field(description="tokens, input and output")]
    max_cost: Annotated[Amount, Field(description="US dollars, where the price is known")]
    max_seconds: Annotated[Amount, Field(description="seconds from its start, waiting included")]
    max_calls: Annotated[Positive, Field(description="tool calls")]


@with_config(extra="forbid", strict=True)
class AllLimitsTable(LimitsTable, total=False):
    """What one turn may use, and what one person may use in a day."""

    max_daily_tokens: Annotated[Positive, Field(description="tokens of a person and day, in UTC")]
    max_daily_cost: Annotated[
        Amount,
        Field(description="US dollars of a person and day; replies without a known price are not in it"),
    ]


@with_config(extra="forbid", strict=True)
class AgentTable(TypedDict, total=False):
    """A named set of prompt, model, tools, permissions and limits."""

    description: Annotated[str, Field(description="what it is good at: other agents read this")]
    prompt: Annotated[str, Field(description="its system prompt, after the general one")]
    model: Annotated[str, Field(description="as PROVIDER/MODEL")]
    mode: Annotated[ModeWord, Field(description="who decides about its calls")]
    options: Annotated[dict[str, JsonValue], Field(description="of its requests, such as temperature")]
    tools: Annotated[list[str], Field(description="groups (files) and tools (files.read_file) it has")]
    allow: Annotated[Rules, Field(description="PERMISSION or PERMISSION:PATTERN that needs no question")]
    ask: Annotated[Rules, Field(description="what is asked about all the same")]
    deny: Annotated[Rules, Field(description="what must not run")]
    limits: Annotated[LimitsTable, Field(description="of its turns")]
    tool_budget: Annotated[int | str, Field(description="as tool_budget above, for its requests")]
    handoffs: Annotated[list[str], Field(description="agents it may hand a conversation over to")]


@with_config(extra="allow", strict=True)
class PluginTable(TypedDict, total=False):
    """A plugin: of an installed package by its name, of a `plugins` folder, or by where it is. What else its
    table holds are its parameters."""

    use: Annotated[str, Field(description="where it is, as package.module:Class")]
    enabled: Annotated[bool, Field(description="false leaves it out")]


@with_config(extra="forbid", strict=True)
class RetentionTable(TypedDict, total=False):
    """What is deleted by itself, and when."""

    conversations: Annotated[
        Duration,
        Field(description="untouched for so long, such as 90 days; none that waits or is pinned"),
    ]
    audit: Annotated[Duration, Field(description="how long entries of the audit log are kept")]


def _issuer(text: str) -> str:
    parts = web_address(text)
    if parts is None or parts.query or parts.fragment or parts.username is not None:
        raise ValueError("an issuer is an address without a query, as the provider writes it in its tokens")
    if parts.scheme != "https" and not is_loopback(parts.hostname):
        raise ValueError("an issuer is an https:// address: over http, anybody on the way could sign in")
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
    allowed_groups: Annotated[
        list[Named], Field(min_length=1, description="a user has to be in one of them; unset, nobody has to")
    ]
    admin_group: Annotated[Named, Field(description="its users may set the server up; by default none may")]
    session: Annotated[Duration, Field(description="how long a sign-in holds")]


@with_config(extra="forbid", strict=True)
class ServerTable(TypedDict, total=False):
    """`dragoman serve`."""

    host: Annotated[str, Field(description="the address to listen on; a public one needs a password")]
    port: Annotated[int, Field(ge=0, le=65535, description="0 takes a free one")]
    hosts: Annotated[list[str], Field(description="names by which browsers may call it, beside its own")]
    proxies: Annotated[
        list[str], Field(description="addresses of proxies that say truly where requests come from")
    ]
    path: Annotated[
        Below, Field(description="below which a proxy shows it, such as /chat; else it is at the root")
    ]
    origins: Annotated[
        list[Origin], Field(description="pages of other addresses that may use the API, with a key")
    ]
    password_from: Annotated[Variable, Field(description="the environment variable that holds the password")]
    upload_limit: Annotated[Positive, Field(description="bytes of one attachment")]
    open: Annotated[bool, Field(description="open the page in the browser at the start")]
    metrics: Annotated[
        Literal["owner", "loopback", "off"],
        Field(description="who may read /metrics: you, with your key; every program of this machine; nobody"),
    ]
    oidc: Annotated[OidcTable, Field(description="a provider at which users sign in: see below")]


@with_config(extra="forbid", strict=True)
class WorkersTable(TypedDict, total=False):
    """What a server does of the work, and how many turns run at once. Those that wait for a person do not
    count."""

    role: Annotated[
        Literal["web", "worker", "both"],
        Field(description="serve people, run turns, or both; other than both needs a store in PostgreSQL"),
    ]
    per_node: Annotated[Positive, Field(description="turns at once in one process")]
    per_person: Annotated[Positive, Field(description="turns of one person at once, on all nodes")]
    per_provider: Annotated[Positive, Field(description="turns at once with one provider, on all nodes")]


@with_config(extra="forbid", strict=True)
class WorkspaceTable(TypedDict, total=False):
    """Another folder: a conversation, or one message, works in it whose setting `workspace` names it."""

    folder: Required[Annotated[str, Field(min_length=1, description="where it is")]]
    prompt: Annotated[str, Field(description="what the model is told there, before its AGENTS.md")]


@with_config(extra="forbid", strict=True)
class SnapshotsTable(TypedDict, total=False):
    """What turns do to the workspace is recorded, so that it can be shown and taken back."""

    enabled: Annotated[bool, Field(description="false: nothing is recorded")]
    max_file_size: Annotated[Positive, Field(description="bytes of a file that is recorded")]
    max_files: Annotated[Positive, Field(description="files that are not ignored; in a bigger folder, none")]
    max_seconds: Annotated[Amount, Field(description="for one look through the folder")]
    keep_days: Annotated[Positive, Field(description="after which records are deleted")]


@with_config(extra="forbid", strict=True)
class FormatterTable(TypedDict, total=False):
    """A program that is run on each file that a tool wrote: a formatter, or a linter."""

    files: Required[
        Annotated[
            list[str],
            Field(min_length=1, description="which: `*.py` in any folder, or a path such as `src/**/*.py`"),
        ]
    ]
    command: Required[
        Annotated[
            list[Annotated[str, Field(min_length=1)]],
            Field(min_length=1, description="its words; `{file}` stands for the file, which else comes last"),
        ]
    ]
    timeout: Annotated[Amount, Field(le=60, description="seconds for one file")]
    enabled: Annotated[bool, Field(description="false: it is not run")]


@with_config(extra="forbid", strict=True)
class ShellTable(TypedDict, total=False):
    """What programs that tools start run in: the shell, formatters, and those of your own tools."""

    cage: Annotated[
        Literal["auto", "always", "off"],
        Field(description="auto: caged where that works; always: nothing runs without; off: no cage"),
    ]
    unasked: Annotated[
        bool, Field(description="false: caged calls are asked about, too; by default not in a trusted folder")
    ]
    env: Annotated[
        list[str],
        Field(description="names of variables that programs get, besides PATH, HOME, LANG and the like"),
    ]
    watch: Annotated[
        bool,
        Field(description="false: faster, but what the cage refuses to write or reach is not told exactly"),
    ]


@with_config(extra="forbid", strict=True)
class ConfigTable(TypedDict, total=False):
    """The whole file."""

    model: Annotated[str, Field(min_length=1, description="the model that answers, as PROVIDER/MODEL")]
    store: Annotated[str, Field(description="the database with all conversations: a file, or postgresql://…")]
    blobs: Annotated[
        str,
        AfterValidator(_place),
        Field(
            description="where attachments go: beside or in the database, file:///, s3://, gs:// or az://…"
        ),
    ]
    migrate: Annotated[
        bool,
        Field(description="bring the store's tables up to date; else `dragoman store migrate` has to"),
    ]
    workspace: Annotated[str, Field(description="the folder that file tools and the shell work in")]
    system: Annotated[str, Field(description="a system prompt for every conversation")]
    project_prompt: Annotated[
        bool, Field(description="false: AGENTS.md and CLAUDE.md of the workspace are not read")
    ]
    mode: Annotated[ModeWord, Field(description="who decides about calls")]
    on_reject: Annotated[Literal["continue", "stop"], Field(description="what a rejection does to the turn")]
    tools: Annotated[
        list[str],
        Field(description="groups: basics, files, shell, web, browser, programs, and what packages bring"),
    ]
    allow: Annotated[Rules, Field(description="PERMISSION or PERMISSION:PATTERN that needs no question")]
    ask: Annotated[Rules, Field(description="what is asked about all the same")]
    deny: Annotated[Rules, Field(description="what must not run")]
    options: Annotated[dict[str, JsonValue], Field(description="of every request, such as temperature")]
    tool_history: Annotated[
        Literal["full", "results", "hint", "none"],
        Field(description="how much of earlier calls the model is sent again"),
    ]
    history_parts: Annotated[
        list[Literal["text", "reasoning", "call", "file", "item"]],
        Field(description="what of earlier messages is sent, besides their text; left out: everything"),
    ]
    compact_at: Annotated[
        Share | Literal[False],
        Field(description="the share of the context at which old messages are summed up; false for never"),
    ]
    continuations: Annotated[
        int,
        Field(
            ge=0,
            description="how often a reply that was cut off is asked to go on; unset, 3 times, and never "
            "where the option max_tokens is set",
        ),
    ]
    private: Annotated[dict[str, str], Field(description="names for texts that no provider may see")]
    review: Annotated[
        ReviewWord | dict[str, ReviewWord],
        Field(description="results that a person sees first; a table says it of tools, by patterns"),
    ]
    tool_budget: Annotated[
        int | str,
        Field(
            description="above which tools of servers are found on demand: a number of tools, a share of the "
            'context such as "10%", or "off"; by default 40 tools or a tenth'
        ),
    ]
    always_tools: Annotated[list[str], Field(description="servers and tools that are never found on demand")]
    small_model: Annotated[str, Field(description="the model for titles and summaries")]
    titles_by_model: Annotated[bool, Field(description="let the model title conversations")]
    title_length: Annotated[
        int, Field(ge=8, le=200, description="characters of a title that is the first words")
    ]
    skills: Annotated[list[str], Field(description="more folders to look for skills in")]
    mcp_file: Annotated[str, Field(description="a JSON file with mcpServers, as other programs write it")]
    limits: AllLimitsTable
    agents: dict[str, AgentTable]
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
