"""`dragoman store copy`: everything in one store to another, with what is done so far."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack

from dragoman.errors import BadRequest, ConfigError
from dragoman.store.address import StoreAddress, absolute_place, store_address
from dragoman.store.sql.copying import copy_store
from dragoman.store.sql.database import SqlDatabase
from dragoman.store.store import Store


def copy_everything(source: str, target: str) -> None:
    places = [store_address(absolute_place(place) or "") for place in (source, target)]
    if places[0] == places[1]:
        raise BadRequest("both are the same store")
    if not places[0].is_there:
        raise ConfigError(f"there is no database {places[0]}")
    for blob in asyncio.run(_copy(*places)):
        print(f"left out, since it cannot be read: attachment {blob}", file=sys.stderr)
    print(f"everything in {places[0]} is in {places[1]}, and every row was compared")


async def _copy(source: StoreAddress, target: StoreAddress) -> list[str]:
    async with AsyncExitStack() as opened:
        here, there = [await _opened(address.store(), opened) for address in (source, target)]
        shown = _Progress()
        try:
            return await copy_store(here, there, shown)
        finally:
            shown.end()


async def _opened(store: Store, opened: AsyncExitStack) -> SqlDatabase:
    await store.open()
    opened.push_async_callback(store.close)
    assert isinstance(store, SqlDatabase), "both engines are"
    return store


class _Progress:
    """A line for each kind of thing, counted up at a terminal; where nobody looks, when it is done."""

    def __init__(self) -> None:
        self._line = ""

    def __call__(self, what: str, count: int) -> None:
        line = f"{what} {count:,}" if count else what
        if sys.stderr.isatty():
            print(f"\r{line:<40}", end="", file=sys.stderr, flush=True)
        elif self._line and line.partition(" ")[0] != self._line.partition(" ")[0]:
            print(self._line, file=sys.stderr)
        self._line = line

    def end(self) -> None:
        print("" if sys.stderr.isatty() else self._line, file=sys.stderr)
