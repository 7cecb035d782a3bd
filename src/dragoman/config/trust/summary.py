"""Describes the effects of trusting a folder, for a user who is about to decide."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES
from typing import Any

from dragoman.config.trust.contents import CODE, COMMANDS, INSTRUCTIONS, SETTINGS, FolderContents
from dragoman.providers.catalog import BUILT_IN
from dragoman.providers.catalog_tables import read_tables
from dragoman.redaction import redact_text
from dragoman.tools.skills import NAME as SKILL
from dragoman.tools.skills import parse_skill

_REFERENCE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)")
_NAME = re.compile(r"[\w-]+")
_DESCRIBED = (
    *("mcp", "mcp_file", "allow", "ask", "deny", "workspace", "workspaces"),
    *("store", "blobs", "retention", "mode"),
)
_OF_PROVIDER = ("base_url", "base_url_from", "keys")
_OF_AGENT = ("allow", "mode")
_OF_FORMATTER = ("files", "command")
_OF_SERVER = ("command", "args", "url", "httpUrl", "serverUrl", "enabled", "disabled", "type", "transport")
_DESCRIBED_WITHIN = {"providers": _OF_PROVIDER, "agents": _OF_AGENT, "formatters": _OF_FORMATTER}
_NATIVE = (*EXTENSION_SUFFIXES, ".so", ".pyd")


def summarise(contents: FolderContents) -> list[str]:
    """Return one line for each important effect, the most serious first.

    Lines are complete. The caller may shorten them for display.
    """
    try:
        return _describe(contents)
    except RecursionError:
        return ["it is nested so deeply that what it would do is not known"]


def _describe(contents: FolderContents) -> list[str]:
    table = contents.settings
    servers, unknown = _servers_of_files(contents)
    lines = [
        *_keys_sent(table),
        *unknown,
        *_servers({**servers, **_table(table, "mcp")}),
        *_code(contents),
        *_started(contents),
        *_rules(table),
        *_places(table),
        *_skills(contents),
        *_prompts(contents),
    ]
    if SETTINGS in contents.files:
        lines += [f"sets {path} = {value}" for path, value in _others(table)]
        if not table and contents.texts.get(SETTINGS, b"").strip():
            lines.append(f"{SETTINGS} cannot be read as TOML: what it would do is not known")
    return lines


# ── destinations of keys and secrets ──────────────────────────────────────────────────────────────


def _keys_sent(table: Mapping[str, Any]) -> Iterator[str]:
    """A provider of the folder gets the keys that the folder names for it, and no others (`tables.py`)."""
    known = read_tables(BUILT_IN).get("providers", {})
    for name, provider in _table(table, "providers").items():
        if not isinstance(provider, dict):
            continue
        held = known.get(name, {})
        address = provider.get("base_url") or held.get("base_url") or "its address"
        if "base_url_from" in provider:
            variables = " or ".join(_texts(provider["base_url_from"]))
            address = f"the address in {variables}, or {address}"
        keys = _texts(provider.get("keys"))
        for key in keys:
            yield f"sends your {key} to {address} (provider {name})"
        if not keys and ("base_url" in provider or "base_url_from" in provider):
            yield f"sends what you say to {address}, without a key (provider {name})"
    if isinstance(oidc := _table(table, "server").get("oidc"), dict):
        yield f"lets users of {oidc.get('issuer')} sign in to a server that is started here"
        if "client_secret_from" in oidc:
            yield f"sends your {oidc['client_secret_from']} to {oidc.get('issuer')}"


def _servers(servers: Mapping[str, Any]) -> Iterator[str]:
    for name, server in servers.items():
        if not isinstance(server, dict) or server.get("enabled") is False or server.get("disabled") is True:
            continue
        address = server.get("url") or server.get("httpUrl") or server.get("serverUrl")
        program = " ".join([str(server.get("command", "")), *_texts(server.get("args"))])
        secrets = dict.fromkeys(_REFERENCE.findall(json.dumps(server, default=str)))
        given = f", and gives it your {', '.join(secrets)}" if secrets else ""
        does = f"asks the server {address}" if address else f"starts the program: {program}"
        others = {key: value for key, value in server.items() if key not in _OF_SERVER}
        with_these = f", with {', '.join(f'{path} = {value}' for path, value in _leaves(others))}"
        yield f"{does}{given} (MCP server {name}){with_these if others else ''}"


def _servers_of_files(contents: FolderContents) -> tuple[dict[str, Any], list[str]]:
    """Return the servers of the files that would be read for them, and a line for each."""
    servers: dict[str, Any] = {}
    lines = []
    for name in contents.mcp_files:
        line = f"reads MCP servers from {name}"
        try:  # Same format as in `tools/mcp/servers.py`.
            content = json.loads(contents.texts[name].decode())
            found = content.get("mcpServers") or content.get("servers") or {}
            servers |= found
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
            line = f"{line}: it cannot be read now, and what it would start is not known"
        lines.append(line)
    return servers, lines


# ── programs and permissions ──────────────────────────────────────────────────────────────────────


def _code(contents: FolderContents) -> Iterator[str]:
    for name, table in _table(contents.settings, "formatters").items():
        if isinstance(table, dict) and table.get("enabled") is not False:
            program, files = " ".join(_texts(table.get("command"))), ", ".join(_texts(table.get("files")))
            yield f"starts the program: {program}, on files that tools write: {files} (formatter {name})"
    for name, table in _table(contents.settings, "plugins").items():
        use = table.get("use") if isinstance(table, dict) else None
        yield f"runs the plugin {name}" + (f": {use}" if use else "")
    for name in contents.files:
        if not name.startswith(tuple(f"{folder}/" for folder in CODE)):
            continue
        if name.lower().endswith(tuple(SOURCE_SUFFIXES)):
            yield f"runs Python: {name}"
        elif name.lower().endswith(tuple(_NATIVE)):
            yield f"can run native code: {name}"


def _started(contents: FolderContents) -> Iterator[str]:
    """Yield the files that trust covers because programs of the settings are them or run them."""
    for command in contents.unknown:
        yield (
            f"cannot tell which files this runs: {command}. Trust covers all code of the folder: "
            "a change of any of it asks again"
        )
    if contents.started:
        count = len(contents.started)
        files = "1 file" if count == 1 else f"{count} files"
        yield f"runs, by the programs that it starts, {files} of this folder: {', '.join(contents.started)}"


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
    for name, other in _table(table, "workspaces").items():
        if isinstance(other, dict):
            yield f"lets tools work in the folder {other.get('folder')}, as {name}"
            if other.get("prompt"):
                yield f"tells the model in {name}: {other['prompt']}"
    if "store" in table:
        yield f"keeps conversations, and what you allowed in them, in {redact_text(str(table['store']))}"
    if "blobs" in table:
        yield f"sends attachments to {redact_text(str(table['blobs']))}"
    for what, after in _table(table, "retention").items():
        old = f"entries of the audit log after {after}" if what == "audit" else ""
        yield f"deletes {old or f'{what} that nobody touched for {after}'}, in whichever store is used here"


def _skills(contents: FolderContents) -> Iterator[str]:
    others = []
    for name, data in contents.texts.items():
        if name.rpartition("/")[2] != SKILL:
            continue
        try:
            skill = parse_skill(data, name.split("/")[-2] if "/" in name else name)
        except ValueError:
            continue  # It is not used.
        if skill.always:
            yield f"tells the model, in every request: {name}"
        else:
            others.append(skill.name)
    if others:
        yield f"offers the model skills: {', '.join(others)}"


def _prompts(contents: FolderContents) -> Iterator[str]:
    """Yield the folder's instructions for the model, and its commands for the user."""
    named = [name for name in contents.files if name.rpartition("/")[2] in INSTRUCTIONS]
    for name in named:
        yield f"tells the model, in every request: {name}"
    commands = [name for name in contents.files if f"{COMMANDS}/" in f"/{name}" and name.endswith(".md")]
    if commands:
        words = ", ".join(f"/{name.rpartition('/')[2].removesuffix('.md')}" for name in commands)
        yield f"adds commands to a chat: {words}"


# ── all the rest ──────────────────────────────────────────────────────────────────────────────────


def _others(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each setting that no other line covers, including prompts, headers and options of providers and
    agents."""
    for name, value in sorted(table.items()):
        if name in _DESCRIBED:
            continue
        described = _DESCRIBED_WITHIN.get(name)
        if described is None or not isinstance(value, dict):
            yield from _leaves({name: value})
            continue
        for one, inner in value.items():
            settings = inner.items() if isinstance(inner, dict) else ()
            rest = {key: setting for key, setting in settings if key not in described}
            if rest:
                yield from _leaves({name: {one: rest}})


def _leaves(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path of each value in TOML form, with the value."""
    for name, value in table.items():
        path = f"{above}{name if _NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)}"
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{path}.")
        else:
            yield path, json.dumps(value, ensure_ascii=False, default=str)


def _table(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = table.get(name)
    return found if isinstance(found, dict) else {}


def _texts(value: object) -> list[str]:
    listed: Iterable[object] = value if isinstance(value, list) else [] if value is None else [value]
    return [str(one) for one in listed]
