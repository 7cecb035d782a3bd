"""Set how long tests wait for an expected event, also on a busy machine. A passing test waits less."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

PATIENCE = 120.0  # seconds


async def eventually(holds: Callable[[], object]) -> None:
    """Wait until it does."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - of files and processes nobody tells us
            await asyncio.sleep(0.01)
