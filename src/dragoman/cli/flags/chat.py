"""Define `dragoman chat`, `run`, `serve`, `worker`, `link`, `demo` and `acp`, which talk with a model."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.flags.command import CommandGroup, Flags, LogFlags, StoreFlags, TrustFlags, WorkspaceFlags
from dragoman.cli.flags.options import (
    Agent,
    Allow,
    Deny,
    Mode,
    Model,
    System,
    complete_conversations,
)

group = CommandGroup("Chat")


class TurnFlags(WorkspaceFlags, TrustFlags):
    """Flags of `run` and `resume`."""

    model: Model = None
    base_url: Annotated[
        str | None, typer.Option(help="Address of the model's server. Default: from the catalog.")
    ] = None
    api_key: Annotated[
        str | None,
        typer.Option(help="API key. Other users can see it: prefer the provider's variable."),
    ] = None
    wire: Annotated[str | None, typer.Option(help="Protocol at that address: openai_chat, …")] = None
    dialect: Annotated[
        str, typer.Option(help="Form of calls: auto, native, or a dialect such as xml_tag.")
    ] = "auto"
    tools: Annotated[
        list[Path] | None, typer.Option(help="Python file with @tool functions. Repeatable.")
    ] = None
    allow: Allow = None
    deny: Deny = None
    json: Annotated[bool, typer.Option("--json", help="Print each event as a line of JSON.")] = False


@group.command("chat", "commands.chat:chat", "`dragoman chat --last`, or `dragoman chat --allow files.read`")
class ChatFlags(WorkspaceFlags, TrustFlags, LogFlags):
    """Chat in the terminal. Ctrl-C stops the turn. Ctrl-D exits and keeps pending approvals."""

    conversation: Annotated[
        str | None,
        typer.Argument(
            help="ID, ID prefix, or `last`. Default: a new conversation.",
            autocompletion=complete_conversations,
        ),
    ] = None
    last: Annotated[bool, typer.Option("--last", help="Continue the last conversation of this folder.")] = (
        False
    )
    pick: Annotated[
        bool, typer.Option("--pick", help="Choose a conversation, those of this folder first.")
    ] = False
    model: Model = None
    agent: Agent = None
    mode: Mode = None
    system: System = None
    allow: Allow = None
    deny: Deny = None
    reasoning: Annotated[bool, typer.Option("--reasoning", help="Show the model's reasoning in full.")] = (
        False
    )


@group.command(
    "run",
    "commands.run:run",
    "`dragoman run --model ollama/qwen3 --tools tools.py --allow '*' 'What is in a.txt?'`",
)
class RunFlags(TurnFlags, LogFlags):
    """Send one message and print the answer.

    If no rule allows a call, Dragoman asks at the terminal. Without a terminal it rejects the call. Exit
    status: 0 completed, 1 error, 2 wrong settings or flags, 3 the model refused or a filter stopped it, 4 the
    reply is cut off, 5 no answer, 130 cancelled (Ctrl-C).
    """

    message: Annotated[
        list[str] | None, typer.Argument(help="Your message. Default or `-`: standard input.")
    ] = None
    attach: Annotated[list[Path] | None, typer.Option(help="File to attach. Repeatable.")] = None
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the answer's image, audio or text here. Several files get -1, -2.",
        ),
    ] = None
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Option of the model, such as size=1024x1536. Repeatable."),
    ] = None
    agent: Agent = None
    mode: Mode = None
    system: System = None
    output_type: Annotated[
        Path | None,
        typer.Option("--output-type", metavar="FILE", help="JSON schema for the answer."),
    ] = None
    max_rounds: Annotated[int | None, typer.Option(help="Maximum number of rounds of calls.")] = None
    conversation: Annotated[
        str | None,
        typer.Option(
            "--continue",
            "-c",
            help="Conversation to send to: ID, ID prefix, or `last`. Without a message, its interrupted turn "
            "resumes. With one, that turn is closed.",
            autocompletion=complete_conversations,
        ),
    ] = None
    forget: Annotated[bool, typer.Option("--forget", help="Don't store this turn.")] = False


@group.command(
    "serve",
    "commands.serve:serve",
    "`dragoman serve --port 8000`, or `dragoman serve --log json --log-level store=debug`",
)
class ServeFlags(WorkspaceFlags, TrustFlags, LogFlags):
    """Serve the web UI and the API. Prints a sign-in link.

    Closing the browser stops no turn. Ctrl-C stops the server, and running turns resume at the next start.
    """

    model: Model = None
    host: Annotated[str | None, typer.Option(help="Address to listen on. A public one needs a password.")] = (
        None
    )
    port: Annotated[int | None, typer.Option(help="Port. 0 takes a free one.")] = None
    open: Annotated[bool | None, typer.Option(help="Open the web UI in the browser.")] = None
    role: Annotated[
        str | None,
        typer.Option(help="web: leave turns to workers. both: run turns, too. Default: both."),
    ] = None


@group.command("worker", "commands.serve:work", "`dragoman worker --store postgresql://db/chat --turns 16`")
class WorkerFlags(WorkspaceFlags, TrustFlags):
    """Run turns for `dragoman serve --role web`, on this machine or another.

    All processes share a PostgreSQL store. Ctrl-C and SIGTERM hand running turns to other workers.
    """

    model: Model = None
    turns: Annotated[int | None, typer.Option(help="Maximum number of turns at the same time.")] = None


@group.command("link", "listening:print_link", "`dragoman link`")
class LinkFlags(StoreFlags):
    """Print a sign-in link for one browser, valid for ten minutes."""

    key: Annotated[
        bool, typer.Option("--key", help="Print a key for programs instead, valid while the server runs.")
    ] = False
    port: Annotated[int | None, typer.Option(help="Port of the server, if several run.")] = None


@group.command("demo", "commands.demo:play_demo", "`dragoman demo`")
class DemoFlags(Flags):
    """Show a scripted conversation with tools, without key or network."""


@group.command(
    "acp",
    "acp.agent:acp",
    "`dragoman acp --model ollama/qwen3`, as the agent's command in the editor's settings",
)
class AcpFlags(StoreFlags, TrustFlags, LogFlags):
    """Serve an editor such as Zed, JetBrains or Neovim.

    The editor starts this program, names the folder, and shows approval requests. The Agent Client Protocol
    runs on standard input and output.
    """

    model: Model = None
    mode: Mode = None
    system: System = None
    allow: Allow = None
    deny: Deny = None
