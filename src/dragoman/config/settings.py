"""Reads settings from files, environment and flags, and records where each was set."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from dragoman.config.sources import (
    Decide,
    Sources,
    consider_paths,
    decide_from_memory,
    find_files,
    find_sources,
    user_file,
)
from dragoman.config.tables import ConfigTable
from dragoman.config.trust.contents import (
    BYTE_ORDER_MARK,
    INSTRUCTIONS,
    PROMPTS,
    SKILLS,
    FolderContents,
    expand,
    inspect_project,
)
from dragoman.config.trust.contents import SETTINGS as FILE
from dragoman.errors import ConfigError
from dragoman.store.address import is_url
from dragoman.stored_keys import data_folder, user_folder

# ── lines of a settings file ──────────────────────────────────────────────────────────────────────
# Finds the line of a setting in a TOML file.


_HEADER = re.compile(r"^\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_STEP = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


def line_of(text: str, path: Sequence[str | int]) -> int | None:
    """Return the line, counted from 1, of the longest part of the path that exists."""
    wanted = tuple(str(step) for step in path)
    best: tuple[int, int] | None = None
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _steps(header.group(1))
            here = table
        elif key := _KEY.match(line):
            here = (*table, *_steps(key.group(1)))
        else:
            continue
        if wanted[: len(here)] == here and (best is None or len(here) > best[0]):
            best = (len(here), number)
    return best[1] if best else None


def rule_lines(text: str, tables: Mapping[str, Any]) -> dict[str, int]:
    """Return the line of each permission rule, by its path: `allow.0`, `agents.clerk.deny.2`."""
    found: dict[str, int] = {}
    agents = tables.get("agents")
    named = agents.items() if isinstance(agents, dict) else ()
    rooms = [((), tables), *((("agents", name), agent) for name, agent in named if isinstance(agent, dict))]
    lines = text.splitlines()
    for path, table in rooms:
        for action in ("allow", "ask", "deny"):
            at = line_of(text, (*path, action)) or 1
            for place, rule in enumerate(table.get(action) or ()):
                after = (n for n in range(at, len(lines) + 1) if _quotes(lines[n - 1], str(rule)))
                at = next(after, at)
                found[".".join((*path, action, str(place)))] = at
    return found


def _quotes(line: str, rule: str) -> bool:
    return any(f"{quote}{rule}{quote}" in line for quote in "\"'")


def _steps(key: str) -> tuple[str, ...]:
    return tuple(step.strip("\"'") for step in _STEP.findall(key))


__all__ = [
    "FILE",
    "Settings",
    "data_folder",
    "find_files",
    "load",
    "read",
    "schema",
    "user_file",
    "user_folder",
]

_CONFIG: TypeAdapter[ConfigTable] = TypeAdapter(ConfigTable)
_MERGED = (
    *("limits", "agents", "plugins", "mcp", "server", "retention", "snapshots", "workspaces", "formatters"),
    *("teams", "prompts"),
    *("providers", "families", "options", "private"),
)
# In the environment, they are relative to the current folder, like flags.
_PATHS = ("store", "workspace", "mcp_file")
_TABLES = ("server", "limits", "retention", "snapshots", "shell")  # tables whose settings a variable can name
_NOT_SETTINGS = ("CONFIG", "TRUST", "CACHE", "RECORDINGS")  # Dragoman variables that are not settings.


@dataclass(slots=True, frozen=True)
class Settings:
    """The effective settings. `origins` records for each path (`server.port`) where it was set."""

    values: ConfigTable
    files: tuple[Path, ...] = ()  # the farthest first
    origins: Mapping[str, str] = field(default_factory=dict)
    sources: Sources = field(default_factory=Sources)  # usable files, and what was left out
    rule_origins: Mapping[str, str] = field(default_factory=dict)  # file and line of each rule (`allow.0`)

    @property
    def folder(self) -> Path:
        """Return the base of relative paths: the folder of the nearest settings file, or the current one."""
        near = [file for file in self.files if file != user_file()]
        return near[-1].parent if near else self.sources.start

    def path(self, text: str) -> Path:
        return self.folder / expand(text)

    @property
    def workspace(self) -> Path:
        """Return the configured folder, else the folder of the settings, else the current one."""
        named = self.values.get("workspace")
        return self.path(named) if named else self.folder

    @property
    def workspaces(self) -> dict[str, Path]:
        """Return the other folders for conversations, by name."""
        return {name: self.path(one["folder"]) for name, one in self.values.get("workspaces", {}).items()}

    def skill_folders(self) -> list[tuple[Path, bool]]:
        """Return the folders to search for skills, each with whether the user owns it, whatever
        created it."""
        named = self.values.get("skills", [])
        return [
            *((self.path(text), self._is_own("skills", text)) for text in named),
            *((self.workspace / name, False) for name in SKILLS),
            (user_folder() / "skills", True),
        ]

    def check_servers(self, file: Path, data: bytes) -> None:
        """Raise ConfigError if the mcp_file is not the user's own and has changed since it was trusted."""
        named, origin = self.values.get("mcp_file", ""), self.origins.get("mcp_file", "")
        own = origin.startswith(f"{user_file()}:") and expand(named).is_absolute()
        if not own and any(origin.startswith(f"{one}:") for one in self.files):
            self.sources.check(file, data)

    def _is_own(self, setting: str, text: str) -> bool:
        """Return whether the user named a path that is the same place in every folder."""
        from_project = self.origins.get(setting, "").startswith(f"{self.sources.project}:")
        return not from_project and expand(text).is_absolute()


