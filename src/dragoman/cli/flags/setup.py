"""`dragoman models`, `tools` and `doctor`: what there is on this machine, and what is missing."""

from __future__ import annotations

from typing import Annotated

import typer

from dragoman.cli.flags.options import AsJson, Config, Store, Workspace, absolute, load_settings

app = typer.Typer(rich_markup_mode="markdown")
PANEL = "Setting up"


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman models --json`")
def models(config: Config = None, json: AsJson = False) -> None:
    """The models there are: their context, what they can be shown, prices, keys, and what runs here."""
    from dragoman.cli.commands.models import list_models

    list_models(load_settings(config, None), as_json=json)


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman tools --check`")
def tools(
    check: Annotated[bool, typer.Option("--check", help="Start the MCP servers and ask for theirs.")] = False,
    store: Store = None,
    workspace: Workspace = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """The tools a model is offered here: what each may touch, and whether you would be asked first."""
    from dragoman.cli.commands.tools import list_tools

    settings = load_settings(config, store, {"workspace": absolute(workspace)})
    list_tools(settings, check=check, as_json=json)


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman doctor --mend`")
def doctor(
    mend: Annotated[
        bool, typer.Option("--mend", help="Mend in the store what can be mended without losing anything.")
    ] = False,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """What works here, what is missing, and the command that mends it. Status 1 where something must be."""
    from dragoman.cli.commands.doctor import examine

    if not examine(config, mend=mend, as_json=json):
        raise typer.Exit(1)
