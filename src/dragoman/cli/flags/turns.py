"""`dragoman resume`, `cancel`, `steer` and `queue`: turns that were begun, here or by another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.flags.options import (
    ApiKey,
    AsJson,
    BaseUrl,
    Config,
    Conversation,
    Dialect,
    Model,
    Store,
    Trust,
    Wire,
    Workspace,
    absolute,
    complete_conversations,
    load_settings,
)

app = typer.Typer(rich_markup_mode="markdown")
PANEL = "Turns under way"

Turn = Annotated[
    str,
    typer.Argument(
        help="Its id, or that of its conversation, the beginning of one, or `last`.",
        autocompletion=complete_conversations,
    ),
]


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman resume last --allow files.read`")
def resume(
    conversation: Conversation,
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
    store: Store = None,
    workspace: Workspace = None,
    config: Config = None,
    trust: Trust = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print every event as one JSON object a line.")
    ] = False,
) -> None:
    """Go on with a turn that was interrupted: the same as `run --continue` without a message.

    It is answered by the model it was begun with, or not at all; where that was named with an address, name
    both again. The exit status is that of `run`.
    """
    from dragoman.cli.commands.run import run
    from dragoman.cli.commands.run_flags import RunFlags

    flags = RunFlags(
        message=(),
        resume=True,
        conversation=conversation,
        model=model,
        base_url=base_url,
        api_key=api_key,
        wire=wire,
        dialect=dialect,
        tools=tools or (),
        allow=allow or (),
        deny=deny or (),
        store=store,
        workspace=workspace,
        config=config,
        trust=trust,
        as_json=json,
    )
    raise typer.Exit(run(flags))


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman cancel last --reason 'not today'`")
def cancel(
    turn: Turn,
    *,
    reason: Annotated[str, typer.Option(help="Why; it is stored with the turn.")] = "",
    store: Store = None,
    workspace: Workspace = None,
    config: Config = None,
    trust: Trust = False,
) -> None:
    """Stop a turn, whichever program runs it; one that was interrupted is closed."""
    from dragoman.cli.commands.turns import cancel

    flags = {"workspace": absolute(workspace)}
    cancel(turn, load_settings(config, store, flags, trust=trust, asks=True), reason=reason)


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman steer last 'in French, please'`")
def steer(
    turn: Turn,
    message: Annotated[list[str], typer.Argument(help="What you say to it.")],
    *,
    store: Store = None,
    config: Config = None,
) -> None:
    """Say something to a turn that runs: it reads it before its next step."""
    from dragoman.cli.commands.turns import steer

    steer(turn, " ".join(message), load_settings(config, store))


@app.command(
    rich_help_panel=PANEL,
    epilog="Example: `dragoman queue last 'then run the tests'`, or `dragoman queue` to see what waits",
)
def queue(
    conversation: Annotated[
        str | None,
        typer.Argument(
            help="Its id, the beginning of it, or `last`; without it, all.",
            autocompletion=complete_conversations,
        ),
    ] = None,
    message: Annotated[list[str] | None, typer.Argument(help="What is to be said.")] = None,
    *,
    drop: Annotated[str | None, typer.Option(metavar="TURN", help="Call off what waits.")] = None,
    store: Store = None,
    config: Config = None,
    trust: Trust = False,
    json: AsJson = False,
) -> None:
    """Say something when the turn that runs is over; without a message, list what waits for its turn."""
    from dragoman.cli.commands.turns import add_to_queue, drop_queued, list_queue

    if drop is not None:
        drop_queued(drop, load_settings(config, store))
    elif conversation is not None and message:
        add_to_queue(conversation, " ".join(message), load_settings(config, store, trust=trust, asks=True))
    else:
        list_queue(conversation, load_settings(config, store), as_json=json)
