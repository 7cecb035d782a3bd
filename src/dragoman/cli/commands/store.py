"""Run `dragoman store copy` and `migrate`: copy everything to another store, and update its tables."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from dataclasses import replace

from dragoman.cli.flags.setup import CopyFlags, MigrateFlags
from dragoman.cli.folder_trust import settings_for
from dragoman.config.build import store_of
from dragoman.config.settings import Settings
from dragoman.errors import BadRequest, ConfigError
from dragoman.parameters import store_at
from dragoman.store.address import StoreAddress, StoreFile, absolute_place, store_address
from dragoman.store.sql.database import SqlDatabase
from dragoman.store.sql.database_copy import copy_blobs, copy_store, refuse_running
from dragoman.store.store import Store


async def copy(flags: CopyFlags) -> None:
    """Copy a store. If source and target are the same store, copy only its attachments to another place."""
    settings = settings_for(flags)
    here = _address(flags.source, settings, flags.blobs_from)
    there = _address(flags.target, settings, flags.blobs_to)
    same = replace(here, blobs=None) == replace(there, blobs=None)
    if same and here.shown_blobs == there.shown_blobs:
        raise BadRequest("Source and target are the same store.")
    if not here.is_there:
        raise ConfigError(f"Database {here} not found.")
    lost = await _copy(here, there, only_blobs=same)
    for blob in lost:
        print(f"Left out attachment {blob}, which is unreadable.", file=sys.stderr)
    if lost:
        print("If they are in another place, name it with --blobs-from.", file=sys.stderr)
    if same:
        print(f"the attachments of {here} are in {there.shown_blobs}: set blobs in the settings now")
    else:
        print(f"everything in {here} is in {there}, and every row was compared")


def _address(place: str, settings: Settings, blobs: str | None) -> StoreAddress:
    """Return the address with the named place of attachments. The settings name it for their store only."""
    address = store_address(absolute_place(place) or "")
    ours = store_of(settings)
    if replace(ours, blobs=None, migrates=True) == address:
        return ours if blobs is None else replace(ours, blobs=blobs)
    return replace(address, blobs=blobs)


async def _copy(source: StoreAddress, target: StoreAddress, *, only_blobs: bool) -> list[str]:
    async with AsyncExitStack() as opened:
        here = await _opened(store_at(source), opened)
        if only_blobs:
            await refuse_running(here)
        there = await _opened(store_at(target), opened)
        shown = _Progress()
        try:
            return await (copy_blobs if only_blobs else copy_store)(here, there, shown)
        finally:
            shown.end()


async def _opened(store: Store, opened: AsyncExitStack) -> SqlDatabase:
    await store.open()
    opened.push_async_callback(store.close)
    assert isinstance(store, SqlDatabase), "both engines are"
    return store


class _Progress:
    """A line for each kind of row. At a terminal it counts up, and otherwise it is printed at the end."""

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


# ── tables ────────────────────────────────────────────────────────────────────────────────────────


async def migrate(flags: MigrateFlags) -> None:
    """Print the current version, each step, and the result."""
    settings, place, dry_run = settings_for(flags), flags.place, flags.dry_run
    named = store_address(absolute_place(place) or "") if place else store_of(settings)
    address = replace(named, blobs=None, migrates=True)
    if place and isinstance(address, StoreFile) and not address.is_there:
        raise BadRequest(f"File {address} not found. Check its name. A new store needs no migration.")
    store = store_at(address)
    assert isinstance(store, SqlDatabase), "both engines are"
    before = await store.schema_state()
    print(f"{address}: {f'version {before.version}' if before.version else 'no tables yet'}")
    for number, title in before.missing:
        print(f"  {'would take' if dry_run else 'takes'} step {number}: {title}")
    for other in before.others:
        print(f"  {'would make' if dry_run else 'makes'} {other}")
    if not before.missing and not before.others:
        print(f"nothing to do: version {before.newest} is the newest")
    elif not dry_run:
        await store.migrate()
        print(f"it is at version {before.newest} now")
