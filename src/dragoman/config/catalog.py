"""The providers there are: those of the built-in catalog, with those of the settings over them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from dragoman.config.sources import decide_from_memory, find_sources, user_file
from dragoman.config.trust.contents import SETTINGS
from dragoman.providers.catalog import Catalog, load_catalog

_UNUSED = "The nearest dragoman.toml is not used, since its folder is not trusted: see `dragoman trust`"


def catalog_from(files: Sequence[Path], check: Callable[[Path, bytes], None]) -> Catalog:
    """Only the person's own file moves an address together with its key: of another, also of one that they
    named, they may not have read every line."""
    own = [file for file in files if file == user_file()]
    others = [file for file in files if file != user_file()]
    return load_catalog(*own, project=others[-1] if others else None, check=check)


def catalog_here() -> Catalog:
    """As the programs have it in this folder. Nobody is asked: what comes with a folder that was not trusted
    before is left out (P11)."""
    named = os.environ.get("DRAGOMAN_CONFIG")
    sources = find_sources(Path(named) if named else None, Path.cwd(), decide_from_memory(os.environ))
    catalog = catalog_from(sources.files, sources.check)
    if any(SETTINGS in one.contents.files for one in sources.left_out):
        return replace(catalog, unused=_UNUSED)
    return catalog
