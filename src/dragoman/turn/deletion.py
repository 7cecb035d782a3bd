"""Deletes conversations, with what runs and waits in them and what is remembered of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from dragoman.errors import TurnSetAside, Unreadable
from dragoman.turn.handles import Engine, TurnHandle

_PATIENCE = 10.0  # seconds for a turn to end before its conversation is deleted


async def delete_conversation(engine: Engine, conversation: str) -> None:
    """And those its calls opened. What runs there is cancelled first."""
    store = engine.store
    within = await store.within(conversation)
    for inner in within:
        for waiting in await store.queued(conversation=inner):  # else the next would begin meanwhile
            await store.unqueue(waiting.turn)
            engine.services.inputs.pop(waiting.turn, None)
    live = [row.id for inner in reversed(within) for row in await store.turns(inner) if row.live]
    for turn in live:  # the outermost first: it would go on with what became of the others
        with suppress(Unreadable, TurnSetAside):
            await engine.commands.cancel(turn, "the conversation is deleted")
    for turn in live:
        with suppress(TimeoutError, Unreadable, TurnSetAside):  # the deletion fences it off
            async with asyncio.timeout(_PATIENCE):
                await TurnHandle(turn, engine).reached("cancelled")
    await store.delete_conversation(conversation)
    await _forget(engine, within)


async def delete_untouched(engine: Engine, before: float) -> int:
    """Those in which nothing was said since then, and nothing waits. → how many"""
    deleted = await engine.store.delete_untouched(before)
    if deleted:
        await _forget(engine, deleted)
    return len(deleted)


async def _forget(engine: Engine, deleted: Sequence[str]) -> None:
    await engine.way_back.forget(deleted)
    for conversation in deleted:
        engine.driver.forget(conversation)
        engine.bus.forget(conversation)
