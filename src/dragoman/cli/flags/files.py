"""Define `dragoman diff`, `revert`, `redo` and `blame`: file changes of turns, and undo."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.flags.command import CommandGroup, JsonFlags, WorkspaceFlags

group = CommandGroup("Files")

Force = Annotated[bool, typer.Option("--force", help="Overwrite files that changed since.")]


@group.command("diff", "commands.files:show_diff", "`dragoman diff turn_9x3k2m7qw1r5t8v0 > work.patch`")
class DiffFlags(WorkspaceFlags, JsonFlags):
    """Show file changes of a turn, step, call or conversation.

    With colors and a pager at a terminal. Otherwise a patch for `git apply`.
    """

    what: Annotated[
        str,
        typer.Argument(
            metavar="[ID]", help="ID of a turn, reply, call or conversation. Default `last`: the latest turn."
        ),
    ] = "last"


@group.command(
    "revert",
    "commands.files:revert",
    "`dragoman revert last`, or `dragoman revert call_77ab2m7qw1r5t8v0 --files-only --force`",
)
class RevertFlags(WorkspaceFlags):
    """Undo file changes, and go back in the conversation.

    Messages stay as a branch. All files are restored, or none: if one changed since, Dragoman asks.
    `dragoman redo` reverses a revert.
    """

    what: Annotated[
        str,
        typer.Argument(
            metavar="TURN|MESSAGE|CALL", help="ID to go back before, or `last` for the latest turn."
        ),
    ]
    files_only: Annotated[bool, typer.Option("--files-only", help="Keep the conversation as it is.")] = False
    only: Annotated[
        list[Path] | None,
        typer.Option("--only", metavar="FILE", help="Undo this file alone. Repeat for more."),
    ] = None
    force: Force = False


@group.command("redo", "commands.files:redo", "`dragoman redo`")
class RedoFlags(WorkspaceFlags):
    """Reverse the last revert of a conversation."""

    conversation: Annotated[str, typer.Argument(help="ID, ID prefix, or `last`.")] = "last"
    force: Force = False


@group.command("blame", "commands.files:show_blame", "`dragoman blame src/main.py`")
class BlameFlags(WorkspaceFlags, JsonFlags):
    """Show which turn wrote each line of a file, and its request."""

    file: Annotated[Path, typer.Argument(help="File in the workspace.")]
