"""Tells in plain words what a folder would do if it were trusted: for a person who is about to decide."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dragoman.config.trust.contents import CODE, SETTINGS, FolderContents
from dragoman.providers.catalog import BUILT_IN
from dragoman.providers.tables import read_tables
from dragoman.tools.skills import NAME as SKILL
from dragoman.tools.skills import parse_skill

_REFERENCE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)")
_DESCRIBED = ("mcp", "mcp_file", "providers", "allow", "ask", "deny", "agents", "workspace", "store", "mode")
_LONGEST = 100  # characters of a value


def summarise(contents: FolderContents) -> list[str]:
    """One line for each thing that matters, the gravest first."""
    try:
        return _describe(contents)
    except RecursionError:
        return ["it is nested so deeply that what it would do is not known"]


def _describe(contents: FolderContents) -> list[str]:
    table = contents.settings
    servers = {**_servers_of_files(contents), **_table(table, "mcp")}
    lines = [
        *_keys_sent(table),
        *_servers(servers),
        *_code(contents),
        *_rules(table),
        *_places(table),
        *_skills(contents),
    ]
    if SETTINGS in contents.files:
        others = {name: value for name, value in sorted(table.items()) if name not in _DESCRIBED}
        lines += [f"sets {name} = {_shown(value)}" for name, value in others.items()]
        if not table and contents.texts.get(SETTINGS, b"").strip():
            lines.append(f"{SETTINGS} cannot be read as TOML: what it would do is not known")
    return lines


# ── where keys and secrets would go ───────────────────────────────────────────────────────────────


def _keys_sent(table: Mapping[str, Any]) -> Iterator[str]:
    """A provider of the folder gets the keys that the folder names for it, and no others (`tables.py`)."""
    known = read_tables(BUILT_IN).get("providers", {})
    for name, provider in _table(table, "providers").items():
        if not isinstance(provider, dict):
            continue
        held = known.get(name, {})
        address = provider.get("base_url") or held.get("base_url") or "its address"
        if "base_url_from" in provider:
            address = f"the address in {provider['base_url_from']}, or {address}"
        keys = _texts(provider.get("keys"))
        for key in keys:
            yield f"sends your {key} to {address} (provider {name})"
        if not keys and ("base_url" in provider or "base_url_from" in provider):
            yield f"sends what you say to {address}, without a key (provider {name})"


def _servers(servers: Mapping[str, Any]) -> Iterator[str]:
    for name, server in servers.items():
        if not isinstance(server, dict) or server.get("enabled") is False or server.get("disabled") is True:
            continue
        address = server.get("url") or server.get("httpUrl") or server.get("serverUrl")
        program = " ".join([str(server.get("command", "")), *_texts(server.get("args"))])
        secrets = dict.fromkeys(_REFERENCE.findall(json.dumps(server, default=str)))
        given = f", and gives it your {', '.join(secrets)}" if secrets else ""
        does = f"asks the server {address}" if address else f"starts the program: {program}"
        yield f"{does}{given} (MCP server {name})"


def _servers_of_files(contents: FolderContents) -> dict[str, Any]:
    servers: dict[str, Any] = {}
    for name, data in contents.texts.items():
        if not name.endswith(".json") or name.startswith((*CODE, "skills/", ".dragoman/")):
            continue
        try:
            content = json.loads(data)
        except (ValueError, RecursionError):
            content = None
        found = (content.get("mcpServers") or content.get("servers")) if isinstance(content, dict) else None
        servers |= found if isinstance(found, dict) else {}
    return servers


# ── what runs, and what is allowed ────────────────────────────────────────────────────────────────


def _code(contents: FolderContents) -> Iterator[str]:
    for name in contents.files:
        if name.endswith(".py") and name.startswith(tuple(f"{folder}/" for folder in CODE)):
            yield f"runs Python: {name}"


def _rules(table: Mapping[str, Any]) -> Iterator[str]:
    agents = _table(table, "agents")
    for who, rules in {"": table, **{f" (agent {name})": one for name, one in agents.items()}}.items():
        if not isinstance(rules, dict):
            continue
        if allowed := _texts(rules.get("allow")):
            yield f"allows without a question: {', '.join(allowed)}{who}"
        for action in ("ask", "deny"):
            if action in rules and not who:
                yield f"{action}: {', '.join(_texts(rules[action])) or 'nothing'}, in place of your own rules"
        if "mode" in rules:
            yield f"mode: {rules['mode']}{who}"
    if agents:
        yield f"agents: {', '.join(agents)}"


def _places(table: Mapping[str, Any]) -> Iterator[str]:
    if "workspace" in table:
        yield f"lets tools work in the folder {table['workspace']}"
    if "store" in table:
        yield f"keeps conversations, and what you allowed in them, in {table['store']}"


def _skills(contents: FolderContents) -> Iterator[str]:
    others = []
    for name, data in contents.texts.items():
        if name.rpartition("/")[2] != SKILL:
            continue
        try:
            skill = parse_skill(data, name.split("/")[-2] if "/" in name else name)
        except ValueError:
            continue  # it is not used
        if skill.always:
            yield f"tells the model, in every request: {name}"
        else:
            others.append(skill.name)
    if others:
        yield f"offers the model skills: {', '.join(others)}"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _table(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = table.get(name)
    return found if isinstance(found, dict) else {}


def _texts(value: object) -> list[str]:
    listed: Iterable[object] = value if isinstance(value, list) else [] if value is None else [value]
    return [str(one) for one in listed]
