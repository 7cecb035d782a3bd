"""Settings in, the model that is to answer out: found, and why it was taken."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dragoman.config.build import catalog_of
from dragoman.config.settings import Settings
from dragoman.providers import choice
from dragoman.providers.catalog import Catalog
from dragoman.providers.keys import Keys
from dragoman.providers.local.weights import Progress
from dragoman.providers.models import AUTO, Models


@dataclass(slots=True, frozen=True)
class Chosen:
    """All models there are, which of them answers where none is named, and what to tell the person of it."""

    models: Models
    name: str
    reason: str
    note: str | None = None


async def choose(
    settings: Settings,
    *,
    catalog: Catalog | None = None,
    keys: Keys | None = None,
    dialect: str = AUTO,
    progress: Progress | None = None,
) -> Chosen:
    """The model that is named, else the best that is there. NotFound names the nearest provider."""
    catalog, keys = catalog or catalog_of(settings), keys or Keys()
    named = settings.values.get("model")
    found = await choice.choose(named, catalog=catalog, keys=keys)
    models = Models(found.name, catalog=catalog, keys=keys, dialect=dialect, progress=progress)
    reason = f"named by {_where(settings)}" if named else found.reason
    return Chosen(models, found.name, reason, note_on(catalog, found.name))


def note_on(catalog: Catalog, model: str) -> str | None:
    """What a person should know before they trust a model."""
    return catalog.traits(*catalog.find(model)).note or None


def _where(settings: Settings) -> str:
    """Who named the model, without the folder: this is shown in the page too."""
    return Path(settings.origins.get("model", "the caller")).name
