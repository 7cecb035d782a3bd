"""`dragoman mcp …`: servers of the Model Context Protocol, in `dragoman.toml`: add, list, test, remove."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.flags.options import AsJson, Trust

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
    from dragoman.cli.commands.mcp_tables import add_server, table_of

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
def remove(name: Name, config: WrittenFile = None) -> None:
    """Take a server out of dragoman.toml, and forget its login."""
    from dragoman.cli.commands.mcp_tables import remove_server

    print(remove_server(name, config))
