"""Settings in, whatever could not be followed out: the house is put together, and not opened."""

from __future__ import annotations

import tempfile
from pathlib import Path

from dragoman.config.build import build_runtime, catalog_of
from dragoman.config.settings import Settings
from dragoman.errors import ConfigError, NotFound
from dragoman.providers.catalog import Catalog
from dragoman.wire.scripted import ScriptedModel


def check(settings: Settings) -> list[str]:
    """ConfigError where the house cannot be built. What it would be without is returned."""
    catalog = catalog_of(settings)
    named = [
        settings.values.get("model"),
        *(one.get("model") for one in settings.values.get("agents", {}).values()),
    ]
    for model in named:
        if model is not None:
            _find(catalog, model)
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        house = build_runtime(settings, model=ScriptedModel([]), store=Path(folder) / "check.db")
    return [f"left out: {trouble}" for trouble in house.warnings]


def _find(catalog: Catalog, model: str) -> None:
    try:
        catalog.find(model)
    except NotFound as error:
        raise ConfigError(str(error)) from error
