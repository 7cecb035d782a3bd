"""Builds the runtime that settings describe, and reports settings that cannot be applied."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.config.plugins import formatters_of, load_plugins
from dragoman.config.project_prompt import ProjectPrompt, project_prompt
from dragoman.config.rule_checks import LaterDenials, check_misspelled, find_idle_rules
from dragoman.config.settings import Settings, data_folder, user_file, user_folder
from dragoman.config.sources import catalog_from
from dragoman.config.tables import AgentTable, parse_duration
from dragoman.config.trust.contents import CODE, expand, inspect_paths, inspect_project
from dragoman.config.workspaces import workspace_of, workspaces_of
from dragoman.errors import BadRequest, ConfigError, NotFound
from dragoman.installed import describe_missing, installed, load_installed
from dragoman.messages.media import CHAT, ModelType
from dragoman.messages.questions import Rule
from dragoman.plugins.limits import Team
from dragoman.providers.catalog import Catalog, split_variant
from dragoman.providers.chain import names_in
from dragoman.providers.wires import wire_for
from dragoman.runtime import Runtime
from dragoman.sentences import sentence
from dragoman.store.address import StoreAddress, StoreFile, is_url, store_address
from dragoman.telemetry.start import telemetry_from_environment
from dragoman.tools.builtin import BUILTIN
from dragoman.tools.builtin.formatters import with_formatters
from dragoman.tools.builtin.media_tools import media_group
from dragoman.tools.cage.policy import CageSettings
from dragoman.tools.deferred import budget_of
from dragoman.tools.mcp.servers import McpServer, read_servers
from dragoman.tools.mcp.source import sources_of
from dragoman.tools.mcp.tool_list import KeptLists
from dragoman.tools.permissions import READS, SECRET_FILES, parse_rule
from dragoman.tools.program import is_installed
from dragoman.tools.python_files import load_folder
from dragoman.tools.skills import Skills
from dragoman.tools.tool import Tool
from dragoman.tools.toolbox import Group, Source
from dragoman.turn.agent import Agent, Limits
from dragoman.turn.drivers.jobs import TurnLimits
from dragoman.turn.services import SharedPrompt
from dragoman.wire.wire import Model
from dragoman.workspace.states import SnapshotLimits

if TYPE_CHECKING:
    from dragoman.providers.models import Models

DEFAULT_TOOLS = ("basics", "files", "shell", "web", "browser", "media")


@dataclass(slots=True, frozen=True)
class Built:
    """A runtime that is not open yet. `warnings` are for the user. The runtime works without the parts they
    name."""

    runtime: Runtime
    warnings: list[str] = field(default_factory=list)
    # The project's instructions for the model, which are part of every request.
    prompt: ProjectPrompt | None = None


def catalog_of(settings: Settings) -> Catalog:
    """Return the built-in catalog with the providers of the settings over it."""
    return catalog_from(settings.files, settings.sources.check)


def store_of(settings: Settings) -> StoreAddress:
    """Return the address of conversations and of their attachments."""
    address, values = _database_of(settings), settings.values
    try:
        return replace(address, blobs=values.get("blobs"), migrates=values.get("migrate", True))
    except ConfigError as error:
        raise ConfigError(f"{settings.origins.get('blobs', 'settings')}: blobs: {error}") from None


def _database_of(settings: Settings) -> StoreAddress:
    """Return the address of the database.

    A relative path in the user's own file starts from that file. A cloned folder could contain a database
    with grants and turns, and a database cannot be trusted by its hash, since it changes.
    """
    named = settings.values.get("store")
    if not named:
        return StoreFile(data_folder() / "dragoman.db")
    if is_url(named):
        return store_address(named)
    if settings.origins.get("store", "").startswith(f"{user_file()}:"):
        return StoreFile(user_folder() / expand(named))
    return StoreFile(settings.path(named))


def servers_of(settings: Settings) -> dict[str, McpServer]:
    """Return the MCP servers of the settings and of their mcp_file, by name."""
    return _read_servers(settings, settings.values.get("mcp", {}), settings.values.get("mcp_file"))


def turns_of(settings: Settings) -> dict[str, Any]:
    """Return the server's role and limits, as runtime arguments."""
    table: dict[str, Any] = {**settings.values.get("workers", {})}
    role = table.pop("role", "both")
    return {"role": role, "turn_limits": TurnLimits(**table) if table else None}