def load(
    file: Path | None = None,
    *,
    start: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    flags: Mapping[str, object] | None = None,
    decide: Decide | None = None,
) -> Settings:
    """Merge the user's file, the nearest `dragoman.toml` upwards, DRAGOMAN_* and flags. Later ones win.

    An explicit file (or the one in DRAGOMAN_CONFIG) replaces both files. Content of a folder is used if
    `decide` allows it. Without `decide`, it is used if the user trusted it earlier. Raise ConfigError with
    the first error.
    """
    settings, errors = read(file, start=start, environment=environment, flags=flags, decide=decide)
    if errors:
        raise ConfigError(errors[0])
    return settings


def read(
    file: Path | None = None,
    *,
    start: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    flags: Mapping[str, object] | None = None,
    decide: Decide | None = None,
) -> tuple[Settings, list[str]]:
    """Do the same, and return all errors. Invalid settings are left out."""
    named = file or (Path(environment["DRAGOMAN_CONFIG"]) if environment.get("DRAGOMAN_CONFIG") else None)
    decide = decide or decide_from_memory(environment)
    sources = find_sources(named, start or Path.cwd(), decide)
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    rule_origins: dict[str, str] = {}
    errors: list[str] = []
    for each in sources.files:
        try:
            text, tables = _read(each)
            if each == sources.project and not sources.accepts(each, text.encode()):
                raise ConfigError(f"{each} changed while Dragoman read it. Start again.")
        except ConfigError as error:
            errors.append(str(error))
            continue
        tables = _check(tables, each, errors, text)
        values = _merge(values, tables)
        origins |= {path: f"{each}:{line_of(text, path.split('.')) or 1}" for path in _paths(tables)}
        rule_origins |= {path: f"{each}:{line}" for path, line in rule_lines(text, tables).items()}
    for origin, value in (*_from_environment(environment, errors), *_from_flags(flags or {})):
        sound = _check(value, origin, errors)
        values = _merge(values, sound)
        origins |= dict.fromkeys(_paths(sound), origin)
        rule_origins = {path: at for path, at in rule_origins.items() if path.partition(".")[0] not in sound}
    settings = Settings(cast("ConfigTable", values), sources.files, origins, sources, rule_origins)
    return _without_untrusted(settings, decide), errors


