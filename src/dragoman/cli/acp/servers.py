"""MCP servers that an editor names: none of them is started, or asked, before a person has allowed it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from dragoman.errors import BadRequest
from dragoman.messages.ids import new_id
from dragoman.messages.message import canonical
from dragoman.messages.questions import Action, Grant, Rule
from dragoman.redaction import redact_value
from dragoman.runtime import Runtime
from dragoman.tools.authorize import Ask, Authority, Run, authorize
from dragoman.tools.builtin import BUILTIN
from dragoman.tools.mcp.servers import McpServer, parse_server
from dragoman.tools.mcp.source import McpSource
from dragoman.tools.permissions import literal
from dragoman.tools.tool import client_tool
from dragoman.tools.toolbox import Group
from dragoman.turn.acting_agent import load_grants

PERMISSION = "mcp_server"  # `allow = ["mcp_server:npx *"]` asks no question about such servers


class _NoArguments(BaseModel):
    """No model makes this call: the editor does."""


_START = client_tool("start_mcp_server", "Start a server.", _NoArguments, permission=PERMISSION)


class HeldSource:
    """A server's tools, once it is allowed; until then there are none, and nothing of it runs."""

    def __init__(self, source: McpSource) -> None:
        self.name = source.name
        self.where = _shown(source.server)
        self.pattern = _pattern(source.server)
        self.decided = False
        self._source = source
        self._allowed = False

    def settle(self, *, allowed: bool) -> None:
        self.decided = True
        self._allowed = allowed

    def group(self) -> Group:
        return self._source.group() if self._allowed else Group(self.name, ())

    async def ready(self) -> None:
        if self._allowed:
            await self._source.ready()

    async def started(self) -> None:
        if self._allowed:
            await self._source.started()

    async def close(self) -> None:
        await self._source.close()


def read_client_servers(given: Iterable[Any]) -> dict[str, McpServer]:
    """By name. BadRequest where one is described in a way that cannot be followed."""
    found: dict[str, McpServer] = {}
    for one in given:
        if not isinstance(one, Mapping):
            raise BadRequest("a server of mcpServers is an object")
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", str(one.get("name", ""))).strip("-_")[:40]
        kind = one.get("type") or ("stdio" if "command" in one else "http")
        if kind not in ("stdio", "http", "sse"):
            raise BadRequest(f"mcpServers.{name}: a server of the type {kind!r} cannot be reached from here")
        found[name] = parse_server(_table(one, str(kind)), f"mcpServers.{name}", name)
    return found


def held_sources(servers: Mapping[str, McpServer], taken: Iterable[str], workspace: Path) -> list[HeldSource]:
    """One each. Servers of the settings keep their names: what an editor gives takes the place of none."""
    known = set(taken)
    return [
        HeldSource(McpSource(_free(name), server, workspace=workspace, find=lambda reference: None))
        for name, server in servers.items()
        if name not in known
    ]


def _free(name: str) -> str:
    """Groups of our own keep their names, too."""
    return f"editor-{name}" if name in {*BUILTIN, "tools", "output", "skills", "agents"} else name


async def settle_by_rules(
    runtime: Runtime, conversation: str, sources: Sequence[HeldSource]
) -> list[HeldSource]:
    """Those about which a person has to be asked: no rule, and no earlier answer, says anything."""
    services = runtime.services
    authority = Authority(
        rules=services.rules,
        bounds=[*services.bounds, *services.later_denials(())],
        grants=await load_grants(services, conversation, _folder(runtime)),
    )
    asked = []
    for source in sources:
        if source.decided:
            continue
        match authorize(_START, (source.pattern,), authority):
            case Ask():
                asked.append(source)
            case verdict:
                source.settle(allowed=isinstance(verdict, Run))
    return asked


def _folder(runtime: Runtime) -> str | None:
    main = runtime.services.workspaces.main
    return main.path if main is not None else None


async def remember(runtime: Runtime, source: HeldSource, action: Action) -> None:
    """As every other "always": it is listed, and can be revoked."""
    rule = Rule(PERMISSION, literal(source.pattern), action)
    at = runtime.services.clock()
    await runtime.store.add_grant(Grant(new_id("grant"), rule, None, at, None, _folder(runtime)))


def _pattern(server: McpServer) -> str:
    """What would run, without secrets, and a hash of all of it: with another argument, variable or header it
    is another server."""
    whole = canonical([server.command, *server.args, {**server.env}, server.url, {**server.headers}])
    return f"{server.where} #{hashlib.sha256(whole.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _shown(server: McpServer) -> str:
    """What the person is asked about: also the variables it would get, since they decide what it does."""
    given = redact_value({**server.env, **server.headers})
    with_these = (
        ", ".join(f"{name}={value}" for name, value in given.items()) if isinstance(given, dict) else ""
    )
    return f"{server.where} (with {with_these})" if with_these else server.where


def _table(one: Mapping[str, Any], kind: str) -> dict[str, Any]:
    if kind == "stdio":
        return {"command": one.get("command"), "args": one.get("args", []), "env": _pairs(one.get("env"))}
    return {"url": one.get("url"), "transport": kind, "headers": _pairs(one.get("headers"))}


def _pairs(given: Any) -> dict[str, str]:
    """`[{"name": …, "value": …}]` as a table. `${` means nothing there: it is the editor's word."""
    pairs = given if isinstance(given, list) else []
    return {str(one.get("name")): str(one.get("value")) for one in pairs if isinstance(one, Mapping)}
