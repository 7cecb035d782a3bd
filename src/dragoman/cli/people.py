"""`dragoman people …`: who may use a server, each with a key of their own."""

from __future__ import annotations

from typing import Annotated

import typer

from dragoman.cli.options import AsJson, Config, Store, settings_of

app = typer.Typer(
    help="Who may use your server, with keys of their own.", no_args_is_help=True, rich_markup_mode="markdown"
)

Name = Annotated[str, typer.Argument(help="What the person is called.")]


@app.command(epilog="Example: `dragoman people add anna`")
def add(name: Name, store: Store = None, config: Config = None) -> None:
    """Let somebody in. Their key is printed once: only a hash of it is kept."""
    import sys

    from dragoman.cli.holders import add

    print(add(name, settings_of(config, store)))
    print(f"This is the key of {name}. It is not kept and cannot be shown again.", file=sys.stderr)


@app.command("list", epilog="Example: `dragoman people list --json`")
def list_people(store: Store = None, config: Config = None, json: AsJson = False) -> None:
    """Who has a key, and since when."""
    from datetime import datetime

    from dragoman.cli.holders import people
    from dragoman.cli.printing import print_json

    known = people(settings_of(config, store))
    if json:
        print_json([{"name": one.name, "created": one.created} for one in known], indent=2)
    else:
        for one in known:
            print(f"{one.name}\t{datetime.fromtimestamp(one.created):%Y-%m-%d %H:%M}")


@app.command(epilog="Example: `dragoman people remove anna`")
def remove(name: Name, store: Store = None, config: Config = None) -> None:
    """Their key is worth nothing any more. What they said stays."""
    from dragoman.cli.holders import remove

    remove(name, settings_of(config, store))
    print(f"{name} has no key any more")
