"""Define the terminal program `dragoman`: its commands, and the exit status of failures."""

from __future__ import annotations

import os
import sys
from copy import copy
from functools import cache
from typing import Annotated

import typer
from typer.core import TyperGroup
from typer.main import get_command
from typer.models import TyperInfo

from dragoman.cli.flags import chat, conversations, evaluation, files, inspection, mcp, setup, turns
from dragoman.errors import DragomanError

app = typer.Typer(
    help="Conversations in which a language model calls tools.",
    epilog="Exit status: 0 done, 1 an error, 2 wrong usage or settings, 130 cancelled.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for commands in (chat, turns, setup, inspection, conversations, files):
    app.add_typer(commands.group.app)
for name, group in {
    "models": setup.models,
    "mcp": mcp.group,
    "config": setup.config,
    "keys": setup.keys,
    "people": setup.people,
    "store": setup.store,
}.items():
    app.add_typer(group.app, name=name, rich_help_panel=setup.group.panel)
app.add_typer(evaluation.group.app, name="eval", rich_help_panel=inspection.group.panel)


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


def command_with(name: str) -> TyperGroup:
    """Return the program with only the commands in the panel of this one, because describing all of them is
    slow.

    For an unknown name, return all commands, for the help and for suggestions.
    """
    return _described(*(group for group in app.registered_groups if name in _names(group)))


@cache
def _described(*groups: TyperInfo) -> TyperGroup:
    narrowed = copy(app)
    narrowed.registered_groups = [*groups] or app.registered_groups
    command = get_command(narrowed)
    assert isinstance(command, TyperGroup)
    return command


def _names(group: TyperInfo) -> set[str]:
    """Return the name of a group. Without one, return the names of its commands."""
    if isinstance(group.name, str):
        return {group.name}
    commands = group.typer_instance.registered_commands if group.typer_instance is not None else []
    return {one.name for one in commands if one.name is not None}


def run() -> None:
    """Run the program. An expected error becomes one line on standard error and an exit status."""
    import sqlite3

    from dragoman.cli.terminal.text import describe_error, exit_status

    try:
        command_with(sys.argv[1] if len(sys.argv) > 1 else "")()
    except BrokenPipeError:
        # The reader has disconnected. Buffered output must not raise the error again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (DragomanError, OSError, sqlite3.Error) as error:
        print(f"dragoman: {describe_error(error)}", file=sys.stderr)
        sys.exit(exit_status(error))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    run()
