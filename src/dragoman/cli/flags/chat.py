"""`dragoman chat`, `run`, `serve`, `worker`, `link`, `demo` and `acp`: talking with a model."""

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

group = CommandGroup("Talking")


class TurnFlags(WorkspaceFlags, TrustFlags):
    """What `run` and `resume` take."""

    model: Model = None
    base_url: Annotated[
        str | None, typer.Option(help="Where the model is served, if not where the catalog says.")
    ] = None
    api_key: Annotated[
        str | None,
        typer.Option(help="The key. Others on this machine can see it: better set the provider's variable."),
    ] = None
    wire: Annotated[str | None, typer.Option(help="The protocol spoken at that address: openai_chat, …")] = (
        None
    )
    dialect: Annotated[
        str, typer.Option(help="How calls are made: auto, native, or a dialect such as xml_tag.")
    ] = "auto"
    tools: Annotated[
        list[Path] | None, typer.Option(help="A Python file with @tool functions. Can be given again.")
    ] = None
    allow: Allow = None
    deny: Deny = None
    json: Annotated[bool, typer.Option("--json", help="Print every event as one JSON object a line.")] = False


@group.command("chat", "commands.chat:chat", "`dragoman chat --last`, or `dragoman chat --allow files.read`")
class ChatFlags(WorkspaceFlags, TrustFlags, LogFlags):
    """A conversation at the terminal. Ctrl-C stops a turn; Ctrl-D leaves, and what waits for you waits on."""

    conversation: Annotated[
        str | None,
        typer.Argument(
            help="The id, its beginning, or `last`; without it, a new conversation.",
            autocompletion=complete_conversations,
        ),
    ] = None
    last: Annotated[bool, typer.Option("--last", help="Continue the last conversation of this folder.")] = (
        False
    )
    pick: Annotated[
        bool, typer.Option("--pick", help="Choose a conversation: those of this folder come first.")
    ] = False
    model: Model = None
    agent: Agent = None
    mode: Mode = None
    system: System = None
    allow: Allow = None
    deny: Deny = None
    thoughts: Annotated[bool, typer.Option("--thoughts", help="Show what the model thinks, whole.")] = False


@group.command(
    "run",
    "commands.run:run",
    "`dragoman run --model ollama/qwen3 --tools tools.py --allow '*' 'What is in a.txt?'`",
)
class RunFlags(TurnFlags, LogFlags):
    """One turn: your message, the model's calls of tools, its answer.

    Calls that no rule allows are asked about at the terminal, and rejected where there is none. The exit
    status is 0 where the turn completed, 1 after an error, 2 where the settings or flags cannot be followed,
    3 where the model refused or a filter ended its reply, 4 where the reply is cut off, 5 where it holds no
    answer, 130 where it was cancelled (Ctrl-C).
    """

    message: Annotated[
        list[str] | None, typer.Argument(help="What you say; `-`, or nothing, is standard input.")
    ] = None
    attach: Annotated[list[Path] | None, typer.Option(help="A file to send along. Can be given again.")] = (
        None
    )
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the picture or the sound of the answer here, or its text; several get -1, -2.",
        ),
    ] = None
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An option of the model, such as size=1024x1536. Again."),
    ] = None
    agent: Agent = None
    mode: Mode = None
    system: System = None
    output_type: Annotated[
        Path | None,
        typer.Option("--output-type", metavar="FILE", help="A JSON schema that the answer has to fit."),
    ] = None
    max_rounds: Annotated[int | None, typer.Option(help="So many batches of calls at most.")] = None
    conversation: Annotated[
        str | None,
        typer.Option(
            "--continue",
            "-c",
            help="Say it in this conversation: an id, its beginning, or `last`. Without a message, an "
            "interrupted turn of it goes on; with one, that turn is closed.",
            autocompletion=complete_conversations,
        ),
    ] = None
    forget: Annotated[bool, typer.Option("--forget", help="Keep nothing of it.")] = False


@group.command(
    "serve",
    "commands.serve:serve",
    "`dragoman serve --port 8000`, or `dragoman serve --log json --log-level store=debug`",
)
class ServeFlags(WorkspaceFlags, TrustFlags, LogFlags):
    """The page and the API on one address. Prints the link that lets you in.

    Closing the page does not stop a turn. Ctrl-C stops the server; what runs goes on at the next start.
    """

    model: Model = None
    host: Annotated[
        str | None, typer.Option(help="The address to listen on; a public one needs a password.")
    ] = None
    port: Annotated[int | None, typer.Option(help="The port; 0 takes a free one.")] = None
    open: Annotated[bool | None, typer.Option(help="Open the page in the browser.")] = None
    role: Annotated[
        str | None,
        typer.Option(help="web: leave the turns to `dragoman worker`s. both: run turns, too (the default)."),
    ] = None


@group.command("worker", "commands.serve:work", "`dragoman worker --store postgresql://db/chat --turns 16`")
class WorkerFlags(WorkspaceFlags, TrustFlags):
    """Run the turns that `dragoman serve --role web` takes in, on this machine or on another.

    The store is a PostgreSQL database that all of them use. Ctrl-C and SIGTERM stop it; what runs is handed
    to the other workers.
    """

    model: Model = None
    turns: Annotated[int | None, typer.Option(help="How many turns run here at once.")] = None


@group.command("link", "listening:print_link", "`dragoman link`")
class LinkFlags(StoreFlags):
    """Another link to the server that runs here: for one browser, within ten minutes."""

    key: Annotated[
        bool, typer.Option("--key", help="Print a key for programs instead: it holds while the server runs.")
    ] = False
    port: Annotated[int | None, typer.Option(help="The server at this port, where several run.")] = None


@group.command("demo", "commands.demo:play_demo", "`dragoman demo`")
class DemoFlags(Flags):
    """A conversation with tools, played by a scripted model: no key, no network."""


@group.command(
    "acp",
    "acp.agent:acp",
    "`dragoman acp --model ollama/qwen3`, as the agent's command in the editor's settings",
)
class AcpFlags(StoreFlags, TrustFlags, LogFlags):
    """An agent for editors such as Zed, JetBrains and Neovim: the Agent Client Protocol on standard input
    and output. The editor starts it, names the folder, and asks you what is to be asked."""

    model: Model = None
    mode: Mode = None
    system: System = None
    allow: Allow = None
    deny: Deny = None
