"""Run `dragoman mcp list`, `test`, `add` and `remove`: the MCP servers of the settings, and their states."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
import time
import webbrowser
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from rich.console import Console

from dragoman.cli.flags.mcp import (
    AddServerFlags,
    ListServersFlags,
    ReadFlags,
    RemoveServerFlags,
    TestServerFlags,
)
from dragoman.cli.folder_trust import read_settings, settings_for, trust_edit
from dragoman.cli.terminal.tables import as_markup, print_table
from dragoman.cli.terminal.text import plain, print_json
from dragoman.config.build import servers_of
from dragoman.config.edits import parse_text, read_text, with_table, without_table
from dragoman.config.settings import FILE, user_folder
from dragoman.config.sources import decide_from_memory, find_files, find_sources
from dragoman.config.trust.contents import inspect_project
from dragoman.errors import ConfigError
from dragoman.tools.builtin import BUILTIN
from dragoman.tools.mcp.secrets import forget_server, looks_secret
from dragoman.tools.mcp.servers import McpServer, parse_server, read_json
from dragoman.tools.mcp.source import McpSource

TAKEN = (*BUILTIN, "tools", "agents", "skills", "output")
CHECK = 20.0  # seconds that a server has to answer
LOGIN = 600.0  # seconds that a user has to sign in


def find_file(config: Path | None) -> Path:
    """Return the named file, the nearest one in a parent folder, or the path of a new one in this folder."""
    if config is not None:
        return config
    here = Path.cwd()
    found = (folder / FILE for folder in (here, *here.parents) if (folder / FILE).is_file())
    return next(found, here / FILE)


def load_servers(flags: ReadFlags) -> dict[str, tuple[McpServer, str]]:
    """Return the servers of a turn, each with its file: from all files that apply here, or from the named
    one."""
    config = flags.config
    if config is not None and config.suffix == ".json":
        return {name: (server, str(config)) for name, server in read_json(config).items()}
    settings = settings_for(flags)
    json_file = settings.path(settings.values.get("mcp_file", ""))
    files = {name: settings.origins.get(f"mcp.{name}") for name in settings.values.get("mcp", {})}
    return {
        name: (server, re.sub(r":\d+$", "", files.get(name) or str(json_file)))
        for name, server in servers_of(settings).items()
    }


def _list_names(servers: Iterable[str]) -> str:
    names = ", ".join(servers)
    return f"Choose one of {names}." if names else "No servers are set up."


def table_of(flags: AddServerFlags) -> dict[str, Any]:
    command = flags.command or []
    given = {
        "command": command[0] if command else None,
        "args": [*command[1:]],
        "cwd": flags.cwd,
        "env": dict(_parse_variable(text) for text in flags.env or ()),
        "url": flags.url,
        "transport": "sse" if flags.sse else None,
        "auth": "oauth" if flags.oauth else None,
        "headers": dict(_parse_header(text) for text in flags.header or ()),
    }
    return {key: value for key, value in given.items() if value}


def add_server(flags: AddServerFlags) -> None:
    """Append the server's table. Raises ConfigError if it is invalid or the name is taken."""
    name, table, file = flags.name, table_of(flags), find_file(flags.config)
    parse_server(table, f"mcp.{name}", name)
    if name in TAKEN:
        raise ConfigError(f"{name!r} is the name of a built-in tool group. Choose another name.")
    for kind in ("env", "headers"):
        for key, value in table.get(kind, {}).items():
            if looks_secret(key, value):
                raise ConfigError(
                    f"{key} looks like a secret. Do not store secrets in a file. "
                    f"Write ${{NAME}} instead, "
                    "and set NAME in the environment, or store it with `keyring set dragoman NAME`."
                )
    before = read_text(file)
    if name in parse_text(before, file).get("mcp", {}):
        raise ConfigError(
            f"'{file}' already has a server {name!r}. Run `dragoman mcp remove {name}` to remove it."
        )
    hint = _write(file, with_table(before, "mcp", name, table, file))
    print(f"Wrote {name} to {file}. Try it out: dragoman mcp test {name}{hint}")


def remove_server(flags: RemoveServerFlags) -> None:
    """Remove the server's table from its file, even if the table is invalid."""
    name, config = flags.name, flags.config
    file, *others = _files_with(name, config)
    before = read_text(file)
    table = parse_text(before, file)["mcp"][name]
    hint = _write(file, without_table(before, "mcp", name, file))
    if not others:
        left = [server for servers in _tables(config).values() for server in servers.values()]
        forget_server(name, table, [server.get("url") for server in left])
    also = "".join(f"\n{other} also has a server {name!r}, which stays." for other in others)
    print(f"Removed {name} from {file}.{also}{hint}")


def _files_with(name: str, config: Path | None) -> list[Path]:
    """Return the files that contain this server, highest precedence first. Raises ConfigError if there are
    none."""
    tables = _tables(config)
    found = [file for file, servers in tables.items() if name in servers]
    if not found:
        if (json_file := _json_file_with(name, config)) is not None:
            raise ConfigError(f"Server {name!r} is in '{json_file}'. Remove it there by hand.")
        names = _list_names(dict.fromkeys(one for servers in tables.values() for one in servers))
        raise ConfigError(f"Unknown server {name!r} in {' and '.join(map(str, tables))}. {names}")
    return found


def _tables(config: Path | None) -> dict[Path, dict[str, Any]]:
    """Return the servers of each file as they are written."""
    files = [config] if config is not None else _files_here()
    return {file: parse_text(read_text(file), file).get("mcp", {}) for file in files}


def _files_here() -> list[Path]:
    """Return the folder's file and the user's file, highest precedence first. A folder's file counts once it
    is trusted."""
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
    """Write the file without asking for trust, because the user changes it by a command. Returns a hint if it
    stays untrusted."""
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
        raise ConfigError(f"Invalid --env {text!r}. Write NAME=VALUE, or NAME.")
    return name, value if given else f"${{{name}}}"


