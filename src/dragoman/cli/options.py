"""Options and arguments that several commands share, and how a shell completes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dragoman.config.settings import Settings


def conversations_like(incomplete: str) -> list[tuple[str, str]]:
    """Ids for the shell. Whatever is wrong, completion stays silent."""
    try:
        from dragoman.cli.kept import titles

        known = titles(settings_of(None, None))
    except Exception:  # a shell that is told of errors while somebody types helps nobody
        return []
    return [(id, title) for id, title in known if id.startswith(incomplete)]


def models_like(incomplete: str) -> list[str]:
    try:
        from dragoman.config.build import catalog_of

        settings = settings_of(None, None)
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
Store = Annotated[Path | None, typer.Option(help="The database with everything that was said.")]
Workspace = Annotated[Path | None, typer.Option(help="The folder that file tools and the shell work in.")]
Model = Annotated[
    str | None,
    typer.Option(help="PROVIDER/MODEL; without it, the best that is there.", autocompletion=models_like),
]
Conversation = Annotated[
    str, typer.Argument(help="Its id, the beginning of it, or `last`.", autocompletion=conversations_like)
]


def settings_of(
    config: Path | None, store: Path | None, flags: Mapping[str, object] | None = None
) -> Settings:
    """The settings that hold here, with what the command line says over them."""
    from dragoman.config.settings import load

    said = {"store": str(store.absolute()) if store is not None else None, **(flags or {})}
    return load(config, flags=said)
