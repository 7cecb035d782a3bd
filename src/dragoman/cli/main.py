"""The terminal program: each command is a file beside this one, imported when it is used."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.mcp import app as mcp
from dragoman.errors import ConfigError, DragomanError

app = typer.Typer(
    help="Conversations in which a language model calls tools.",
    epilog="Exit status: 0 done, 1 an error, told in a line on standard error, 2 wrong usage, 130 cancelled.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.add_typer(mcp, name="mcp")

Store = Annotated[Path, typer.Option(envvar="DRAGOMAN_STORE", help="The database file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Config = Annotated[
    Path | None,
    typer.Option(envvar="DRAGOMAN_CONFIG", help="Your own providers: dragoman.toml here, if it is there."),
]


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


@app.command(epilog="Example: `dragoman explain turn_9x3k2m7qw1r5t8v0 --json`")
def explain(
    turn: Annotated[str | None, typer.Argument(help="The turn's id; without it, the latest one.")] = None,
    store: Store = Path("dragoman.db"),
    json: AsJson = False,
) -> None:
    """What happened in a turn: its facts, the states they led to, and what it still asks."""
    from dragoman.cli.explain import explain

    explain(turn, store, as_json=json)


@app.command(epilog="Example: `dragoman demo`")
def demo() -> None:
    """A conversation with tools, played by a scripted model: no key, no network."""
    from dragoman.cli.demo import demo

    demo()


@app.command(epilog="Example: `dragoman serve --model ollama/qwen3 --port 8000`")
def serve(
    *,
    model: Annotated[
        str | None, typer.Option(help="PROVIDER/MODEL; without it, the best that is there.")
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="The address to listen on; a public one needs a password.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="The port; 0 takes a free one.")] = None,
    store: Annotated[Path | None, typer.Option(help="The database with everything that was said.")] = None,
    workspace: Annotated[
        Path | None, typer.Option(help="The folder that file tools and the shell work in.")
    ] = None,
    open: Annotated[bool | None, typer.Option(help="Open the page in the browser.")] = None,
    config: Config = None,
) -> None:
    """The page and the API on one address. Prints the link that lets you in.

    Closing the page does not stop a turn. Ctrl-C stops the server; what runs goes on at the next start.
    """
    from dragoman.cli.serve import serve
    from dragoman.config.settings import load

    flags = {
        "model": model,
        "server.host": host,
        "server.port": port,
        "server.open": open,
        "store": str(store.resolve()) if store else None,
        "workspace": str(workspace.resolve()) if workspace else None,
    }
    serve(load(config, flags=flags))


@app.command(
    "run",
    epilog="Example: `dragoman run --model ollama/qwen3 --tools tools.py --allow '*' 'What is in a.txt?'`",
)
def run_turn(
    message: Annotated[
        str | None, typer.Argument(help="What you say; `-`, or nothing, reads it from standard input.")
    ] = None,
    *,
    model: Annotated[
        str | None,
        typer.Option(
            envvar="DRAGOMAN_MODEL", help="PROVIDER/MODEL; without it, one of a server that runs here."
        ),
    ] = None,
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
    system: Annotated[str, typer.Option(help="The system prompt.")] = "",
    max_rounds: Annotated[int, typer.Option(help="So many batches of calls at most.")] = 10,
    store: Annotated[
        Path | None, typer.Option(help="The database to keep the conversation in; else nothing is kept.")
    ] = None,
    config: Config = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print every event as one JSON object a line.")
    ] = False,
) -> None:
    """One turn: your message, the model's calls of your tools, its answer.

    Calls that no rule allows are asked about at the terminal, and rejected where there is none. The exit
    status is 0 where the turn completed, 1 after an error, 130 where it was cancelled (Ctrl-C).
    """
    from dragoman.cli.run import Order, run

    order = Order(
        message=message,
        model=model,
        base_url=base_url,
        api_key=api_key,
        wire=wire,
        dialect=dialect,
        tools=tools or (),
        allow=allow or (),
        deny=deny or (),
        system=system,
        max_rounds=max_rounds,
        store=store,
        config=config,
        as_json=json,
    )
    raise typer.Exit(run(order))


@app.command(epilog="Example: `dragoman models --json`")
def models(config: Config = None, json: AsJson = False) -> None:
    """The models there are: their context, what they can be shown, prices, keys, and what runs here."""
    from dragoman.cli.models import models

    models(config, as_json=json)


@app.command(epilog="Example: `dragoman decode --wire openai_chat < stream.sse`")
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


@app.command(epilog="Example: `dragoman parse --dialect xml_tag --tools tools.json < reply.txt`")
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
    try:
        app()
    except DragomanError as error:
        print(f"dragoman: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, ConfigError) else 1)


if __name__ == "__main__":
    run()
