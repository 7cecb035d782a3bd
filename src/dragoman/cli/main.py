"""The terminal program: each command is a file beside this one, imported when it is used."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.config import app as config
from dragoman.cli.mcp import app as mcp
from dragoman.cli.options import AsJson, Config, Model, Store, Workspace, conversations_like, settings_of
from dragoman.cli.people import app as people
from dragoman.cli.stored import app as stored
from dragoman.errors import ConfigError, DragomanError

TALK, SETUP, BUILD = "Talking", "Setting up", "Looking closer"

app = typer.Typer(
    help="Conversations in which a language model calls tools.",
    epilog="Exit status: 0 done; 1 an error, told in a line; 2 wrong usage or settings; 130 cancelled.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.add_typer(stored)
app.add_typer(mcp, name="mcp", rich_help_panel=SETUP)
app.add_typer(config, name="config", rich_help_panel=SETUP)
app.add_typer(people, name="people", rich_help_panel=SETUP)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"dragoman {version('dragoman')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Conversations in which a language model calls tools."""


@app.command(rich_help_panel=TALK, epilog="Example: `dragoman chat --last`")
def chat(
    conversation: Annotated[
        str | None,
        typer.Argument(
            help="The id, its beginning, or `last`; without it, a new conversation.",
            autocompletion=conversations_like,
        ),
    ] = None,
    *,
    last: Annotated[bool, typer.Option("--last", help="Go on where you were last.")] = False,
    model: Model = None,
    agent: Annotated[str | None, typer.Option(help="The agent that answers.")] = None,
    mode: Annotated[str | None, typer.Option(help="Who decides about calls: auto, ask, manual, off.")] = None,
    system: Annotated[str | None, typer.Option(help="The system prompt.")] = None,
    thoughts: Annotated[bool, typer.Option("--thoughts", help="Show what the model thinks, whole.")] = False,
    store: Store = None,
    workspace: Workspace = None,
    config: Config = None,
) -> None:
    """A conversation at the terminal. Ctrl-C stops a turn; Ctrl-D leaves, and what waits for you waits on."""
    from dragoman.cli.chat.talk import Wanted, chat

    folder = str(workspace.resolve()) if workspace else None
    flags = {"model": model, "mode": mode, "system": system, "workspace": folder}
    wanted = Wanted(conversation=conversation or ("last" if last else None), agent=agent, thoughts=thoughts)
    chat(settings_of(config, store, flags), wanted)


@app.command(
    "run",
    rich_help_panel=TALK,
    epilog="Example: `dragoman run --model ollama/qwen3 --tools tools.py --allow '*' 'What is in a.txt?'`",
)
def run_turn(
    message: Annotated[
        list[str] | None, typer.Argument(help="What you say; `-`, or nothing, is standard input.")
    ] = None,
    *,
    model: Model = None,
    base_url: Annotated[
        str | None, typer.Option(help="Where the model is served, if not where the catalog says.")
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(help="The key. Others on this machine can see it: better set the provider's variable."),
    ] = None,
    wire: Annotated[
        str | None, typer.Option(help="The protocol spoken at that address: openai_chat, …")
    ] = None,
    dialect: Annotated[
        str, typer.Option(help="How calls are made: auto, native, or a dialect such as xml_tag.")
    ] = "auto",
    tools: Annotated[
        list[Path] | None, typer.Option(help="A Python file with @tool functions. Can be given again.")
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="PERMISSION or PERMISSION:PATTERN that needs no question. Can be given again."),
    ] = None,
    deny: Annotated[list[str] | None, typer.Option(help="What must not run. Can be given again.")] = None,
    attach: Annotated[
        list[Path] | None, typer.Option(help="A file to send along. Can be given again.")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="The agent that answers.")] = None,
    mode: Annotated[str | None, typer.Option(help="Who decides about calls: auto, ask, manual, off.")] = None,
    system: Annotated[str | None, typer.Option(help="The system prompt.")] = None,
    max_rounds: Annotated[int | None, typer.Option(help="So many batches of calls at most.")] = None,
    conversation: Annotated[
        str | None,
        typer.Option(
            "--continue",
            help="Say it in this conversation: an id, its beginning, or `last`.",
            autocompletion=conversations_like,
        ),
    ] = None,
    store: Store = None,
    forget: Annotated[bool, typer.Option("--forget", help="Keep nothing of it.")] = False,
    workspace: Workspace = None,
    config: Config = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print every event as one JSON object a line.")
    ] = False,
) -> None:
    """One turn: your message, the model's calls of tools, its answer.

    Calls that no rule allows are asked about at the terminal, and rejected where there is none. The exit
    status is 0 where the turn completed, 1 after an error, 130 where it was cancelled (Ctrl-C).
    """
    from dragoman.cli.run import Order, run

    order = Order(
        message=message or (),
        model=model,
        base_url=base_url,
        api_key=api_key,
        wire=wire,
        dialect=dialect,
        tools=tools or (),
        allow=allow or (),
        deny=deny or (),
        attach=attach or (),
        agent=agent,
        mode=mode,
        system=system,
        max_rounds=max_rounds,
        conversation=conversation,
        store=store,
        forget=forget,
        workspace=workspace,
        config=config,
        as_json=json,
    )
    raise typer.Exit(run(order))


