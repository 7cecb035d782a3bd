"""Check background tasks: they end with their runtime in any state."""

from __future__ import annotations

import asyncio

from dragoman.background import Background
from tests.patience import PATIENCE


async def test_a_task_that_swallows_a_cancel_is_stopped_all_the_same() -> None:
    """A program that is asked to stop ends (N4)."""
    background, swallowed = Background(), asyncio.Event()

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            swallowed.set()
            await asyncio.Event().wait()

    background.run("stubborn", stubborn)
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE):
        await background.close()
    assert swallowed.is_set()
