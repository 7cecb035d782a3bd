"""`dragoman models`, `tools`, `doctor`, `trust`: what there is on this machine, and what may be used."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.flags.options import AsJson, Config, Store, Trust, Workspace, absolute, load_settings

app = typer.Typer(rich_markup_mode="markdown")
PANEL = "Setting up"


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman models --check openai anthropic`")
def models(
    providers: Annotated[list[str] | None, typer.Argument(help="These providers, not all.")] = None,
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Ask the providers whose keys are there for their own lists.")
    ] = False,
    base_url: Annotated[
        str | None, typer.Option("--base-url", help="Ask the server at this address for its list.")
    ] = None,
    api_key: Annotated[str | None, typer.Option("--api-key", help="The key for that server.")] = None,
    learned: Annotated[
        bool, typer.Option("--learned", help="What servers were found to refuse, and until when that counts.")
    ] = False,
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Forget that, of these providers or of all, and ask them again."),
    ] = False,
    config: Config = None,
    trust: Trust = False,
    json: AsJson = False,
) -> None:
    """The models there are: their context, what they can be shown, prices, keys, and what runs here."""
    from dragoman.cli.commands.models import check_models, list_models

    if learned or forget:
        from dragoman.cli.commands.models import forget_lessons, show_lessons

        (forget_lessons if forget else show_lessons)(providers or [], as_json=json)
        return
    settings = load_settings(config, None, trust=trust, asks=True)
    if check or base_url is not None:
        check_models(settings, names=providers or [], as_json=json, base_url=base_url, api_key=api_key)
    else:
        list_models(settings, names=providers or [], as_json=json)


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman tools --check`")
def tools(
    *,
    check: Annotated[bool, typer.Option("--check", help="Start the MCP servers and ask for theirs.")] = False,
    store: Store = None,
    workspace: Workspace = None,
    config: Config = None,
    trust: Trust = False,
    json: AsJson = False,
) -> None:
    """The tools a model is offered here: what each may touch, and whether you would be asked first."""
    from dragoman.cli.commands.tools import list_tools

    flags = {"workspace": absolute(workspace)}
    settings = load_settings(config, store, flags, trust=trust, asks=True)
    list_tools(settings, check=check, as_json=json)


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman doctor --mend`")
def doctor(
    mend: Annotated[
        bool, typer.Option("--mend", help="Mend in the store what can be mended without losing anything.")
    ] = False,
    config: Config = None,
    trust: Trust = False,
    json: AsJson = False,
) -> None:
    """What works here, what is missing, and the command that mends it. Status 1 where something must be."""
    from dragoman.cli.commands.doctor import examine

    if not examine(config, trust=trust, mend=mend, as_json=json):
        raise typer.Exit(1)


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman trust project`")
def trust(
    folder: Annotated[
        Path | None, typer.Argument(help="The folder, if not the one whose dragoman.toml holds here.")
    ] = None,
    *,
    list_all: Annotated[bool, typer.Option("--list", help="The folders you decided about.")] = False,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Trust it no longer: it is asked about again.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask at the terminal.")] = False,
    json: AsJson = False,
) -> None:
    """Let a folder's settings, tools, MCP servers and skills act, after a look at what they would do."""
    from dragoman.cli.commands.trust import list_trusted, revoke_trust, trust_folder

    if list_all:
        list_trusted(as_json=json)
    elif revoke:
        revoke_trust(folder)
    else:
        trust_folder(folder, confirmed=yes)