def _without_untrusted(settings: Settings, decide: Decide) -> Settings:
    """Leave out workspace content that has no settings next to it, unless it is trusted too."""
    paths = [folder for folder, own in settings.skill_folders() if not own]
    paths += [settings.workspace / name for name in PROMPTS]
    paths += [folder / name for folder in settings.workspaces.values() for name in INSTRUCTIONS]
    file = settings.values.get("mcp_file")
    foreign = file is not None and settings.origins.get("mcp_file", "").startswith(f"{user_file()}:")
    servers = None
    if file is not None and foreign and not expand(file).is_absolute():
        servers = settings.path(file)  # The user set this path, but it is another file in every folder.
    may = consider_paths(settings.sources, settings.workspace, paths, decide, mcp_file=servers)
    if may or servers is None:
        return settings
    values = {name: value for name, value in settings.values.items() if name != "mcp_file"}
    return replace(settings, values=cast("ConfigTable", values))


def schema() -> dict[str, Any]:
    """Return the JSON schema of a settings file, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_CONFIG.json_schema()}


# ── reading and checking ──────────────────────────────────────────────────────────────────────────


def _read(file: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = file.read_bytes().decode()
        return text, tomllib.loads(text.removeprefix(BYTE_ORDER_MARK))
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"'{file}' is not valid TOML. Byte {error.start + 1} is not UTF-8.") from error
    except (ValueError, RecursionError) as error:  # Errors of TOML, and of endless numbers.
        raise ConfigError(f"{file} is not valid TOML: {error}") from error


def _check(
    values: Mapping[str, Any], origin: str | Path, errors: list[str], text: str = ""
) -> dict[str, Any]:
    """Return the valid settings. Each error names the position, the mistake and the nearest valid name."""
    sound, paths = dict(values), set[str]()
    try:
        _CONFIG.validate_python(sound)
    except ValidationError as error:
        for fault in error.errors(include_url=False, include_input=False):
            loc = [step for step in fault["loc"] if step == 0 or not _is_branch(step)]
            path = ".".join(str(step) for step in loc)
            if path in paths:
                continue  # Another branch of the same union.
            paths.add(path)
            line = line_of(text, loc)
            at = f"{origin}, line {line}" if line else str(origin)
            if not at.startswith("--"):  # A flag is the name already.
                at += f": {path}"
            errors.append(f"{at}: {_describe(fault, loc)}")
            sound = _without(sound, loc)
    return sound


def _without(tables: dict[str, Any], loc: Sequence[int | str]) -> dict[str, Any]:
    """Remove the setting at this position. From a table that is merged by name, remove only that name."""
    key, inner = str(loc[0]), tables.get(str(loc[0]))
    rest = {name: value for name, value in tables.items() if name != key}
    if key in _MERGED and isinstance(inner, dict) and len(loc) > 1:
        rest[key] = {name: value for name, value in inner.items() if name != loc[1]}
    return rest


def _is_branch(step: int | str) -> bool:
    """Return whether pydantic added this path step for the branch of a union, which the user did
    not write."""
    return isinstance(step, str) and (step == "float" or step.startswith(("literal[", "function-")))


def _describe(fault: Any, loc: Sequence[int | str]) -> str:
    if fault["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        near = get_close_matches(str(loc[-1]), _names_beside(loc), n=2, cutoff=0.6)
        hint = (
            f"Did you mean {' or '.join(near)}?"
            if near
            else f"Choose one of {', '.join(_names_beside(loc))}."
        )
        return f"unknown setting. {hint}"
    if fault["type"] == "string_too_short":
        return "it is empty"
    return str(fault["msg"]).removeprefix("Value error, ").replace("Input should be", "it should be")


def _names_beside(loc: Sequence[int | str]) -> list[str]:
    """Return the names allowed where this path ends."""
    kind: Any = ConfigTable
    for step in loc[:-1]:
        hints = get_type_hints(kind) if isinstance(kind, type) else {}
        inner = hints.get(str(step))
        if inner is None:
            continue  # A name chosen by the user, such as an agent's.
        arguments = get_args(inner)
        kind = arguments[-1] if arguments else inner
    hints = get_type_hints(kind) if isinstance(kind, type) else {}
    return list(hints)


# ── merging ───────────────────────────────────────────────────────────────────────────────────────


def _merge(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        if key in _MERGED and isinstance(merged.get(key), dict) and isinstance(value, dict):
            merged[key] = {**merged[key], **value}
        else:
            merged[key] = value
    return merged


def _paths(tables: Mapping[str, Any]) -> list[str]:
    paths = []
    for key, value in tables.items():
        inner = value if key in _MERGED and isinstance(value, dict) else None
        paths += [f"{key}.{name}" for name in inner] if inner else [key]
    return paths


def _from_environment(environment: Mapping[str, str], errors: list[str]) -> list[tuple[str, dict[str, Any]]]:
    """Return settings from DRAGOMAN_MODEL, DRAGOMAN_SERVER_PORT and the like. Ignore other variables."""
    found: list[tuple[str, dict[str, Any]]] = []
    names = ConfigTable.__annotations__
    for variable, text in sorted(environment.items()):
        name = variable.removeprefix("DRAGOMAN_")
        if name == variable or name in _NOT_SETTINGS or not text:
            continue
        key = name.lower()
        table, _, rest = key.partition("_")
        if key in _PATHS and not is_url(text):
            found.append((variable, {key: str(Path(text).expanduser().absolute())}))
        elif key in names:
            found.append((variable, {key: _value(text)}))
        elif table in _TABLES and rest in get_type_hints(ConfigTable)[table].__annotations__:
            found.append((variable, {table: {rest: _value(text)}}))
        else:
            errors += _misspelled(variable, key, names)
    return found


def _misspelled(variable: str, key: str, settings: Iterable[str]) -> list[str]:
    """Return an error for a variable that resembles a setting. Other programs may share the prefix."""
    near = get_close_matches(key, settings, n=2, cutoff=0.8)
    meant = " or ".join(f"DRAGOMAN_{name.upper()}" for name in near)
    return [f"{variable}: unknown setting. Did you mean {meant}?"] if near else []


def _value(text: str) -> object:
    """Parse a value as TOML. Anything else is a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def _from_flags(flags: Mapping[str, object]) -> list[tuple[str, dict[str, Any]]]:
    """Return settings from flags such as `{"server.port": 8000}`. None means that a flag was not given."""
    found = []
    for path, value in flags.items():
        if value is None:
            continue
        table, _, name = path.partition(".")
        flag = f"--{(name or table).replace('_', '-')}"
        found.append((flag, {table: {name: value}} if name else {table: value}))
    return found


def inspect_folder(folder: Path) -> FolderContents:
    """Return everything in a folder that needs trust, including what the user's settings look for there."""
    files, texts, unsafe = dict[str, str](), dict[str, bytes](), list[str]()
    mcp_files, started, unknown = dict[str, None](), dict[str, None](), dict[str, None]()

    def add(contents: FolderContents) -> bool:
        if contents.folder == folder:
            files.update(contents.files)
            texts.update(contents.texts)
            mcp_files.update(dict.fromkeys(contents.mcp_files))
            started.update(dict.fromkeys(contents.started))
            unknown.update(dict.fromkeys(contents.unknown))
            unsafe.extend([contents.unsafe] if contents.unsafe else [])
        return contents.unsafe is None

    if add(inspect_project(folder)):
        settings, _ = read(start=folder, environment={}, decide=add)
        for left_out in settings.sources.left_out:
            add(left_out.contents)
    return FolderContents(
        folder,
        files,
        texts,
        unsafe[0] if unsafe else None,
        tuple(mcp_files),
        tuple(started),
        tuple(unknown),
    )
