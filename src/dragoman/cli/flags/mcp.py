"""`dragoman mcp …`: servers of the Model Context Protocol in `dragoman.toml`, and being one."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.flags.command import CommandGroup, Flags, JsonFlags, LogFlags, TrustFlags, WorkspaceFlags
from dragoman.cli.flags.options import Allow, Deny, Model

group = CommandGroup(
    help="Servers that speak the Model Context Protocol: other people's tools.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="What you call the server: letters, digits, `_` and `-`.")]


class ReadFlags(TrustFlags, JsonFlags):
    config: Annotated[
        Path | None,
        typer.Option(
            envvar="DRAGOMAN_CONFIG",
            help="A dragoman.toml, or a .json file with mcpServers, instead of those that hold here.",
        ),
    ] = None


@group.command(
    "add",
    "commands.mcp:add_server",
    "`dragoman mcp add notes -- npx -y @modelcontextprotocol/server-filesystem notes`",
)
class AddServerFlags(Flags):
    """Write a server into dragoman.toml. Nothing is started; `dragoman mcp test NAME` tries it out."""

    name: Name
    command: Annotated[
        list[str] | None, typer.Argument(help="The program, after `--`, with its arguments.")
    ] = None
    url: Annotated[str | None, typer.Option(help="Where the server answers, if it is no program.")] = None
    sse: Annotated[bool, typer.Option("--sse", help="It speaks the older SSE at that address.")] = False
    oauth: Annotated[bool, typer.Option("--oauth", help="It wants a login in the browser.")] = False
    env: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE, or NAME alone for the one that is set here. Can be given again."),
    ] = None
    header: Annotated[
        list[str] | None,
        typer.Option(help="'NAME: VALUE' for the address; a secret as ${NAME}. Can be given again."),
    ] = None
    cwd: Annotated[str | None, typer.Option(help="The folder the program runs in.")] = None
    config: Annotated[
        Path | None,
        typer.Option(envvar="DRAGOMAN_CONFIG", help="The file, if not the nearest dragoman.toml upwards."),
    ] = None


@group.command("list", "commands.mcp:list_servers", "`dragoman mcp list --check`")
class ListServersFlags(ReadFlags):
    """The servers that are written down: how they are reached and, with --check, how they are."""

    check: Annotated[bool, typer.Option("--check", help="Start each and see whether it is there.")] = False


@group.command("test", "commands.mcp:test_server", "`dragoman mcp test notes --json`")
class TestServerFlags(ReadFlags):
    """Connect to a server, log in if it wants that, and show what it offers.

    The exit status is 1 where it is not there; why is told in a line on standard error.
    """

    name: Name


@group.command("remove", "commands.mcp:remove_server", "`dragoman mcp remove notes`")
class RemoveServerFlags(Flags):
    """Take a server out of the file that it stands in, the folder's or your own, and forget its login."""

    name: Name
    config: Annotated[
        Path | None,
        typer.Option(envvar="DRAGOMAN_CONFIG", help="The file, if not the one that the server stands in."),
    ] = None


@group.command(
    "serve",
    "commands.mcp_serve:serve_mcp",
    "`dragoman mcp serve --allow files.read`, as the command of a server in a client",
)
class McpServeFlags(WorkspaceFlags, TrustFlags, LogFlags):
    """Be an MCP server: other programs call your tools and agents, and read your conversations.

    The rules are those of every other call. A client that can ask its person asks; else what no rule allows
    is refused. Over HTTP a key is needed, which is printed.
    """

    http: Annotated[
        bool, typer.Option("--http", help="Over streamable HTTP, not standard input and output.")
    ] = False
    host: Annotated[str, typer.Option(help="The address to listen on, with --http.")] = "127.0.0.1"
    port: Annotated[int | None, typer.Option(help="The port, with --http; 0 takes a free one.")] = None
    allow: Allow = None
    deny: Deny = None
    model: Model = None