def build_runtime(
    settings: Settings,
    *,
    model: Models | Model | Callable[[str | None], Model],
    tools: Iterable[Tool | Group | Source] = (),
    without: Iterable[str] = (),
    store: Path | None = None,
    **more: Any,
) -> Built:
    """Build the runtime of these settings, with a model that was found for it (`providers/choice.py`).

    `tools` come before all others. `without` leaves out built-in groups that do not suit the caller.
    """
    values, warnings = settings.values, list[str]()
    workspace = workspace_of(settings)
    folders = _code_folders(settings, warnings)
    address = store_of(settings) if store is None else StoreFile(store)
    main, others = workspaces_of(settings, address)
    runtime = Runtime(
        address,
        model=model,
        tools=[
            *tools,
            *_named_tools(settings, set(without), model),
            *_load_own_tools(folders, warnings),
            *_find_skills(settings, warnings),
            *_mcp_sources(settings, workspace),
        ],
        agents=[agent_of(settings, name, table) for name, table in values.get("agents", {}).items()],
        plugins=load_plugins(settings, folders, warnings),
        rules=[
            Rule("skills", "*", "allow", sentence("rule.built_in")),
            *_reads(settings),
            *_rules(settings, values, ""),
        ],
        later_denials=LaterDenials(settings.files),
        workspace=main,
        workspaces=others,
        cage=cage_of(settings),
        **snapshot_options(settings, address),
        **_runtime_options(values),
        **{"telemetry": telemetry_from_environment(), **more},
    )
    check_misspelled(runtime)
    if "programs" in values.get("tools", ()) and not is_installed():
        warnings.append(describe_missing("pydantic_monty") or "")
    return Built(runtime, [*warnings, *find_idle_rules(runtime)], project_prompt(settings))


def snapshot_options(settings: Settings, store: StoreAddress) -> dict[str, Any]:
    """Return the runtime options for recording the workspace: whether, how much, and where."""
    table = settings.values.get("snapshots", {})
    limits = SnapshotLimits()
    limits = replace(
        limits,
        file_bytes=table.get("max_file_size", limits.file_bytes),
        files=table.get("max_files", limits.files),
        seconds=table.get("max_seconds", limits.seconds),
        days=table.get("keep_days", limits.days),
    )
    folder = store.folder(data_folder()) / "snapshots"
    return {"snapshots": limits if table.get("enabled", True) else False, "snapshot_folder": folder}


def cage_of(settings: Settings) -> CageSettings:
    """Return the sandbox for programs. It runs without approval only if no part of the folder was left out as
    untrusted."""
    table = settings.values.get("shell", {})
    unasked = table.get("unasked", True) and not settings.sources.left_out
    return CageSettings(
        table.get("cage", "auto"), unasked, tuple(table.get("env", ())), table.get("watch", True)
    )


def find_errors(settings: Settings, known: Sequence[str] = ()) -> list[str]:
    """Return every reason why these settings cannot be applied.

    They are the errors of reading (`known`) and those of each part, tried separately so that no mistake hides
    the next.
    """
    errors = list(known)

    def attempt(part: Callable[..., object], *arguments: object) -> None:
        try:
            part(*arguments)
        except ConfigError as error:
            errors.append(str(error))

    values, agents = settings.values, settings.values.get("agents", {})
    attempt(workspace_of, settings)
    attempt(store_of, settings)
    attempt(formatters_of, settings)
    for group in values.get("tools", []):
        attempt(_check_group, settings, group)
    tables: dict[str, Mapping[str, Any]] = {"": values}
    tables |= {f"agents.{name}": agent for name, agent in agents.items()}
    for at, table in tables.items():
        for action in ("allow", "ask", "deny"):
            for text in table.get(action, []):
                attempt(_rules, settings, {action: [text]}, at)
    for name, server in values.get("mcp", {}).items():
        attempt(_read_servers, settings, {name: server}, None)
    attempt(_read_servers, settings, {}, values.get("mcp_file"))
    try:
        catalog = catalog_of(settings)
    except ConfigError as error:
        return errors or [str(error)]  # It reads the same files, whose errors are known already.
    attempt(check_model, settings, catalog, "model", values.get("model"))
    attempt(_check_options, settings, catalog, "options", values.get("model"))
    for name, agent in agents.items():
        attempt(check_model, settings, catalog, f"agents.{name}", agent.get("model"))
        attempt(_check_options, settings, catalog, f"agents.{name}.options", agent.get("model"))
    return errors


