"""Define flags and arguments that several commands share, and their shell completion."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dragoman.config.settings import Settings


def _settings() -> "Settings":
    from dragoman.config.settings import load

    return load()


def complete_conversations(incomplete: str) -> list[tuple[str, str]]:
    """Return IDs and titles for the shell. Completion never prints an error."""
    try:
        from dragoman.cli.lookup import recent_titles

        known = recent_titles(_settings())
    except Exception:  # Printing an error while the user types would not help.
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
    typer.Option(
        envvar="DRAGOMAN_CONFIG", help="Settings file. Default: the nearest dragoman.toml in a parent folder."
    ),
]
BaseUrl = Annotated[
    str | None, typer.Option(help="Address of the model's server. Default: from the catalog.")
]
ApiKey = Annotated[
    str | None,
    typer.Option(help="API key. Other users can see it: prefer the provider's variable."),
]
Wire = Annotated[str | None, typer.Option(help="Protocol at that address: openai_chat, …")]
Dialect = Annotated[str, typer.Option(help="Form of calls: auto, native, or a dialect such as xml_tag.")]
Trust = Annotated[
    bool, typer.Option("--trust", help="Trust this folder's settings, tools and skills for this run.")
]
Log = Annotated[
    str | None,
    typer.Option("--log", metavar="text|json", help="Log every outcome to standard error in this form."),
]
LogLevel = Annotated[
    list[str] | None,
    typer.Option(
        "--log-level",
        metavar="[PART=]LEVEL",
        help="Log level: debug, info, warning or error. For one part: store=debug. Repeatable.",
    ),
]
Store = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Database of conversations: a file, or postgresql://…"),
]
Workspace = Annotated[Path | None, typer.Option(help="Folder for file tools and the shell.")]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="PROVIDER/MODEL. Default: the best available.",
        autocompletion=complete_models,
    ),
]
Agent = Annotated[str | None, typer.Option(help="Agent that answers.")]
Mode = Annotated[str | None, typer.Option(help="How calls are approved: auto, ask, manual, off.")]
System = Annotated[str | None, typer.Option(help="System prompt.")]
Conversation = Annotated[
    str, typer.Argument(help="ID, ID prefix, or `last`.", autocompletion=complete_conversations)
]
Allow = Annotated[
    list[str] | None,
    typer.Option(help="Rule for calls without approval: PERMISSION or PERMISSION:PATTERN. Repeatable."),
]
Deny = Annotated[list[str] | None, typer.Option(help="Rule for denied calls. Repeatable.")]
