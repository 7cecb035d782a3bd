"""`dragoman people …`: who may use a server, each with a key of their own."""

from __future__ import annotations

from typing import Annotated

import typer

from dragoman.cli.flags.options import AsJson, Config, Store, load_settings

app = typer.Typer(
    help="Who may use your server, with keys of their own.", no_args_is_help=True, rich_markup_mode="markdown"
)

Name = Annotated[str, typer.Argument(help="What the person is called.")]


@app.command(epilog="Example: `dragoman people add anna`")
def add(name: Name, store: Store = None, config: Config = None) -> None:
    """Let somebody in. Their key is printed once: only a hash of it is kept."""
    from dragoman.cli.commands.people import add_person

    add_person(name, load_settings(config, store))


@app.command("list", epilog="Example: `dragoman people list --json`")
def list_people(store: Store = None, config: Config = None, json: AsJson = False) -> None:
    """Who has a key, and since when."""
    from dragoman.cli.commands.people import list_people

    list_people(load_settings(config, store), as_json=json)


@app.command(epilog="Example: `dragoman people remove anna`")
def remove(name: Name, store: Store = None, config: Config = None) -> None:
    """Their key is worth nothing any more. What they said stays."""
    from dragoman.cli.commands.people import remove_person

    remove_person(name, load_settings(config, store))
