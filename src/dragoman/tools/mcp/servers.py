"""Read the settings of MCP servers, from tables of `dragoman.toml` or the JSON file of other programs."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, Strict, TypeAdapter, ValidationError, with_config

from dragoman.errors import ConfigError
from dragoman.redaction import redact_arguments, redact_text
from dragoman.sentences import sentence
from dragoman.tools.tool import Replay, Review
from dragoman.web_address import WANTED, web_address

Yes: TypeAlias = Annotated[bool, Strict()]
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=86_400)]
Transport: TypeAlias = Literal["stdio", "http", "sse"]

NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}"  # without a dot: `mcp.NAME.*` is a rule about one server


@with_config(extra="forbid")
@dataclass(slots=True, frozen=True, kw_only=True)
class McpServer:
    """One `[mcp.NAME]` table: a program to start (`command`), or an address to connect to (`url`)."""

    command: Annotated[str | None, Field(description="the program that is the server")] = None
    args: Annotated[tuple[str, ...], Field(description="its arguments; ${NAME} is looked up")] = ()
    env: Annotated[
        dict[str, str], Field(description="variables in addition to PATH and the like; ${NAME} is looked up")
    ] = field(default_factory=dict)
    cwd: Annotated[str | None, Field(description="the folder it runs in; default that of the settings")] = (
        None
    )
    url: Annotated[str | None, Field(description="the address of the server, instead of a command")] = None
    transport: Annotated[
        Transport | None, Field(description="sse for older servers; default from command and url")
    ] = None
    headers: Annotated[dict[str, str], Field(description="headers of each request; ${NAME} is looked up")] = (
        field(default_factory=dict)
    )
    auth: Annotated[Literal["oauth"] | None, Field(description="it wants a sign-in in the browser")] = None
    client_id: Annotated[str | None, Field(description="the ID of a registered client")] = None
    client_secret: Annotated[str | None, Field(description="its secret, as a reference such as ${NAME}")] = (
        None
    )
    client_metadata_url: Annotated[
        str | None, Field(description="address of a published description of this client")
    ] = None
    cage: Annotated[
        Yes, Field(description="run the program in a separate cage: it writes only in its folder")
    ] = False
    hosts: Annotated[
        tuple[str, ...], Field(description="hosts it reaches from its cage, such as api.example.org:443")
    ] = ()
    enabled: Annotated[Yes, Field(description="false keeps the entry unused")] = True
    start_timeout: Annotated[Seconds, Field(description="seconds until its list of tools must arrive")] = 60.0
    patience: Annotated[
        Seconds, Field(description="seconds that a turn waits for its tools at the first start")
    ] = 20.0
    timeout: Annotated[Seconds, Field(description="seconds for one call")] = 120.0
    protocol: Annotated[Literal["auto", "legacy"], Field(description="legacy skips the newest handshake")] = (
        "auto"
    )
    roots: Annotated[Yes, Field(description="it can learn the folder of the workspace")] = False
    sampling: Annotated[Yes, Field(description="it can ask the model, with your approval")] = False
    review: Annotated[Review, Field(description="results that you see before the model")] = "never"
    replay: Annotated[Replay | None, Field(description="what happens to a call that a crash interrupted")] = (
        None
    )

    teams: Annotated[tuple[str, ...], Field(description="teams that can use it; default everybody")] = ()

    def __post_init__(self) -> None:
        if (self.command is None) == (self.url is None):
            raise ValueError("a server needs either a command or a url")
        if self.command is not None and not self.command.strip():
            raise ValueError("the command is empty")
        if self.url is not None and web_address(self.url, references=True) is None:
            raise ValueError(WANTED)
        if (self.transport or self.kind) == "stdio" and self.url is not None:
            raise ValueError("a url needs http or sse, not stdio")
        if self.transport in ("http", "sse") and self.command is not None:
            raise ValueError("a command needs stdio")
        if self.command is not None and (self.headers or self.auth):
            raise ValueError("headers and auth need a url; pass a command what it needs in env")
        if self.url is not None and (self.args or self.env or self.cwd):
            raise ValueError("args, env and cwd need a command")
        if self.url is not None and (self.cage or self.hosts):
            raise ValueError("a cage needs a command")
        if self.client_secret is not None and "${" not in self.client_secret:
            raise ValueError("write client_secret as a reference such as ${NAME}, never the secret itself")

    @property
    def kind(self) -> Transport:
        return self.transport or ("stdio" if self.command is not None else "http")

    @property
    def where(self) -> str:
        """The command line or the address, for people, without passwords and keys."""
        if self.url is not None:
            return redact_text(self.url)
        return " ".join([redact_text(self.command or ""), *redact_arguments(self.args)])


SERVER: TypeAdapter[McpServer] = TypeAdapter(McpServer)


def read_servers(
    tables: Mapping[str, Any],
    file: Path | None = None,
    origins: Mapping[str, str] | None = None,
    check: Callable[[Path, bytes], None] | None = None,
) -> dict[str, McpServer]:
    """Return the servers of a JSON file, if it exists, then those of the tables, which win.

    `origins` gives the place where `mcp.NAME` is set, for error messages. `check` raises for file content
    that must not be used.
    """
    servers = read_json(file, check) if file is not None else {}
    for name, table in tables.items():
        origin = (origins or {}).get(f"mcp.{name}")
        servers[name] = parse_server(table, f"{origin}: mcp.{name}" if origin else f"mcp.{name}", name)
    return servers


def parse_server(table: Any, at: str, name: str) -> McpServer:
    """Return one server from a file's table. `at` begins the error message."""
    if not re.fullmatch(NAME, name):
        raise ConfigError(sentence("mcp.name", at=at))
    try:
        return SERVER.validate_python(table)
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(str(step) for step in fault["loc"])
        raise ConfigError(
            sentence("mcp.wrong", at=f"{at}.{place}" if place else at, why=_describe(fault))
        ) from error


