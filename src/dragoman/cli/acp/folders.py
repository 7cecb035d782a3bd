"""Manage the runtimes behind an editor's sessions: one for each folder, with its options and MCP servers."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, JsonValue

from dragoman.cli.acp.editor import Editor
from dragoman.cli.flags.chat import AcpFlags
from dragoman.cli.folder_trust import settings_for
from dragoman.cli.model_choice import ChosenModel, choose_model
from dragoman.config.build import DEFAULT_TOOLS, build_runtime, servers_of
from dragoman.config.project_prompt import Template, templates
from dragoman.errors import BadRequest
from dragoman.messages.ids import new_id
from dragoman.messages.message import canonical
from dragoman.messages.questions import MODES, Action, Grant, Rule
from dragoman.redaction import redact_value
from dragoman.runtime import Runtime
from dragoman.tools.authorize import Ask, Authority, Run, authorize
from dragoman.tools.builtin import BUILTIN
from dragoman.tools.mcp.servers import McpServer, parse_server
from dragoman.tools.mcp.source import McpSource
from dragoman.tools.permissions import literal
from dragoman.tools.tool import client_tool
from dragoman.tools.toolbox import Group
from dragoman.turn.steps.authority import load_grants

PERMISSION = "mcp_server"  # `allow = ["mcp_server:npx *"]` permits such servers without approval
_log = logging.getLogger("dragoman.acp")
_MOST_MODELS = 60  # maximum number of models to choose from
_MODES = {
    "auto": ("Auto", "Rules decide which calls run, and which need your approval"),
    "ask": ("Ask", "Every call needs your approval"),
    "manual": ("Manual", "You run each call yourself"),
    "off": ("No tools", "The model calls nothing"),
}


class _NoArguments(BaseModel):
    """The arguments of a call that the editor makes, and no model."""


_START = client_tool("start_mcp_server", "Start a server.", _NoArguments, permission=PERMISSION)


class HeldSource:
    """The tools of a server that must be allowed first. Until then it has no tools, and nothing of it
    runs."""

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
    """Return the described servers by name. Raises BadRequest for an invalid description."""
    found: dict[str, McpServer] = {}
    for one in given:
        if not isinstance(one, Mapping):
            raise BadRequest("Each server in 'mcpServers' must be an object.")
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", str(one.get("name", ""))).strip("-_")[:40]
        kind = one.get("type") or ("stdio" if "command" in one else "http")
        if kind not in ("stdio", "http", "sse"):
            raise BadRequest(
                f"mcpServers.{name}: Dragoman cannot connect to a server of type "
                f"{kind!r}. Use stdio, http or sse."
            )
        found[name] = parse_server(_table(one, str(kind)), f"mcpServers.{name}", name)
    return found


def held_sources(servers: Mapping[str, McpServer], taken: Iterable[str], workspace: Path) -> list[HeldSource]:
    """Return a held source for each server. Servers of the settings keep their names, so an editor cannot
    replace them."""
    known = set(taken)
    return [
        HeldSource(McpSource(_free(name), server, workspace=workspace, find=lambda reference: None))
        for name, server in servers.items()
        if name not in known
    ]


def _free(name: str) -> str:
    """Return a name that does not collide with a built-in group."""
    return f"editor-{name}" if name in {*BUILTIN, "tools", "output", "skills", "agents"} else name


async def settle_by_rules(
    runtime: Runtime, conversation: str, sources: Sequence[HeldSource]
) -> list[HeldSource]:
    """Apply rules and earlier answers to these servers. Returns those that still need the user's approval."""
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
    """Store the answer as a grant. Like any "always", it is listed and can be revoked."""
    rule = Rule(PERMISSION, literal(source.pattern), action)
    at = runtime.services.clock()
    await runtime.store.add_grant(Grant(new_id("grant"), rule, None, at, None, _folder(runtime)))


def _pattern(server: McpServer) -> str:
    """Return the pattern of a server: its command without secrets, and a hash of everything. A different
    argument, variable or header makes it a different server."""
    whole = canonical([server.command, *server.args, {**server.env}, server.url, {**server.headers}])
    return f"{server.where} #{hashlib.sha256(whole.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _shown(server: McpServer) -> str:
    """Return the text for the approval request. It includes the variables, because they determine what the
    server does."""
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
    """Convert `[{"name": …, "value": …}]` to a table. `${` in it is not a reference: the editor means it
    literally."""
    pairs = given if isinstance(given, list) else []
    return {str(one.get("name")): str(one.get("value")) for one in pairs if isinstance(one, Mapping)}


