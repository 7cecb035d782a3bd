"""`dragoman mcp …`: servers of the Model Context Protocol in `dragoman.toml`, and being one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.flags.options import (
    AsJson,
    Config,
    Log,
    LogLevel,
    Model,
    Store,
    Trust,
    Workspace,
    absolute,
    load_settings,
    start_logs,
)

app = typer.Typer(
    help="Servers that speak the Model Context Protocol: other people's tools.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Name = Annotated[str, typer.Argument(help="What you call the server: letters, digits, `_` and `-`.")]
WrittenFile = Annotated[
    Path | None,
    typer.Option(envvar="DRAGOMAN_CONFIG", help="The file, if not the nearest dragoman.toml upwards."),
]
RemovedFile = Annotated[
    Path | None,
    typer.Option(envvar="DRAGOMAN_CONFIG", help="The file, if not the one that the server stands in."),
]
ReadFile = Annotated[
    Path | None,
    typer.Option(
        envvar="DRAGOMAN_CONFIG",
        help="A dragoman.toml, or a .json file with mcpServers, instead of those that hold here.",
    ),
]


@app.command(
    epilog="Example: `dragoman mcp add notes -- npx -y @modelcontextprotocol/server-filesystem notes`"
)
def add(
    name: Name,
    command: Annotated[
        list[str] | None,
        typer.Argument(help="The program, after `--`, with its arguments."),
    ] = None,
    *,
    url: Annotated[str | None, typer.Option(help="Where the server answers, if it is no program.")] = None,
    sse: Annotated[bool, typer.Option("--sse", help="It speaks the older SSE at that address.")] = False,
    oauth: Annotated[bool, typer.Option("--oauth", help="It wants a login in the browser.")] = False,
    env: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE, or NAME alone for the one that is set here. Can be given again."),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(help="'NAME: VALUE' for the address; a secret as ${NAME}. Can be given again."),
    ] = None,
    cwd: Annotated[str | None, typer.Option(help="The folder the program runs in.")] = None,
    config: WrittenFile = None,
) -> None:
    """Write a server into dragoman.toml. Nothing is started; `dragoman mcp test NAME` tries it out."""
    from dragoman.cli.commands.mcp import add_server, table_of

    table = table_of(
        command or [], url=url, sse=sse, oauth=oauth, env=env or [], headers=header or [], cwd=cwd
    )
    print(add_server(name, table, config))


@app.command("list", epilog="Example: `dragoman mcp list --check`")
def list_servers(
    check: Annotated[bool, typer.Option("--check", help="Start each and see whether it is there.")] = False,
    config: ReadFile = None,
    trust: Trust = False,
    json: AsJson = False,
) -> None:
    """The servers that are written down: how they are reached and, with --check, how they are."""
    from dragoman.cli.commands.mcp import list_servers

    list_servers(config, trust=trust, check=check, as_json=json)


@app.command("test", epilog="Example: `dragoman mcp test notes --json`")
def probe(name: Name, config: ReadFile = None, trust: Trust = False, json: AsJson = False) -> None:
    """Connect to a server, log in if it wants that, and show what it offers.

    The exit status is 1 where it is not there; why is told in a line on standard error.
    """
    from dragoman.cli.commands.mcp import probe_server

    if not probe_server(name, config, trust=trust, as_json=json):
        raise typer.Exit(1)


@app.command(epilog="Example: `dragoman mcp remove notes`")
def remove(name: Name, config: RemovedFile = None) -> None:
    """Take a server out of the file that it stands in, the folder's or your own, and forget its login."""
    from dragoman.cli.commands.mcp import remove_server

    print(remove_server(name, config))


@app.command(
    epilog="Example: `dragoman mcp serve --allow files.read`, as the command of a server in a client"
)
def serve(
    *,
    http: Annotated[
        bool, typer.Option("--http", help="Over streamable HTTP, not standard input and output.")
    ] = False,
    host: Annotated[str, typer.Option(help="The address to listen on, with --http.")] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(help="The port, with --http; 0 takes a free one.")] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="PERMISSION or PERMISSION:PATTERN that needs no question. Can be given again."),
    ] = None,
    deny: Annotated[list[str] | None, typer.Option(help="What must not run. Can be given again.")] = None,
    model: Model = None,
    store: Store = None,
    workspace: Workspace = None,
    config: Config = None,
    trust: Trust = False,
    log: Log = None,
    log_level: LogLevel = None,
) -> None:
    """Be an MCP server: other programs call your tools and agents, and read your conversations.

    The rules are those of every other call. A client that can ask its person asks; else what no rule allows
    is refused. Over HTTP a key is needed, which is printed.
    """
    from dragoman.cli.commands.mcp_serve import McpServeFlags, serve_mcp

    start_logs(log, log_level)
    settings = load_settings(
        config, store, {"model": model, "workspace": absolute(workspace)}, trust=trust, asks=http
    )
    flags = McpServeFlags(http=http, host=host, port=port, allow=allow or (), deny=deny or ())
    serve_mcp(settings, flags)