def _check_options(settings: Settings, catalog: Catalog, at: str, model: str | None) -> None:
    """Check these options against the wire of this model, or of the general one."""
    table: Any = settings.values
    for step in at.split("."):
        table = table.get(step, {})
    named = model or settings.values.get("model")
    try:
        for full in names_in(named) if table and named else ():
            provider, name = catalog.find(split_variant(full)[0])
            traits = catalog.traits(provider, name)
            extra = provider.extra if traits.type == CHAT else provider.extra is True
            wire_for(provider, traits, name).check_options(table, model=full, extra=extra)
    except NotFound:
        return  # The model's error is reported already.
    except BadRequest as error:
        origin = settings.origins.get(at) or settings.origins.get(at.partition(".")[0], "settings")
        raise ConfigError(f"{origin}: {at}: {error}") from error


def check_model(settings: Settings, catalog: Catalog, at: str, model: str | None) -> None:
    try:
        for name in names_in(model) if model is not None else ():
            catalog.find(name)
    except NotFound as error:
        raise ConfigError(f"{settings.origins.get(at, 'settings')}: {at}: {error}") from error


_PASSED_ON = (
    *("system", "options", "mode", "on_reject", "tool_history", "history_parts", "private"),
    *("titles_by_model", "title_length", "review", "small_model", "continuations"),
    *("tool_budget", "always_tools"),
)


def teams_of(values: Mapping[str, Any]) -> dict[str, Team]:
    """Return the teams of the settings."""
    return {
        name: Team(**{**table, "members": frozenset(table.get("members", []))})
        for name, table in values.get("teams", {}).items()
    }


def _runtime_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a runtime takes under the same names. Missing ones keep its defaults."""
    passed = {name: values[name] for name in _PASSED_ON if name in values}
    passed.update(values.get("limits", {}))
    passed["teams"] = teams_of(values)
    passed["prompts"] = {
        name: SharedPrompt(table["text"], tuple(table.get("teams", ())))
        for name, table in values.get("prompts", {}).items()
    }
    if (untouched := values.get("retention", {}).get("conversations")) is not None:
        passed["retention"] = parse_duration(untouched)
    if (kept := values.get("retention", {}).get("audit")) is not None:
        passed["audit_retention"] = parse_duration(kept)
    if "compact_at" in values:
        passed["compact_at"] = values["compact_at"] or None
    return passed


def _named_tools(settings: Settings, without: set[str], model: object) -> list[Tool | Group | Source]:
    """Return the built-in groups and installed packages that the settings name.

    Tools that need a model of another type are included if such a model exists.
    """
    names = settings.values.get("tools", list(DEFAULT_TOOLS))
    for name in names:
        _check_group(settings, name)
    chosen = [name for name in dict.fromkeys(names) if name not in without]
    made = {name: BUILTIN[name]() for name in chosen if name in BUILTIN and name != "media"}
    if "files" in made:
        made["files"] = with_formatters(
            made["files"], formatters_of(settings), check=lambda: _check_programs(settings)
        )
    find_types: Callable[[], set[ModelType]] = getattr(model, "types", set)  # A single model has no others.
    if "media" in chosen and (types := find_types()):
        made["media"] = media_group(types)
    return [
        one
        for name in chosen
        if name in made or name not in BUILTIN
        for one in ([made[name]] if name in made else _installed(name))
    ]


def _installed(name: str) -> list[Any]:
    """Return what an installed package provides: a tool, a group, a source, a list, or a factory of these."""
    brought: Any = load_installed("tools", name)
    if not isinstance(brought, Tool | Group | list | tuple) and callable(brought):
        brought = brought()
    return [*brought] if isinstance(brought, list | tuple) else [brought]


def _check_group(settings: Settings, name: str) -> None:
    if name in BUILTIN:
        return
    known = [*BUILTIN, *installed("tools")]
    if name not in known:
        origin = settings.origins.get("tools", "settings")
        raise ConfigError(f"{origin}: unknown group {name!r}. Choose one of {', '.join(known)}.")


def _load_own_tools(folders: Iterable[Path], warnings: list[str]) -> list[Tool | Group]:
    """Load the `tools` folders next to the settings files."""
    found: list[Tool | Group] = []
    for folder in folders:
        tools, wrong = load_folder(folder / "tools")
        found += [one for one in tools if one.name not in {other.name for other in found}]
        warnings += wrong
    return found


def _code_folders(settings: Settings, warnings: list[str]) -> list[Path]:
    """Return folders with a settings file whose code may be loaded: the user's own and trusted ones.

    Without a settings file, nothing is loaded.
    """
    folders = [
        file.resolve().parent if file == user_file() else file.absolute().parent for file in settings.files
    ]
    return [
        folder
        for file, folder in zip(settings.files, folders, strict=True)
        if file == user_file() or _may_load(settings, folder, warnings)
    ]


def _may_load(settings: Settings, folder: Path, warnings: list[str]) -> bool:
    """Return whether the code of a folder, other than the user's own, is still the trusted one."""
    if folder.resolve() not in settings.sources.folders:
        return False
    found = inspect_paths(folder, [folder / name for name in CODE])
    if found.unsafe is None and found.paths().items() <= settings.sources.accepted.items():
        return True
    warnings.append(f"{folder}: its code was changed since it was looked at: start again")
    return False