@dataclass(slots=True, frozen=True)
class OpenWorkspace:
    """A working folder: its runtime, models, commands, and servers that still need approval."""

    folder: Path
    runtime: Runtime
    chosen: ChosenModel
    templates: dict[str, Template]
    held: list[HeldSource]

    def models(self, current: str | None) -> list[str]:
        """Return the models to choose from: the current one, and named ones whose provider has a key."""
        catalog, keys = self.chosen.models.catalog, self.chosen.models.keys
        named = [
            f"{provider.name}/{model}"
            for provider in catalog.providers.values()
            if not provider.local and keys.find(provider) is not None
            for model in (*([provider.default] if provider.default else []), *provider.models)
            if "*" not in model and "?" not in model
        ]
        first = [current] if current is not None else []
        return list(dict.fromkeys([*first, self.chosen.name, *named]))[:_MOST_MODELS]


class EditorFolders:
    """Opens each folder once, and closes all of them at the end."""

    def __init__(self, flags: AcpFlags, stack: AsyncExitStack) -> None:
        self._flags = flags
        self._stack = stack
        self._open: dict[str, OpenWorkspace] = {}
        self._opening = asyncio.Lock()

    async def open(self, folder: str, servers: Sequence[Any], editor: Editor) -> OpenWorkspace:
        path = whole_path(folder)
        key = canonical([str(path), list(servers)])
        async with self._opening:
            if key not in self._open:
                self._open[key] = await self._opened(path, servers, editor)
            return self._open[key]

    async def _opened(self, folder: Path, servers: Sequence[Any], editor: Editor) -> OpenWorkspace:
        flags = self._flags
        values = {"model": flags.model, "mode": flags.mode, "system": flags.system, "workspace": str(folder)}
        settings = settings_for(flags, values, start=folder)
        chosen = await choose_model(settings)
        chosen.models(None)  # A missing key must raise an error before anything is stored.
        without = {"browser"}
        wanted = [name for name in settings.values.get("tools", DEFAULT_TOOLS) if name not in without]
        groups = editor.groups(wanted)
        held = held_sources(read_client_servers(servers), servers_of(settings), folder)
        built = build_runtime(
            settings,
            model=chosen.models,
            tools=[*groups, *held],
            without={*without, *(group.name for group in groups)},
            allow=flags.allow or (),
            deny=flags.deny or (),
            adopts=False,  # Turns that other programs left are resumed only when their session is opened.
        )
        for warning in built.warnings:
            _log.warning("left out: %s", warning)
        await self._stack.enter_async_context(chosen.models)
        runtime = await self._stack.enter_async_context(built.runtime)
        return OpenWorkspace(folder, runtime, chosen, templates(settings), held)


def whole_path(folder: str) -> Path:
    """Return a folder that an editor named. Raises BadRequest if it is invalid."""
    path = Path(folder)
    if not path.is_absolute() or not path.is_dir():
        raise BadRequest(f"'cwd' must be an absolute path, not {folder!r}.")
    return path.resolve()


def session_state(workspace: OpenWorkspace, settings: Mapping[str, JsonValue]) -> dict[str, Any]:
    """Return the mode in the protocol's older form, and all settings as options."""
    modes = [{"id": one, "name": _MODES[one][0], "description": _MODES[one][1]} for one in MODES]
    return {
        "modes": {"currentModeId": _mode(workspace, settings), "availableModes": modes},
        "configOptions": _options(workspace, settings),
    }


def check_choice(
    workspace: OpenWorkspace, settings: Mapping[str, JsonValue], option: str, value: str
) -> None:
    """Raise BadRequest if the option or its value does not exist."""
    offered = {one["id"]: one for one in _options(workspace, settings)}
    if option not in offered:
        raise BadRequest(f"Unknown option {option!r}. Choose one of {', '.join(offered)}.")
    if option == "model":
        # raises NotFound, or an error about a missing key, before the choice is stored
        workspace.runtime.services.model(value)
    elif value not in [one["value"] for one in offered[option]["options"]]:
        raise BadRequest(f"{option} cannot be {value!r}")


def _mode(workspace: OpenWorkspace, settings: Mapping[str, JsonValue]) -> str:
    return str(settings.get("mode") or workspace.runtime.services.mode)


def _options(workspace: OpenWorkspace, settings: Mapping[str, JsonValue]) -> list[dict[str, Any]]:
    model, agents = settings.get("model"), workspace.runtime.services.agents
    current = model if isinstance(model, str) else workspace.chosen.name
    found = [
        _select("mode", "Mode", _mode(workspace, settings), [(one, *_MODES[one]) for one in MODES]),
        _select("model", "Model", current, [(one, one) for one in workspace.models(current)]),
    ]
    if agents:
        chosen = str(settings.get("agent") or "")
        named = [(agent.name, agent.name, agent.description) for agent in agents.values()]
        found.append(_select("agent", "Agent", chosen, [("", "None"), *named]))
    return found


def _select(id: str, name: str, current: str, options: Sequence[tuple[str, ...]]) -> dict[str, Any]:
    offered = [
        {"value": one[0], "name": one[1], **({"description": one[2]} if len(one) > 2 and one[2] else {})}
        for one in options
    ]
    category = {"category": id} if id in ("mode", "model") else {}
    return {"id": id, "name": name, "type": "select", **category, "currentValue": current, "options": offered}