# ── the file other programs write ─────────────────────────────────────────────────────────────────

_HTTP = ("http", "streamable-http", "streamableHttp", "streamable_http")


def read_json(file: Path, check: Callable[[Path, bytes], None] | None = None) -> dict[str, McpServer]:
    """Return the servers of a file with `mcpServers` (or `servers`). Its other content is ignored."""
    try:
        data = file.read_bytes()
        if check is not None:
            check(file, data)
        content = json.loads(data.decode())
    except OSError as error:
        raise ConfigError(sentence("file.not_read", file=file, error=error.strerror)) from error
    except ValueError as error:
        raise ConfigError(sentence("mcp.no_json", file=file, error=error)) from error
    servers = (
        (content.get("mcpServers") or content.get("servers") or {}) if isinstance(content, dict) else None
    )
    if not isinstance(servers, dict):
        raise ConfigError(sentence("mcp.no_servers", file=file))
    read: dict[str, McpServer] = {}
    for given, entry in servers.items():
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", given).strip("-_")[:40]
        at = f"{file}: mcpServers.{given}"
        if not isinstance(entry, dict):
            raise ConfigError(sentence("mcp.no_object", at=at))
        if name in read:
            raise ConfigError(sentence("mcp.same_name", at=at, name=name))
        read[name] = parse_server(_as_table(entry), at, name)
    return read


def _as_table(entry: Mapping[str, Any]) -> dict[str, Any]:
    url = entry.get("url") or entry.get("httpUrl") or entry.get("serverUrl")
    keys = ("command", "args", "env", "cwd") if not url else ("headers", "auth")
    table = {key: entry[key] for key in keys if entry.get(key)}
    kind = entry.get("type") or entry.get("transport")
    if url:
        table["url"] = url
        table["transport"] = "sse" if kind == "sse" else "http" if kind in _HTTP else None
        if table.get("auth") != "oauth":
            table.pop("auth", None)
    if entry.get("disabled") is True or entry.get("enabled") is False:
        table["enabled"] = False
    return table


def _describe(fault: Mapping[str, Any]) -> str:
    if fault["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        return "unknown key"
    message = str(fault["msg"]).removeprefix("Value error, ")
    return f"{message[0].lower()}{message[1:]}"


# Names for MCP tools that every provider accepts, always the same for the same tool.


LONGEST_NAME = 64


def local_name(tool: str) -> str:
    """Return the tool's name in letters, digits, `_` and `-`. A changed name gets a distinguishing mark.

    The result depends only on the name, so it stays the same when other tools come and go.
    """
    valid = re.sub(r"[^A-Za-z0-9_-]", "_", tool)
    return (
        tool
        if valid == tool and 0 < len(tool) <= LONGEST_NAME - 2
        else _marked(valid, tool, LONGEST_NAME - 2)
    )


def offered_name(server: str, tool: str) -> str:
    """Return `server_tool`, truncated to the maximum length, with a mark if it was truncated."""
    name = f"{prefix(server)}_{local_name(tool)}"
    return name if len(name) <= LONGEST_NAME else _marked(name, f"{server}\0{tool}", LONGEST_NAME)


def prefix(server: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", server)


def _marked(text: str, whole: str, room: int) -> str:
    mark = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{text[: room - 7]}_{mark}"
