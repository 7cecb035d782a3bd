"""Routes to see, change, reorder and call off what was sent and no turn has taken yet."""

from __future__ import annotations

from contextlib import nullcontext

from dragoman.errors import NotFound, TurnBusy
from dragoman.server import bodies, shapes
from dragoman.server.api_router import api_router
from dragoman.server.context import Context, Person, TheContext
from dragoman.server.views import queue_of, queued_turns

router = api_router("turns")


@router.get("/conversations/{id}/queue")
async def queue(context: TheContext, person: Person, id: str) -> shapes.QueueView:
    """What waits for the turn before it, the first first; and what will steer a turn that runs."""
    await context.check_owner(id, person)
    return await _queue(context, id)


@router.put("/conversations/{id}/queue")
async def reorder(context: TheContext, person: Person, id: str, body: bodies.QueueOrder) -> shapes.QueueView:
    """The turns that are named come first, in this order. What has begun meanwhile is passed over."""
    await context.check_owner(id, person)
    await context.runtime.store.reorder_queue(id, body.turns)
    context.publisher.queue_changed(id)
    return await _queue(context, id)


@router.patch("/turns/{id}")
async def change_queued(
    context: TheContext, person: Person, id: str, body: bodies.MessageBody
) -> shapes.QueuedTurn:
    """Another message for a turn that is queued. 409 where it has begun."""
    waiting = await context.queued(id, person)
    if waiting is None:
        await context.turn(id, person)
    await context.check_files(body.content(), person)
    await context.runtime.commands.change_queued(id, body.content())
    changed = await context.queued(id, person)
    if changed is None:
        raise TurnBusy(id)
    context.publisher.queue_changed(changed.conversation)
    (queued,) = await queued_turns(context.runtime, [changed])
    return queued


@router.delete("/turns/{id}/steering/{message}", status_code=204)
async def withdraw(context: TheContext, person: Person, id: str, message: int) -> None:
    """Call off what was to steer a turn, by its `id` in the queue. 404 where it has been taken already."""
    row = await context.turn(id, person)
    live = context.runtime.bus.here(id)
    if live is None and row.live and not await context.runtime.store.is_abandoned(id):
        raise TurnBusy(id)  # another process runs it, and has read the message
    with nullcontext() if live is None else live.signals.without_steering(message):
        if not await context.runtime.store.withdraw_steering(id, message):
            raise NotFound("steering message", str(message))
    context.publisher.queue_changed(row.conversation)


async def _queue(context: Context, id: str) -> shapes.QueueView:
    return await queue_of(context.runtime, id, await context.runtime.store.live_turns(id))
