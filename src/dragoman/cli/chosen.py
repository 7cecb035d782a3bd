"""Settings in, the model that is to answer out: found, and why it was taken."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dragoman.config.settings import Settings
from dragoman.errors import ConfigError
from dragoman.house import catalog_of
from dragoman.providers.discover import discover
from dragoman.providers.models import Models


@dataclass(slots=True, frozen=True)
class Chosen:
    """All models there are, which of them answers where none is named, and what to tell the person of it."""

    models: Models
    name: str
    reason: str
    note: str | None = None


async def choose(settings: Settings) -> Chosen:
    catalog = catalog_of(settings)
    named = settings.said.get("model")
    if named is not None:
        return Chosen(Models(named, catalog=catalog), named, f"named by {_where(settings)}")
    for server in await discover():
        for model in server.models:
            name = f"{server.provider}/{model}"
            return Chosen(Models(name, catalog=catalog), name, f"{server.provider} is running here")
    raise ConfigError("no model is named, and no local server runs: say --model PROVIDER/MODEL")


def _where(settings: Settings) -> str:
    """Who named the model, without the folder: this is shown in the page too."""
    return Path(settings.origins.get("model", "the caller")).name
