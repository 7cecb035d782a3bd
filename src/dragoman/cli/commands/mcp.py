"""`dragoman mcp list` and `test`: how servers are reached, whether they answer, and the tools they offer."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dragoman.cli.commands.mcp_tables import find_server, load_servers
from dragoman.cli.terminal.tables import as_markup
from dragoman.cli.terminal.text import plain, print_json
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.source import McpSource

CHECK = 20.0  # seconds a server has to show that it is there
LOGIN = 600.0  # seconds a person has to log in

COLOURS = {"running": "green", "failed": "red", "login": "yellow", "off": "dim", "starting": "yellow"}


def list_servers(config: Path | None, *, trust: bool = False, check: bool, as_json: bool) -> None:
    loaded = load_servers(config, trust=trust)
    servers = {name: server for name, (server, _) in loaded.items()}
    states = asyncio.run(_check_servers(servers)) if check else {}
    if as_json:
        listed: list[JsonValue] = [
            _report(name, server, file, states.get(name)) for name, (server, file) in loaded.items()
        ]
        print_json({"servers": listed}, indent=2)
        return
    if not servers:
        print("There are no servers. Add one: dragoman mcp add NAME -- COMMAND …")
        return
    table = Table(box=None, show_header=False, padding=(0, 1))
    for no_wrap in (True, True, False, False, False):
        table.add_column(no_wrap=no_wrap, overflow="fold")
    for name, (server, file) in loaded.items():
        state, error = states.get(name, ("" if server.enabled else "off", ""))
        status = f"{state}: {error}" if error else state
        if not sys.stdout.isatty():
            print("\t".join(map(plain, (name, server.kind, server.where, status, file))))
        table.add_row(
            as_markup(name),
            server.kind,
            as_markup(server.where),
            f"[{COLOURS.get(state, 'dim')}]{as_markup(status)}[/]",
            f"[dim]{as_markup(file)}[/]",
        )
    if sys.stdout.isatty():
        Console(highlight=False).print(table)


async def _check_servers(servers: dict[str, McpServer]) -> dict[str, tuple[str, str]]:
    """All at once: the slowest decides how long it takes."""

    async def check(name: str, server: McpServer) -> tuple[str, str]:
        if not server.enabled:
            return "off", ""
        source = McpSource(name, server, patience=CHECK)
        try:
            await source.ready()
            return source.state, source.error
        finally:
            await source.close()

    found = await asyncio.gather(*(check(name, server) for name, server in servers.items()))
    return dict(zip(servers, found, strict=True))


def _report(name: str, server: McpServer, file: str, state: tuple[str, str] | None) -> JsonValue:
    report: dict[str, JsonValue] = {"name": name, "kind": server.kind, "where": server.where, "file": file}
    report["enabled"] = server.enabled
    return report if state is None else {**report, "state": state[0], "trouble": state[1] or None}


def probe_server(name: str, config: Path | None, *, trust: bool = False, as_json: bool) -> bool:
    """Connect, and print what it offers, or why it is not there. Returns whether it is there."""
    server = find_server(name, config, trust=trust)
    report = asyncio.run(_probe(name, replace(server, enabled=True)))
    if as_json:
        print_json(report, indent=2)
    elif report["state"] == "running":
        _show_offer(report)
    if report["state"] != "running":
        print(f"dragoman: the server {name} is not there: {plain(str(report['trouble']))}", file=sys.stderr)
    return report["state"] == "running"


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
    """With a person at hand, who may log in if the server wants that and no login that is stored will do."""
    async with _tried(McpSource(name, server, patience=server.start_timeout)) as source:
        if source.state != "login" or server.auth is None or server.url is None:
            yield source
            return
    from dragoman.tools.mcp.login import TokenStore, new_login

    tokens = TokenStore(server.url)
    patient = replace(server, start_timeout=LOGIN)
    async with (
        new_login(server, _show_login, tokens) as provider,
        _tried(McpSource(name, patient, patience=LOGIN, authorize=lambda _: provider)) as source,
    ):
        yield source
    if tokens.where:
        print(f"The login is kept in {tokens.where}.", file=sys.stderr)


@asynccontextmanager
async def _tried(source: McpSource) -> AsyncIterator[McpSource]:
    try:
        await source.ready()
        yield source
    finally:
        await source.close()


async def _show_login(url: str) -> None:
    print(f"Log in with your browser: {url}", file=sys.stderr, flush=True)
    # some browsers stay until they are closed: nobody waits for them
    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()


def _safe(text: JsonValue) -> str:
    """Somebody else's text for the terminal: one line, without what would control it."""
    return escape("".join(one if one.isprintable() else " " for one in str(text)))


def _show_offer(report: dict[str, JsonValue]) -> None:
    console = Console(highlight=False)
    title = _safe(report["server"] or report["name"])
    console.print(f"[bold]{title}[/], protocol {report['protocol']}, there after {report['seconds']} s")
    tools = report["tools"]
    assert isinstance(tools, list)
    for tool in tools:
        assert isinstance(tool, dict)
        summary = str(tool["description"]).strip().split("\n", 1)[0]
        console.print(f"  [bold]{_safe(tool['name'])}[/]  {_safe(summary)}", soft_wrap=True)
        if tool["claims"]:
            console.print(f"    [dim]{_safe(tool['claims'])}[/]", soft_wrap=True)
    if not tools:
        console.print("  It has no tools.")
    left_out = report["left_out"]
    assert isinstance(left_out, list)
    for line in left_out:
        console.print(f"  [yellow]{_safe(line)}[/]", soft_wrap=True)
