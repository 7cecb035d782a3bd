"""`dragoman diff`, `revert`, `redo` and `blame`: what turns did to the files, and the way back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.flags.options import AsJson, Config, Store, Workspace, absolute, load_settings

app = typer.Typer(rich_markup_mode="markdown")
PANEL = "What was done to your files"

Force = Annotated[
    bool, typer.Option("--force", help="Also where somebody changed a file since: that is lost then.")
]


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman diff turn_9x3k2m7qw1r5t8v0 > work.patch`")
def diff(
    what: Annotated[
        str,
        typer.Argument(
            metavar="[ID]", help="Of a turn, a reply, a call or a conversation; `last` is the latest turn."
        ),
    ] = "last",
    store: Store = None,
    workspace: Workspace = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """What a turn did to the files of the workspace, as a unified diff; or one step or call of it, or all.

    In colours and a pager at a terminal; else a text that `git apply` takes.
    """
    from dragoman.cli.commands.files import show_diff

    show_diff(what, load_settings(config, store, {"workspace": absolute(workspace)}), as_json=json)


@app.command(
    rich_help_panel=PANEL,
    epilog="Examples: `dragoman revert last` · `dragoman revert call_77ab2m7qw1r5t8v0 --files-only --force`",
)
def revert(
    what: Annotated[
        str,
        typer.Argument(
            metavar="TURN|MESSAGE|CALL", help="Go back to before this: an id, or `last` for the latest turn."
        ),
    ],
    *,
    files_only: Annotated[
        bool, typer.Option("--files-only", help="Leave the conversation where it is.")
    ] = False,
    force: Force = False,
    store: Store = None,
    workspace: Workspace = None,
    config: Config = None,
) -> None:
    """Take back what was done to the files since then, and go back in the conversation.

    What was said stays, as a branch. All files go back or none: where somebody changed one of them since, you
    are asked. `dragoman redo` takes a revert back.
    """
    from dragoman.cli.commands.files import revert

    settings = load_settings(config, store, {"workspace": absolute(workspace)})
    revert(what, settings, files_only=files_only, force=force)


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman redo`")
def redo(
    conversation: Annotated[str, typer.Argument(help="Its id, the beginning of it, or `last`.")] = "last",
    *,
    force: Force = False,
    store: Store = None,
    workspace: Workspace = None,
    config: Config = None,
) -> None:
    """Take the last revert of a conversation back."""
    from dragoman.cli.commands.files import redo

    redo(conversation, load_settings(config, store, {"workspace": absolute(workspace)}), force=force)


@app.command(rich_help_panel=PANEL, epilog="Example: `dragoman blame src/main.py`")
def blame(
    file: Annotated[Path, typer.Argument(help="A file of the workspace.")],
    store: Store = None,
    workspace: Workspace = None,
    config: Config = None,
    json: AsJson = False,
) -> None:
    """Which turn wrote each line of a file, and what it was asked for. Lines of others stand without one."""
    from dragoman.cli.commands.files import show_blame

    show_blame(file, load_settings(config, store, {"workspace": absolute(workspace)}), as_json=json)
