"""`dragoman chat`, `run`, `serve` and `demo`: talking with a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.flags.options import (
    Agent,
    ApiKey,
    BaseUrl,
    Config,
    Dialect,
    Log,
    LogLevel,
    Mode,
    Model,
    Store,
    System,
    Trust,
    Wire,
    Workspace,
    absolute,
    complete_conversations,
    load_settings,
    start_logs,
)

app = typer.Typer(rich_markup_mode="markdown")
PANEL = "Talking"


@app.command(
    rich_help_panel=PANEL,
    epilog="Example: `dragoman chat --last`, or `dragoman chat --allow files.read`",
)
def chat(
    conversation: Annotated[
        str | None,
        typer.Argument(
            help="The id, its beginning, or `last`; without it, a new conversation.",
            autocompletion=complete_conversations,
        ),
    ] = None,
    *,
    last: Annotated[bool, typer.Option("--last", help="Go on where you were last.")] = False,
    model: Model = None,
    agent: Agent = None,
    mode: Mode = None,
    system: System = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="PERMISSION or PERMISSION:PATTERN that needs no question. Can be given again."),
    ] = None,
    deny: Annotated[list[str] | None, typer.Option(help="What must not run. Can be given again.")] = None,
    thoughts: Annotated[bool, typer.Option("--thoughts", help="Show what the model thinks, whole.")] = False,
    store: Store = None,
    workspace: Workspace = None,
    config: Config = None,
    trust: Trust = False,
    log: Log = None,
    log_level: LogLevel = None,
) -> None:
    """A conversation at the terminal. Ctrl-C stops a turn; Ctrl-D leaves, and what waits for you waits on."""
    from dragoman.cli.commands.chat import ChatFlags, chat

    start_logs(log, log_level)
    settings = {"model": model, "mode": mode, "system": system, "workspace": absolute(workspace)}
    flags = ChatFlags(
        conversation=conversation or ("last" if last else None),
        allow=allow or (),
        deny=deny or (),
        agent=agent,
        model=model,
        mode=mode,
        thoughts=thoughts,
    )
    chat(load_settings(config, store, settings, trust=trust, asks=True), flags)


@app.command(
    rich_help_panel=PANEL,
    epilog="Example: `dragoman run --model ollama/qwen3 --tools tools.py --allow '*' 'What is in a.txt?'`",
)
def run(
    message: Annotated[
        list[str] | None, typer.Argument(help="What you say; `-`, or nothing, is standard input.")
    ] = None,
    *,
    model: Model = None,
    base_url: BaseUrl = None,
    api_key: ApiKey = None,
    wire: Wire = None,
    dialect: Dialect = "auto",
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
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the picture or the sound of the answer here, or its text; several get -1, -2.",
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An option of the model, such as size=1024x1536. Again."),
    ] = None,
    agent: Agent = None,
    mode: Mode = None,
    system: System = None,
    output_type: Annotated[
        Path | None,
        typer.Option("--output-type", metavar="FILE", help="A JSON schema that the answer has to fit."),
    ] = None,
    max_rounds: Annotated[int | None, typer.Option(help="So many batches of calls at most.")] = None,
    conversation: Annotated[
        str | None,
        typer.Option(
            "--continue",
            "-c",
            help="Say it in this conversation: an id, its beginning, or `last`. Without a message, an "
            "interrupted turn of it goes on; with one, that turn is closed.",
            autocompletion=complete_conversations,
        ),
    ] = None,
    store: Store = None,
    forget: Annotated[bool, typer.Option("--forget", help="Keep nothing of it.")] = False,
    workspace: Workspace = None,
    config: Config = None,
    trust: Trust = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print every event as one JSON object a line.")
    ] = False,
    log: Log = None,
    log_level: LogLevel = None,
) -> None:
    """One turn: your message, the model's calls of tools, its answer.

    Calls that no rule allows are asked about at the terminal, and rejected where there is none. The exit
    status is 0 where the turn completed, 1 after an error, 2 where the settings or flags cannot be followed,
    3 where the model refused or a filter ended its reply, 4 where the reply is cut off, 5 where it holds no
    answer, 130 where it was cancelled (Ctrl-C).
    """
    from dragoman.cli.commands.run import run
    from dragoman.cli.commands.run_flags import RunFlags

    start_logs(log, log_level)
    flags = RunFlags(
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
        out=out,
        options=option or (),
        agent=agent,
        mode=mode,
        system=system,
        max_rounds=max_rounds,
        output_type=output_type,
        conversation=conversation,
        store=store,
        forget=forget,
        workspace=workspace,
        config=config,
        trust=trust,
        as_json=json,
    )
    raise typer.Exit(run(flags))


@app.command(
    rich_help_panel=PANEL,
    epilog="Example: `dragoman serve --port 8000`, or `dragoman serve --log json --log-level store=debug`",
)
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
    role: Annotated[
        str | None,
        typer.Option(help="web: leave the turns to `dragoman worker`s. both: run turns, too (the default)."),
    ] = None,
    config: Config = None,
    trust: Trust = False,
    log: Log = None,
    log_level: LogLevel = None,
) -> None:
    """The page and the API on one address. Prints the link that lets you in.

    Closing the page does not stop a turn. Ctrl-C stops the server; what runs goes on at the next start.
    """
    from dragoman.cli.commands.serve import serve

    start_logs(log, log_level)
    settings = {
        "model": model,
        "server.host": host,
        "server.port": port,
        "server.open": open,
        "workers.role": role,
        "workspace": absolute(workspace),
    }
    serve(load_settings(config, store, settings, trust=trust, asks=True))


@app.command(
    rich_help_panel=PANEL,
    epilog="Example: `dragoman worker --store postgresql://db/chat --turns 16`",
)
def worker(
    *,
    model: Model = None,
    turns: Annotated[int | None, typer.Option(help="How many turns run here at once.")] = None,
    store: Store = None,
    workspace: Workspace = None,
    config: Config = None,
    trust: Trust = False,
) -> None:
    """Run the turns that `dragoman serve --role web` takes in, on this machine or on another.

    The store is a PostgreSQL database that all of them use. Ctrl-C and SIGTERM stop it; what runs is handed
    to the other workers.
    """
    from dragoman.cli.commands.serve import work

    settings = {"model": model, "workers.per_node": turns, "workspace": absolute(workspace)}
    work(load_settings(config, store, settings, trust=trust, asks=True))


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman link`")
def link(
    key: Annotated[
        bool, typer.Option("--key", help="Print a key for programs instead: it holds while the server runs.")
    ] = False,
    port: Annotated[int | None, typer.Option(help="The server at this port, where several run.")] = None,
    store: Store = None,
    config: Config = None,
) -> None:
    """Another link to the server that runs here: for one browser, within ten minutes."""
    from dragoman.cli.listening import print_link

    print_link(load_settings(config, store), key=key, port=port)


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman demo`")
def demo() -> None:
    """A conversation with tools, played by a scripted model: no key, no network."""
    from dragoman.cli.commands.demo import play_demo

    play_demo()