def _find_skills(settings: Settings, warnings: list[str]) -> list[Source]:
    """Find skills.

    A folder's skills are used as they were when trusted, without later additions or changes.
    """
    folders = settings.skill_folders()
    accepted = [Path(file) for file in settings.sources.accepted]
    used = [
        one for one, own in folders if own or any(file.is_relative_to(one.resolve()) for file in accepted)
    ]
    owned = [one.resolve() for one, own in folders if own]

    def accepts(file: Path, data: bytes) -> bool:
        own = any(file.resolve().is_relative_to(folder) for folder in owned)
        return own or settings.sources.accepts(file, data)

    skills = Skills(used, accepts=accepts)
    warnings += skills.warnings
    return [skills]


def _mcp_sources(settings: Settings, workspace: Path) -> list[Source]:
    servers = servers_of(settings)
    if not servers:
        return []
    kept = KeptLists(lists_folder())
    return [*sources_of(servers, workspace=workspace, check=lambda: _check_programs(settings), kept=kept)]


def lists_folder() -> Path:
    """Return the folder for cached tool lists of servers."""
    return data_folder() / "mcp"


def _check_programs(settings: Settings) -> None:
    """Raise ConfigError if a program started by a trusted folder's settings has changed since."""
    for file in settings.files:
        found = inspect_project(file.parent, file.name)
        if file == user_file() or found.folder not in settings.sources.folders:
            continue
        accepted = settings.sources.accepted
        for name in found.started:
            if accepted.get(os.path.realpath(found.folder / name)) != found.files[name]:
                raise ConfigError(f"{name} in {found.folder} changed after its review. Start again.")


def _read_servers(settings: Settings, tables: Mapping[str, Any], file: str | None) -> dict[str, McpServer]:
    path = settings.path(file) if file else None
    servers = read_servers(tables, path, settings.origins, settings.check_servers)
    # Each server runs where the settings are. Its command then names the trusted files, whichever subfolder
    # the program was started in.
    return {
        name: replace(server, cwd=str(settings.path(server.cwd or "."))) if server.command else server
        for name, server in servers.items()
    }


def agent_of(settings: Settings, name: str, table: AgentTable) -> Agent:
    """Return the agent of a settings table. Raise ConfigError if one of its rules is invalid."""
    tools = table.get("tools")
    return Agent(
        name=name,
        description=table.get("description", ""),
        prompt=table.get("prompt", ""),
        model=table.get("model"),
        mode=table.get("mode"),
        options=table.get("options", {}),
        tools=tuple(tools) if tools is not None else None,
        rules=tuple(_rules(settings, table, f"agents.{name}")),
        limits=replace(Limits(), **table.get("limits", {})),
        tool_budget=budget_of(table["tool_budget"]) if "tool_budget" in table else None,
        handoffs=tuple(table.get("handoffs", ())),
        teams=tuple(table.get("teams", ())),
    )


def _reads(settings: Settings) -> list[Rule]:
    """Return the built-in rules for reading the workspace: allowed, but likely secrets need approval.

    An untrusted project gets none of them. Reading rules in the settings override them.
    """
    if settings.sources.left_out:
        return []
    origin = sentence("rule.built_in")
    asked = (Rule(READS, pattern, "ask", origin) for pattern in SECRET_FILES)
    return [Rule(READS, "*", "allow", origin), *asked]


def _rules(settings: Settings, table: Mapping[str, Any], at: str) -> list[Rule]:
    """Return the allowing, then the asking, then the denying rules: the last match wins."""
    rules = []
    for action in ("allow", "ask", "deny"):
        for place, text in enumerate(table.get(action, [])):
            whole = settings.origins.get(at or action, "settings")
            path = f"{at}.{action}.{place}" if at else f"{action}.{place}"
            try:
                rules.append(parse_rule(text, action, settings.rule_origins.get(path, whole)))
            except ConfigError as error:
                raise ConfigError(f"{whole}: {action}: {error}") from error
    return rules
