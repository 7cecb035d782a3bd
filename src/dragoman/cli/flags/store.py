"""`dragoman store …`: what can be done with a whole store."""

from __future__ import annotations

from typing import Annotated

import typer

from dragoman.cli.flags.options import Config, load_settings

app = typer.Typer(
    help="Copy everything to another database, and bring tables up to date.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

From = Annotated[str, typer.Argument(metavar="FROM", help="A file, or postgresql://…")]
To = Annotated[str, typer.Argument(metavar="TO", help="The same; it is made if it is not there.")]
BlobsFrom = Annotated[
    str | None,
    typer.Option(
        metavar="PLACE", help="Where its attachments are, if not beside or in it: s3://…, file:///…"
    ),
]
BlobsTo = Annotated[str | None, typer.Option(metavar="PLACE", help="Where the copy's attachments go.")]


@app.command(
    epilog="Example: `dragoman store copy ~/chat.db postgresql://dragoman@db.example/chat`; or, attachments: "
    "`dragoman store copy ~/chat.db ~/chat.db --blobs-to s3://bucket/chat`"
)
def copy(
    source: From,
    target: To,
    *,
    blobs_from: BlobsFrom = None,
    blobs_to: BlobsTo = None,
    config: Config = None,
) -> None:
    """Copy conversations, turns, questions, people and attachments, and compare every row.

    Stop what uses the store first. A copy that broke off goes on where it was when it is run again. Where the
    attachments are is known of the store that the settings name.
    """
    from dragoman.cli.commands.store import copy_everything

    settings = load_settings(config, None)
    copy_everything(source, target, settings, blobs_from=blobs_from, blobs_to=blobs_to)


@app.command(epilog="Example: `dragoman store migrate --dry-run`")
def migrate(
    store: Annotated[
        str | None,
        typer.Argument(metavar="STORE", help="A file, or postgresql://…; else that of the settings."),
    ] = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
    ] = False,
    config: Config = None,
) -> None:
    """Bring the tables of a store to this version, a step at a time. Of several at once, one does it.

    Programs do it themselves when they start, unless the settings say `migrate = false`.
    """
    from dragoman.cli.commands.store import migrate_store

    migrate_store(store, load_settings(config, None), dry_run=dry_run)
