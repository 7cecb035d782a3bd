"""Define `dragoman mcp …`: MCP servers in `dragoman.toml`, and Dragoman as a server."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.flags.command import CommandGroup, Flags, JsonFlags, LogFlags, TrustFlags, WorkspaceFlags
from dragoman.cli.flags.options import Allow, Deny, Model

group = CommandGroup(help="Manage MCP servers, or be one.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the server: letters, digits, `_` and `-`.")]


class ReadFlags(TrustFlags, JsonFlags):
    config: Annotated[
        Path | None,
        typer.Option(
            envvar="DRAGOMAN_CONFIG",
            help="A dragoman.toml, or a .json file with mcpServers. Default: the settings.",
        ),
    ] = None


@group.command(
    "add",
    "commands.mcp:add_server",
    "`dragoman mcp add notes -- npx -y @modelcontextprotocol/server-filesystem notes`",
)
class AddServerFlags(Flags):
    """Add a server to dragoman.toml. `dragoman mcp test NAME` starts it."""

    name: Name
    command: Annotated[list[str] | None, typer.Argument(help="Program with arguments, after `--`.")] = None
    url: Annotated[str | None, typer.Option(help="Address of the server, instead of a program.")] = None
    sse: Annotated[bool, typer.Option("--sse", help="Use the older SSE transport.")] = False
    oauth: Annotated[bool, typer.Option("--oauth", help="Sign in with the browser.")] = False
    env: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE, or NAME for your own value. Repeatable."),
    ] = None
    header: Annotated[
        list[str] | None,
        typer.Option(help="'NAME: VALUE' for the address, a secret as ${NAME}. Repeatable."),
    ] = None
    cwd: Annotated[str | None, typer.Option(help="Folder of the program.")] = None
    config: Annotated[
        Path | None,
        typer.Option(
            envvar="DRAGOMAN_CONFIG",
            help="Settings file. Default: the nearest dragoman.toml in a parent folder.",
        ),
    ] = None


@group.command("list", "commands.mcp:list_servers", "`dragoman mcp list --check`")
class ListServersFlags(ReadFlags):
    """List servers with their address or command."""

    check: Annotated[bool, typer.Option("--check", help="Connect to each, and print its state.")] = False


@group.command("test", "commands.mcp:test_server", "`dragoman mcp test notes --json`")
class TestServerFlags(ReadFlags):
    """Connect to a server, sign in if required, and list its tools.

    Exit status 1 if the connection fails, with the reason on standard error.
    """

    name: Name


@group.command("remove", "commands.mcp:remove_server", "`dragoman mcp remove notes`")
class RemoveServerFlags(Flags):
    """Remove a server from its file, and forget its sign-in."""

    name: Name
    config: Annotated[
        Path | None,
        typer.Option(envvar="DRAGOMAN_CONFIG", help="Settings file. Default: the one with the server."),
    ] = None


@group.command(
    "serve",
    "commands.mcp_serve:serve_mcp",
    "`dragoman mcp serve --allow files.read`, as the command of a server in a client",
)
class McpServeFlags(WorkspaceFlags, TrustFlags, LogFlags):
    """Serve your tools, agents and conversations over MCP.

    Rules apply as to every call. If none allows a call, the client asks its user, or Dragoman refuses. HTTP
    needs a key, which this command prints.
    """

    http: Annotated[
        bool, typer.Option("--http", help="Use streamable HTTP instead of standard input and output.")
    ] = False
    host: Annotated[str, typer.Option(help="Address to listen on, with --http.")] = "127.0.0.1"
    port: Annotated[int | None, typer.Option(help="Port, with --http. 0 takes a free one.")] = None
    allow: Allow = None
    deny: Deny = None
    model: Model = None