@app.command(rich_help_panel=TALK, epilog="Example: `dragoman serve --model ollama/qwen3 --port 8000`")
def serve(
    *,
    model: Model = None,
    host: Annotated[
        str | None, typer.Option(help="The address to listen on; a public one needs a password.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="The port; 0 takes a free one.")] = None,
    store: Store = None,
    workspace: Workspace = None,
    open: Annotated[bool | None, typer.Option(help="Open the page in the browser.")] = None,
    config: Config = None,
) -> None:
    """The page and the API on one address. Prints the link that lets you in.

    Closing the page does not stop a turn. Ctrl-C stops the server; what runs goes on at the next start.
    """
    from dragoman.cli.serve import serve

    flags = {
        "model": model,
        "server.host": host,
        "server.port": port,
        "server.open": open,
        "workspace": str(workspace.resolve()) if workspace else None,
    }
    serve(settings_of(config, store, flags))


@app.command(rich_help_panel=TALK, epilog="Example: `dragoman demo`")
def demo() -> None:
    """A conversation with tools, played by a scripted model: no key, no network."""
    from dragoman.cli.demo import demo

    demo()


@app.command(rich_help_panel=SETUP, epilog="Example: `dragoman models --json`")
def models(config: Config = None, json: AsJson = False) -> None:
    """The models there are: their context, what they can be shown, prices, keys, and what runs here."""
    from dragoman.cli.models import models

    models(settings_of(config, None), as_json=json)


@app.command(rich_help_panel=SETUP, epilog="Example: `dragoman tools --check`")
def tools(
    check: Annotated[bool, typer.Option("--check", help="Start the MCP servers and ask for theirs.")] = False,
    store: Store = None,
    workspace: Workspace = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """The tools a model is offered here: what each may touch, and whether you would be asked first."""
    from dragoman.cli.tools import tools

    flags = {"workspace": str(workspace.resolve()) if workspace else None}
    tools(settings_of(config, store, flags), check=check, as_json=json)


@app.command(rich_help_panel=SETUP, epilog="Example: `dragoman doctor`")
def doctor(config: Config = None, json: AsJson = False) -> None:
    """What works here, what is missing, and the command that mends it. Status 1 where something must be."""
    from dragoman.cli.doctor import doctor

    if not doctor(config, as_json=json):
        raise typer.Exit(1)


@app.command(rich_help_panel=BUILD, epilog="Example: `dragoman explain turn_9x3k2m7qw1r5t8v0 --json`")
def explain(
    turn: Annotated[str | None, typer.Argument(help="The turn's id; without it, the latest one.")] = None,
    store: Store = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """What happened in a turn: its facts, the states they led to, and what it still asks."""
    from dragoman.cli.explain import explain
    from dragoman.config.build import store_of

    explain(turn, store_of(settings_of(config, store)), as_json=json)


@app.command(rich_help_panel=BUILD, epilog="Example: `dragoman decode --wire openai_chat < stream.sse`")
def decode(
    wire: Annotated[
        str, typer.Option(help="openai_chat, openai_responses, anthropic_messages or gemini.")
    ] = "openai_chat",
) -> None:
    """A provider's stream, as one JSON object: text, reasoning, tool_calls, finish, usage, error.

    An error inside the stream is part of what is printed, and not one of this program.
    """
    from dragoman.cli.decode import decode

    decode(wire)


@app.command(
    rich_help_panel=BUILD, epilog="Example: `dragoman parse --dialect xml_tag --tools tools.json < reply.txt`"
)
def parse(
    dialect: Annotated[str, typer.Option(help="How calls are written: xml_tag, json_strict, hermes, …")],
    tools: Annotated[
        Path | None, typer.Option(help="The tools as JSON, as providers are sent them: their schemas help.")
    ] = None,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Read a JSON string from each line, print an object for each.")
    ] = False,
) -> None:
    """A model's reply as a dialect reads it: its calls, the remaining text, and what is wrong with it.

    With --jsonl the exit status is 1 if a line was no JSON string; its object says so.
    """
    from dragoman.cli.parse import parse

    if not parse(dialect, tools, jsonl=jsonl):
        raise typer.Exit(1)


def run() -> None:
    """The entry point: one line for an expected error; exit status 2 for what was asked wrongly, else 1."""
    import sqlite3

    from dragoman.cli.trouble import told

    try:
        app()
    except DragomanError as error:
        print(f"dragoman: {told(error)}", file=sys.stderr)
        sys.exit(2 if isinstance(error, ConfigError) else 1)
    except BrokenPipeError:
        # Whoever read along has gone. What is still buffered must not raise it again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (OSError, sqlite3.Error) as error:
        print(f"dragoman: {told(error)}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    run()
