"""`dragoman store …`: what can be done with a whole store."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(
    help="Copy everything to another database.", no_args_is_help=True, rich_markup_mode="markdown"
)

From = Annotated[str, typer.Argument(metavar="FROM", help="A file, or postgresql://…")]
To = Annotated[str, typer.Argument(metavar="TO", help="The same; it is made if it is not there.")]


@app.callback()
def store() -> None:
    """One command for now, under a name of its own."""


@app.command(epilog="Example: `dragoman store copy ~/chat.db postgresql://dragoman@db.example/chat`")
def copy(source: From, target: To) -> None:
    """Copy conversations, turns, questions, people and attachments, and compare every row.

    Stop what uses the store first. A copy that broke off goes on where it was when it is run again.
    """
    from dragoman.cli.commands.store import copy_everything

    copy_everything(source, target)
