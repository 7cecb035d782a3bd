"""`dragoman rm`: deletes conversations by their names, or by how long nothing has happened in them."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from datetime import datetime

import typer

from dragoman.cli.lookup import find_conversation, open_store
from dragoman.cli.terminal.text import count, one_line
from dragoman.config.settings import Settings
from dragoman.config.tables import parse_duration
from dragoman.conversation.tree import Conversation
from dragoman.errors import BadRequest, ConfigError
from dragoman.store.store import Store


def delete_conversations(names: Sequence[str], settings: Settings, *, dry_run: bool, confirmed: bool) -> None:
    """All of them, or none where one is not there. A person at a terminal has to confirm it first."""
    found = asyncio.run(_find_idle(names, settings))
    if not dry_run and not confirmed and sys.stdin.isatty():
        for one in found:
            print(f"  {_line(one)}, used last on {_day(one.updated)}", file=sys.stderr)
        what = "it" if len(found) == 1 else f"these {len(found)} conversations"
        typer.confirm(f"Delete {what}? There is no way back", abort=True)
    if not dry_run:
        asyncio.run(_delete([one.id for one in found], settings))
    for one in found:
        print(f"{'would delete' if dry_run else 'deleted'} {_line(one)}")


async def _find_idle(names: Sequence[str], settings: Settings) -> list[Conversation]:
    async with open_store(settings) as runtime:
        found = {one.id: one for one in [await find_conversation(runtime.store, name) for name in names]}
        for id in found:
            await _check_idle(runtime.store, id)
        return list(found.values())


async def _delete(ids: Sequence[str], settings: Settings) -> None:
    async with open_store(settings) as runtime:
        for id in ids:  # a person takes their time: something may have begun meanwhile
            await _check_idle(runtime.store, id)
        for id in ids:
            within = await runtime.store.within(id)
            await runtime.store.delete_conversation(id)
            await runtime.way_back.forget(within)


async def _check_idle(store: Store, id: str) -> None:
    if await _runs(store, id):
        raise BadRequest(f"{id} is running: `dragoman cancel {id}` stops it, or wait for its end")


async def _runs(store: Store, conversation: str) -> bool:
    """Whether some process is at work in one of its branches: a turn that waits for a person is none."""
    live = [turn.id for turn in await store.live_turns(conversation) if turn.state != "waiting"]
    return any([not await store.is_abandoned(turn) for turn in live])


def delete_old(older_than: str, settings: Settings, *, dry_run: bool, confirmed: bool) -> None:
    """Those in which nothing happened for so long, and nothing waits. What is touched meanwhile stays."""
    try:
        before = time.time() - parse_duration(older_than)
    except ValueError as error:
        raise ConfigError(f"--older-than: {error}") from None
    found = asyncio.run(_untouched(settings, before))
    if not found:
        print(f"nothing is older than {older_than}", file=sys.stderr)
        return
    if dry_run:
        for conversation in found:
            print(f"would delete {_line(conversation)}, untouched since {_day(conversation.updated)}")
        return
    if not confirmed and sys.stdin.isatty():
        many = f"{count(len(found), 'conversation')}, untouched since {_day(found[-1].updated)} or longer"
        typer.confirm(f"Delete {many}? There is no way back", abort=True)
    gone = set(asyncio.run(_delete_untouched(settings, before)))
    for conversation in found:
        if conversation.id in gone:
            print(f"deleted {_line(conversation)}")
    if not gone:
        print("nothing was deleted: another program is doing it, or they were touched", file=sys.stderr)


async def _untouched(settings: Settings, before: float) -> list[Conversation]:
    async with open_store(settings) as runtime:
        return [conversation async for conversation in runtime.store.untouched(before)]


async def _delete_untouched(settings: Settings, before: float) -> list[str]:
    async with open_store(settings) as runtime:
        deleted = await runtime.store.delete_untouched(before)
        await runtime.way_back.forget(deleted)
        return deleted


def _line(conversation: Conversation) -> str:
    return f"{conversation.id} ({one_line(conversation.title or 'untitled', 60)})"


def _day(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d")
