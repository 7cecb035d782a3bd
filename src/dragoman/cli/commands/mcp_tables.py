"""`dragoman mcp add` and `remove`: edits an `[mcp.NAME]` table of `dragoman.toml`; every other byte stays."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dragoman.cli.folder_trust import load_settings, read_settings, trust_edit
from dragoman.config.build import servers_of
from dragoman.config.edits import parse_text, read_text, with_table, without_table
from dragoman.config.settings import FILE, user_folder
from dragoman.config.sources import decide_from_memory, find_files, find_sources
from dragoman.config.trust.contents import inspect_project
from dragoman.errors import ConfigError
from dragoman.tools.builtin import BUILTIN
from dragoman.tools.mcp.secrets import forget_server, looks_secret
from dragoman.tools.mcp.servers import McpServer, parse_server, read_json

TAKEN = (*BUILTIN, "tools", "agents", "skills", "output")


def find_file(config: Path | None) -> Path:
    """The file that is named, else the nearest one upwards, else the one that would lie here."""
    if config is not None:
        return config
    here = Path.cwd()
    found = (folder / FILE for folder in (here, *here.parents) if (folder / FILE).is_file())
    return next(found, here / FILE)


def load_servers(config: Path | None, *, trust: bool = False) -> dict[str, tuple[McpServer, str]]:
    """The servers a turn would have, each with the file that it stands in: of all files that apply here, or
    of the one that is named."""
    if config is not None and config.suffix == ".json":
        return {name: (server, str(config)) for name, server in read_json(config).items()}
    settings = load_settings(config, trust=trust, asks=True)
    json_file = settings.path(settings.values.get("mcp_file", ""))
    files = {name: settings.origins.get(f"mcp.{name}") for name in settings.values.get("mcp", {})}
    return {
        name: (server, re.sub(r":\d+$", "", files.get(name) or str(json_file)))
        for name, server in servers_of(settings).items()
    }


def find_server(name: str, config: Path | None, *, trust: bool = False) -> McpServer:
    servers = load_servers(config, trust=trust)
    if name not in servers:
        raise ConfigError(f"there is no server {name!r}: {_list_names(servers)}")
    return servers[name][0]


def _list_names(servers: Iterable[str]) -> str:
    names = ", ".join(servers)
    return f"there are {names}" if names else "there are none"


def table_of(
    command: Sequence[str],
    *,
    url: str | None,
    sse: bool,
    oauth: bool,
    env: Sequence[str],
    headers: Sequence[str],
    cwd: str | None,
) -> dict[str, Any]:
    """The table that the flags of `dragoman mcp add` describe."""
    given = {
        "command": command[0] if command else None,
        "args": [*command[1:]],
        "cwd": cwd,
        "env": dict(_parse_variable(text) for text in env),
        "url": url,
        "transport": "sse" if sse else None,
        "auth": "oauth" if oauth else None,
        "headers": dict(_parse_header(text) for text in headers),
    }
    return {key: value for key, value in given.items() if value}


def add_server(name: str, table: dict[str, Any], config: Path | None) -> str:
    """Append the table. ConfigError where it would make no server, or there is one of this name."""
    file = find_file(config)
    parse_server(table, f"mcp.{name}", name)
    if name in TAKEN:
        raise ConfigError(f"{name} is the name of a group of tools that comes with Dragoman: take another")
    for kind in ("env", "headers"):
        for key, value in table.get(kind, {}).items():
            if looks_secret(key, value):
                raise ConfigError(
                    f"{key} looks like a secret, which does not belong into a file: write ${{NAME}} for it, "
                    "and set NAME in the environment, or store it with `keyring set dragoman NAME`"
                )
    before = read_text(file)
    if name in parse_text(before, file).get("mcp", {}):
        raise ConfigError(f"{file} has a server {name!r} already: `dragoman mcp remove {name}` takes it out")
    hint = _write(file, with_table(before, "mcp", name, table, file))
    return f"{name} is written to {file}. Try it out: dragoman mcp test {name}{hint}"


def remove_server(name: str, config: Path | None) -> str:
    """Take the table out of the file that it stands in, also where it makes no server."""
    file, *others = _files_with(name, config)
    before = read_text(file)
    table = parse_text(before, file)["mcp"][name]
    hint = _write(file, without_table(before, "mcp", name, file))
    if not others:
        left = [server for servers in _tables(config).values() for server in servers.values()]
        forget_server(name, table, [server.get("url") for server in left])
    also = "".join(f"\n{other} has a server {name!r} too: that one is left." for other in others)
    return f"{name} is taken out of {file}.{also}{hint}"


def _files_with(name: str, config: Path | None) -> list[Path]:
    """The files that have this server, the one that counts first. ConfigError where none has it."""
    tables = _tables(config)
    found = [file for file, servers in tables.items() if name in servers]
    if not found:
        if (json_file := _json_file_with(name, config)) is not None:
            raise ConfigError(f"the server {name!r} stands in {json_file}: take it out there by hand")
        names = _list_names(dict.fromkeys(one for servers in tables.values() for one in servers))
        raise ConfigError(f"{' and '.join(map(str, tables))}: no server {name!r} is there: {names}")
    return found


def _tables(config: Path | None) -> dict[Path, dict[str, Any]]:
    """The servers of each file, as they are written there."""
    files = [config] if config is not None else _files_here()
    return {file: parse_text(read_text(file), file).get("mcp", {}) for file in files}


def _files_here() -> list[Path]:
    """The folder's file and the person's own, the one that wins first: a folder's wins once it is trusted."""
    used = find_sources(None, Path.cwd(), decide_from_memory(os.environ)).files
    return [*dict.fromkeys([*reversed(used), *find_files(Path.cwd())])] or [find_file(None)]


def _json_file_with(name: str, config: Path | None) -> Path | None:
    settings, _ = read_settings(config)
    named = settings.values.get("mcp_file")
    if not named:
        return None
    file = settings.path(named)
    return file if name in read_json(file, settings.check_servers) else None


def _write(file: Path, text: str) -> str:
    """What a person writes by a command need not be asked about. Returns what they have to know otherwise."""
    folder = Path(os.path.realpath(file.parent))
    before = inspect_project(folder)
    file.write_bytes(text.encode())
    if file.name != FILE or folder == Path(os.path.realpath(user_folder())):
        return ""
    trusted = trust_edit(folder, before, inspect_project(folder))
    return "" if trusted else f"\nThis folder is not trusted yet: dragoman trust {folder}"


def _parse_variable(text: str) -> tuple[str, str]:
    name, given, value = text.partition("=")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ConfigError(f"--env {text!r}: write NAME=VALUE, or NAME")
    return name, value if given else f"${{{name}}}"


def _parse_header(text: str) -> tuple[str, str]:
    name, given, value = text.partition(":")
    if not given or not re.fullmatch(r"[A-Za-z0-9-]+", name.strip()):
        raise ConfigError(f"--header {text!r}: write 'NAME: VALUE'")
    return name.strip(), value.strip()
