"""The terminal program: each command is a file beside this one, imported when it is used."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dragoman.errors import DragomanError

app = typer.Typer(
    help="Conversations in which a language model calls tools.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

Store = Annotated[Path, typer.Option(envvar="DRAGOMAN_STORE", help="The database file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@app.command(epilog="Example: `dragoman explain turn_9x3k2m7qw1r5t8v0 --json`")
def explain(
    turn: Annotated[str, typer.Argument(help="The turn's id, as events and errors name it.")],
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


def run() -> None:
    """The entry point: one line for an expected error, and exit status 1."""
    try:
        app()
    except DragomanError as error:
        print(f"dragoman: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    run()