def _parse_header(text: str) -> tuple[str, str]:
    name, given, value = text.partition(":")
    if not given or not re.fullmatch(r"[A-Za-z0-9-]+", name.strip()):
        raise ConfigError(f"Invalid --header {text!r}. Write 'NAME: VALUE'.")
    return name.strip(), value.strip()


async def list_servers(flags: ListServersFlags) -> None:
    loaded = load_servers(flags)
    servers = {name: server for name, (server, _) in loaded.items()}
    states = await _check_servers(servers) if flags.check else {}
    if flags.json:
        listed: list[JsonValue] = [
            _report(name, server, file, states.get(name)) for name, (server, file) in loaded.items()
        ]
        print_json({"servers": listed}, indent=2)
        return
    if not servers:
        print("There are no servers. Add one: dragoman mcp add NAME -- COMMAND …")
        return
    rows = []
    for name, (server, file) in loaded.items():
        state, error = states.get(name, ("" if server.enabled else "off", ""))
        rows.append((name, server.kind, server.where, f"{state}: {error}" if error else state, file))
    print_table(("server", "kind", "where", "state", "written in"), rows, folds=(2, 3, 4))


async def _check_servers(servers: dict[str, McpServer]) -> dict[str, tuple[str, str]]:
    """Check all servers at the same time, so that the slowest determines the duration."""

    async def check(name: str, server: McpServer) -> tuple[str, str]:
        if not server.enabled:
            return "off", ""
        async with tried(McpSource(name, server, patience=CHECK)) as source:
            return source.state, source.error

    found = await asyncio.gather(*(check(name, server) for name, server in servers.items()))
    return dict(zip(servers, found, strict=True))


def _report(name: str, server: McpServer, file: str, state: tuple[str, str] | None) -> JsonValue:
    report: dict[str, JsonValue] = {"name": name, "kind": server.kind, "where": server.where, "file": file}
    report["enabled"] = server.enabled
    return report if state is None else {**report, "state": state[0], "trouble": state[1] or None}


async def test_server(flags: TestServerFlags) -> int:
    """Connect and print what the server offers. Returns 1 and prints the reason if that fails."""
    name, servers = flags.name, load_servers(flags)
    if name not in servers:
        raise ConfigError(f"Unknown server {name!r}. {_list_names(servers)}")
    report = await _probe(name, replace(servers[name][0], enabled=True))
    if flags.json:
        print_json(report, indent=2)
    elif report["state"] == "running":
        _show_offer(report)
    if report["state"] != "running":
        print(f"dragoman: the server {name} is not there: {plain(str(report['trouble']))}", file=sys.stderr)
    return 0 if report["state"] == "running" else 1


async def _probe(name: str, server: McpServer) -> dict[str, JsonValue]:
    began = time.perf_counter()
    async with _connect(name, server) as source:
        report: dict[str, JsonValue] = {
            "name": name,
            "kind": server.kind,
            "state": source.state,
            "trouble": source.error or None,
            "seconds": round(time.perf_counter() - began, 2),
        }
        connection = source.connection
        if connection is not None:
            tools: list[JsonValue] = [
                {
                    "name": tool.name,
                    "permission": tool.permission,
                    "description": tool.description,
                    "claims": tool.remark or None,
                    "replay": tool.replay,
                }
                for tool in source.group().tools
            ]
            protocol = connection.client.protocol_version
            report |= {"server": connection.title, "protocol": protocol, "tools": tools}
            report["left_out"] = [*source.left_out]
        return report


@asynccontextmanager
async def _connect(name: str, server: McpServer) -> AsyncIterator[McpSource]:
    """Connect to a server. The user can sign in if it requires that and no stored sign-in works."""
    async with tried(McpSource(name, server, patience=server.start_timeout)) as source:
        if source.state != "login" or server.auth is None or server.url is None:
            yield source
            return
    from dragoman.tools.mcp.login import TokenStore, new_login

    tokens = TokenStore(server.url)
    patient = replace(server, start_timeout=LOGIN)
    async with (
        new_login(server, _show_login, tokens) as provider,
        tried(McpSource(name, patient, patience=LOGIN, authorize=lambda _: provider)) as source,
    ):
        yield source
    if tokens.where:
        print(f"The login is kept in {tokens.where}.", file=sys.stderr)


@asynccontextmanager
async def tried(source: McpSource) -> AsyncIterator[McpSource]:
    try:
        await source.ready()
        yield source
    finally:
        await source.close()


async def _show_login(url: str) -> None:
    print(f"Log in with your browser: {url}", file=sys.stderr, flush=True)
    # Some browsers run until they are closed, so do not wait for them.
    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()


def _show_offer(report: dict[str, JsonValue]) -> None:
    console = Console(highlight=False)
    title = as_markup(str(report["server"] or report["name"]))
    console.print(f"[bold]{title}[/], protocol {report['protocol']}, there after {report['seconds']} s")
    tools = report["tools"]
    assert isinstance(tools, list)
    for tool in tools:
        assert isinstance(tool, dict)
        summary = str(tool["description"]).strip().split("\n", 1)[0]
        console.print(f"  [bold]{as_markup(str(tool['name']))}[/]  {as_markup(summary)}", soft_wrap=True)
        if tool["claims"]:
            console.print(f"    [dim]{as_markup(str(tool['claims']))}[/]", soft_wrap=True)
    if not tools:
        console.print("  It has no tools.")
    left_out = report["left_out"]
    assert isinstance(left_out, list)
    for line in left_out:
        console.print(f"  [yellow]{as_markup(str(line))}[/]", soft_wrap=True)
