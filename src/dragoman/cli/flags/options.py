"""Flags and arguments that several commands share, and how a shell completes them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dragoman.config.settings import Settings


def _settings() -> "Settings":
    from dragoman.config.settings import load

    return load()


def complete_conversations(incomplete: str) -> list[tuple[str, str]]:
    """Ids and titles for the shell. Whatever is wrong, completion stays silent."""
    try:
        from dragoman.cli.lookup import recent_titles

        known = recent_titles(_settings())
    except Exception:  # a shell that prints errors while somebody types helps nobody
        return []
    return [(id, title) for id, title in known if id.startswith(incomplete)]


def complete_models(incomplete: str) -> list[str]:
    try:
        from dragoman.config.build import catalog_of

        settings = _settings()
        providers = catalog_of(settings).providers.values()
    except Exception:  # as above
        return []
    known = [f"{provider.name}/{model.rstrip('*')}" for provider in providers for model in provider.models]
    return [
        name for name in (settings.values.get("model", ""), *known) if name and name.startswith(incomplete)
    ]


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Config = Annotated[
    Path | None,
    typer.Option(envvar="DRAGOMAN_CONFIG", help="The settings, if not the nearest dragoman.toml upwards."),
]
BaseUrl = Annotated[
    str | None, typer.Option(help="Where the model is served, if not where the catalog says.")
]
ApiKey = Annotated[
    str | None,
    typer.Option(help="The key. Others on this machine can see it: better set the provider's variable."),
]
Wire = Annotated[str | None, typer.Option(help="The protocol spoken at that address: openai_chat, …")]
Dialect = Annotated[str, typer.Option(help="How calls are made: auto, native, or a dialect such as xml_tag.")]
Trust = Annotated[
    bool, typer.Option("--trust", help="Use this folder's settings, tools and skills, this time, unasked.")
]
Log = Annotated[
    str | None,
    typer.Option("--log", metavar="text|json", help="Log every outcome to standard error, in this form."),
]
LogLevel = Annotated[
    list[str] | None,
    typer.Option(
        "--log-level",
        metavar="[ROOM=]LEVEL",
        help="What is logged: debug, info, warning or error; of one room: store=debug. Can be given again.",
    ),
]
Store = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="The database with everything that was said: a file, or postgresql://…"
    ),
]
Workspace = Annotated[Path | None, typer.Option(help="The folder that file tools and the shell work in.")]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="PROVIDER/MODEL; without it, the best that is there.",
        autocompletion=complete_models,
    ),
]
Agent = Annotated[str | None, typer.Option(help="The agent that answers.")]
Mode = Annotated[str | None, typer.Option(help="Who decides about calls: auto, ask, manual, off.")]
System = Annotated[str | None, typer.Option(help="The system prompt.")]
Conversation = Annotated[
    str, typer.Argument(help="Its id, the beginning of it, or `last`.", autocompletion=complete_conversations)
]
Allow = Annotated[
    list[str] | None,
    typer.Option(help="PERMISSION or PERMISSION:PATTERN that needs no question. Can be given again."),
]
Deny = Annotated[list[str] | None, typer.Option(help="What must not run. Can be given again.")]
