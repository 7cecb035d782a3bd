"""Settings in, their store out, opened to look and to answer: nothing that others began is carried on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dragoman.config.build import store_of
from dragoman.config.settings import Settings
from dragoman.errors import ConfigError
from dragoman.runtime import Runtime


@asynccontextmanager
async def looking(settings: Settings, *, new: bool = False) -> AsyncIterator[Runtime]:
    """With `new`, a store that is not there yet is made."""
    path = store_of(settings)
    if not new and not path.exists():
        raise ConfigError(f"there is no database {path} yet: name another one with --store")
    async with Runtime(path, adopts=False) as runtime:
        yield runtime
