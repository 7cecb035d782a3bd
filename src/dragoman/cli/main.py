"""The terminal program `dragoman`: the commands there are, and how it ends when one of them fails."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from dragoman.cli.flags import (
    config,
    conversations,
    editors,
    files,
    inspection,
    mcp,
    people,
    setup,
    store,
    talking,
    turns,
)
from dragoman.errors import DragomanError

app = typer.Typer(
    help="Conversations in which a language model calls tools.",
    epilog="Exit status: 0 done; 1 an error, told in a line; 2 wrong usage or settings; 130 cancelled.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for commands in (talking, editors, turns, setup, inspection, conversations, files):
    app.add_typer(commands.app)
for name, group in {"mcp": mcp, "config": config, "people": people, "store": store}.items():
    app.add_typer(group.app, name=name, rich_help_panel=setup.PANEL)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"dragoman {version('dragoman')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Conversations in which a language model calls tools."""


def run() -> None:
    """The entry point. An expected error becomes one line on standard error and an exit status."""
    import sqlite3

    from dragoman.cli.terminal.errors import describe_error, exit_status

    try:
        app()
    except BrokenPipeError:
        # Whoever read along has gone. What is still buffered must not raise it again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (DragomanError, OSError, sqlite3.Error) as error:
        print(f"dragoman: {describe_error(error)}", file=sys.stderr)
        sys.exit(exit_status(error))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    run()
