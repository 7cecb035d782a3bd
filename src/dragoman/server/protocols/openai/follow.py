"""Follows a turn as a reply, for as long as a caller listens: whole, or as Server-Sent Events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request

from dragoman.errors import DragomanError
from dragoman.messages import events as e
from dragoman.messages.message import Message
from dragoman.runtime import Runtime
from dragoman.server.context import Context
from dragoman.server.protocols.openai.begin import ReplyPlace
from dragoman.server.protocols.openai.errors import NEVER_AGAIN
from dragoman.server.protocols.openai.reply import STOPPED, Piece, ReplyReader
from dragoman.turn.facts import TurnOptions, options_in

T = TypeVar("T")

WELCOME = b": welcome\n\n"
STOPPING = "this server stops: the turn goes on when it is started again"
LEFT = "the client went away"


async def reader_of(runtime: Runtime, place: ReplyPlace) -> ReplyReader:
    options = await options_of(runtime, place.turn)
    tools = frozenset(spec.name for spec in options.client_tools)
    return ReplyReader(tools, typed=options.output is not None, after=place.after)


async def options_of(runtime: Runtime, turn: str) -> TurnOptions:
    return options_in(await runtime.store.facts(turn))


async def pieces_of(runtime: Runtime, place: ReplyPlace, reader: ReplyReader) -> AsyncIterator[Piece]:
    """Until the reply is over. One that waits for a person is not."""
    try:
        async for event in runtime.turn(place.turn).events():
            if isinstance(event, e.TurnStart) and event.resumed:  # what came before is in the store alone
                for message in await messages_of_turn(runtime, place):
                    for piece in reader.feed(e.MessageAdded(message)):
                        yield piece
            for piece in reader.feed(event):
                yield piece
            if reader.over:
                return
        why, kind = STOPPING, STOPPED
    except DragomanError as error:
        why, kind = str(error), "error"
    for piece in reader.interrupt(why, kind):
        yield piece


async def messages_of_turn(runtime: Runtime, place: ReplyPlace) -> list[Message]:
    messages, _ = await runtime.store.messages(place.conversation)
    return [message for message in messages if message.turn == place.turn]


# ── for as long as somebody listens ───────────────────────────────────────────────────────────────


async def while_connected(
    request: Request, work: Awaitable[T], left: Callable[[], Awaitable[object]]
) -> T | None:
    """What comes of it; None, and `left` is called, where the client goes before that."""
    task = asyncio.ensure_future(work)
    gone = asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait([task, gone], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        await left()
        return None
    except asyncio.CancelledError as error:  # the server stops, and has waited for us long enough
        raise HTTPException(503, STOPPING, headers=NEVER_AGAIN) from error
    finally:
        gone.cancel()
        task.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def cancelled_if_left(
    context: Context, place: ReplyPlace, reader: ReplyReader, chunks: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """The same chunks. Where nobody takes them until the reply is over, the turn is cancelled, unless it is
    the server that stops."""
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk
    finally:
        if not reader.over and not context.publisher.streams.closed:
            await asyncio.shield(asyncio.create_task(cancel(context, place)))


async def cancel(context: Context, place: ReplyPlace, reason: str = LEFT) -> None:
    await context.runtime.commands.cancel(place.turn, reason)
    context.publisher.changed(place.conversation)


def frame(data: dict[str, Any], event: str | None = None) -> bytes:
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode("utf-8", "replace")
