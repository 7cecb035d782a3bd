"""One turn in, its events as Server-Sent Events out, under the numbers they have in the turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing

from dragoman.messages.events import Event
from dragoman.server.stream import ALIVE
from dragoman.turn.handles import TurnHandle


async def _events(turn: TurnHandle, after: int) -> AsyncGenerator[Event, None]:
    async for event in turn.events(after):
        yield event


async def follow_turn(turn: TurnHandle, after: int, dump: Callable[[Event], str]) -> AsyncIterator[bytes]:
    """Until the turn ends. A turn that waits for a person is not over."""
    yield b": welcome\n\n"
    async with aclosing(_events(turn, after)) as events:
        while True:
            coming = asyncio.ensure_future(anext(events, None))
            try:
                while not (await asyncio.wait({coming}, timeout=ALIVE))[0]:
                    yield b": still here\n\n"
            except BaseException:
                coming.cancel()
                await asyncio.wait({coming})
                raise
            event = coming.result()
            if event is None:
                return
            number = f"id: {event.seq}\n" if event.seq else ""
            yield f"{number}event: {event.type}\ndata: {dump(event)}\n\n".encode("utf-8", "replace")
