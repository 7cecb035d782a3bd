"""The file a person names, or the one that lies here, in; the catalog with it out."""

from __future__ import annotations

from pathlib import Path

from dragoman.providers.catalog import Catalog, load_catalog

CONFIG = Path("dragoman.toml")


def catalog_of(config: Path | None) -> Catalog:
    """A file that is named has to be there; `dragoman.toml` in this folder counts if it is."""
    if config is not None:
        return load_catalog(config)
    return load_catalog(CONFIG) if CONFIG.exists() else load_catalog()
