"""`dragoman diff`, `revert`, `redo` and `blame`: what turns did to the files, and the way back."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.flags.command import CommandGroup, JsonFlags, WorkspaceFlags

group = CommandGroup("What was done to your files")

Force = Annotated[
    bool, typer.Option("--force", help="Also where somebody changed a file since: that is lost then.")
]


@group.command("diff", "commands.files:show_diff", "`dragoman diff turn_9x3k2m7qw1r5t8v0 > work.patch`")
class DiffFlags(WorkspaceFlags, JsonFlags):
    """What a turn did to the files of the workspace, as a unified diff; or one step or call of it, or all.

    In colours and a pager at a terminal; else a text that `git apply` takes.
    """

    what: Annotated[
        str,
        typer.Argument(
            metavar="[ID]", help="Of a turn, a reply, a call or a conversation; `last` is the latest turn."
        ),
    ] = "last"


@group.command(
    "revert",
    "commands.files:revert",
    "`dragoman revert last`, or `dragoman revert call_77ab2m7qw1r5t8v0 --files-only --force`",
)
class RevertFlags(WorkspaceFlags):
    """Take back what was done to the files since then, and go back in the conversation.

    What was said stays, as a branch. All files go back or none: where somebody changed one of them since, you
    are asked. `dragoman redo` takes a revert back.
    """

    what: Annotated[
        str,
        typer.Argument(
            metavar="TURN|MESSAGE|CALL", help="Go back to before this: an id, or `last` for the latest turn."
        ),
    ]
    files_only: Annotated[bool, typer.Option("--files-only", help="Leave the conversation where it is.")] = (
        False
    )
    force: Force = False


@group.command("redo", "commands.files:redo", "`dragoman redo`")
class RedoFlags(WorkspaceFlags):
    """Take the last revert of a conversation back."""

    conversation: Annotated[str, typer.Argument(help="Its id, the beginning of it, or `last`.")] = "last"
    force: Force = False


@group.command("blame", "commands.files:show_blame", "`dragoman blame src/main.py`")
class BlameFlags(WorkspaceFlags, JsonFlags):
    """Which turn wrote each line of a file, and what it was asked for. Lines of others stand without one."""

    file: Annotated[Path, typer.Argument(help="A file of the workspace.")]
