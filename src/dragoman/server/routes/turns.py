"""Routes to begin, watch, steer, continue and cancel turns."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from dragoman.errors import DragomanError, TurnEnded, Unreadable
from dragoman.messages.usage import Usage
from dragoman.server import bodies, shapes
from dragoman.server.api_router import api_router
from dragoman.server.context import Context, Key, Person, TheContext
from dragoman.server.routes.events import LastEventId, stream_of
from dragoman.server.stream import OVER, EventStream, follow_turn
from dragoman.server.stream_events import TurnEvent
from dragoman.server.views import queued_turns, state_of
from dragoman.store.store import TurnRow
from dragoman.turn.api.turn_handle import load_trace, result_of
from dragoman.turn.facts import FACT, Fact
from dragoman.turn.machine import replay
from dragoman.turn.steps.request_layers import ContextUse

router = api_router("turns")
_PLACE = re.compile(rf"^([0-9]{{1,18}}|{OVER})$")  # the id of an event of a turn


@router.post("/conversations/{id}/turns", status_code=202)
async def send(
    context: TheContext, person: Person, id: str, body: bodies.NewTurn, key: Key = None
) -> shapes.Begun:
    """Say something. The turn runs whether anybody watches or not. 409 where this branch is busy."""
    await context.check_owner(id, person)
    await context.check_files(body.content(), person)
    options = body.turn_options()
    turn = await context.runtime.commands.send(
        id, body.content(), parent=body.parent, queue=body.queue, options=options, key=key
    )
    begun = await context.begun(turn)
    if begun.message is None:
        context.publisher.queue_changed(id)
    context.publisher.changed(id)
    return begun


@router.get("/turns/{id}")
async def turn(context: TheContext, person: Person, id: str) -> shapes.TurnInfo:
    """Its state and usage. `queued` means that it waits for the turn before it, for a worker, for a place
    under a limit, or for what `waits_for` says; `interrupted`, that nobody runs it: it can be continued, or
    cancelled."""
    if (waiting := await context.queued(id, person)) is not None:
        (queued,) = await queued_turns(context.runtime, [waiting])
        message, why = waiting.message, queued.waits_for
        return shapes.TurnInfo(
            id, waiting.conversation, message.id, "queued", True, message.created, Usage(), why
        )
    return await _info(context, await context.turn(id, person))


@router.get("/turns/{id}/facts")
async def facts(context: TheContext, person: Person, id: str) -> list[dict[str, Any]]:
    """Everything that happened in it, in order: what `dragoman explain` prints."""
    await context.turn(id, person)
    return [FACT.to_json(fact) for fact in await _facts(context, id)]  # type: ignore[misc]  # JSON objects


@router.get("/turns/{id}/context")
async def context_of_turn(context: TheContext, person: Person, id: str) -> ContextUse:
    """What filled the model's context in its last request, and how much of it: estimated by length, less what
    plugins did."""
    await context.turn(id, person)
    return await context.runtime.turn(id).context()


@router.get("/turns/{id}/trace")
async def trace(context: TheContext, person: Person, id: str) -> shapes.TraceView:
    """What took how long, what waited for whom, what was tried again, what it cost, and why each call ran.

    No contents: neither messages nor arguments nor results.
    """
    found = await load_trace(context.runtime.store, await context.turn(id, person))
    now = context.runtime.services.clock()
    return shapes.TraceView(found, found.totals(now), now)


@router.get(
    "/turns/{id}/events",
    response_class=Response,
    responses={**stream_of(TurnEvent), 204: {"description": "It is over, and was heard to its end"}},
)
async def events(
    context: TheContext,
    person: Person,
    id: str,
    after: Annotated[str, Query(pattern=_PLACE.pattern)] = "0",
    last_event_id: LastEventId = None,
) -> Response:
    """One turn's events, each with its number; those after `Last-Event-ID` where that is given.

    Those of a queued one come when it begins; none where it is called off. Of a turn that has long been
    over, what it said; and nothing (204) to who has heard it to its end.
    """
    if await context.queued(id, person) is not None:
        return _stream(context, id, 0)
    row = await context.turn(id, person)
    said = last_event_id if last_event_id and _PLACE.match(last_event_id) else after
    seen = 0 if said == OVER else int(said)
    if not row.live and (said == OVER or (seen and await context.runtime.bus.is_heard(id, seen))):
        return Response(status_code=204)
    if row.live:
        await context.runtime.driver.adopt(id)  # 409 where it cannot go on here
    return _stream(context, id, seen)


def _stream(context: Context, id: str, after: int) -> Response:
    return EventStream(follow_turn(context.runtime.turn(id), after), context.publisher.streams)


@router.post("/turns/{id}/cancel")
async def cancel(
    context: TheContext,
    person: Person,
    id: str,
    body: bodies.Cancel = bodies.Cancel(),  # noqa: B008 - nobody changes it
) -> shapes.Cancelled:
    """Stop it, in whatever state it is. What it has said stays. One that is queued is called off."""
    waiting = await context.queued(id, person)
    conversation = (waiting or await context.turn(id, person)).conversation
    cancelled = await context.runtime.commands.cancel(id, body.reason)  # also if it has begun since
    if waiting is not None:
        context.publisher.queue_changed(conversation)
    context.publisher.changed(conversation)
    return shapes.Cancelled(cancelled)


@router.post("/turns/{id}/continue")
async def continue_turn(context: TheContext, person: Person, id: str) -> shapes.TurnInfo:
    """Go on with a turn that nobody runs. 409 where it is over, or where what it needs is not here."""
    row = await context.turn(id, person)
    if not row.live:
        raise TurnEnded(id, row.state)
    await context.runtime.turn(id).resume()
    context.publisher.changed(row.conversation)
    return await _info(context, await context.turn(id, person))


@router.post("/turns/{id}/steer", status_code=202)
async def steer(context: TheContext, person: Person, id: str, body: bodies.MessageBody) -> shapes.Done:
    """Say something to a running turn: its next request contains it."""
    row = await context.turn(id, person)
    await context.check_files(body.content(), person)
    await context.runtime.commands.steer(id, body.content())
    context.publisher.queue_changed(row.conversation)
    return shapes.Done()


async def _info(context: Context, row: TurnRow) -> shapes.TurnInfo:
    """Also of a turn whose facts cannot be read: its rounds, calls and usage are unknown then."""
    state = await state_of(context.runtime, row)
    info = shapes.TurnInfo(row.id, row.conversation, row.message, state, row.live, row.created, Usage())
    try:
        turn = replay(await _facts(context, row.id))
        snapshot = await context.runtime.turn(row.id).snapshot()
    except DragomanError:
        return info
    result = result_of(row.id, turn, snapshot.messages, None)
    tools = {call.id: call.tool for message in snapshot.messages for call in message.calls}
    info.usage, info.rounds = turn.usage, turn.rounds
    info.calls = [shapes.CallInfo(id, tools.get(id, ""), call.state) for id, call in turn.calls.items()]
    info.ended, info.finish, info.limit = turn.ended or None, result.finish, turn.limit
    if (failed := turn.error) is not None:
        info.error = shapes.TurnError(failed.error, failed.kind, failed.retryable)
    info.trail_size, info.answer_slice = result.trail_size, result.answer_slice
    return info


async def _facts(context: Context, turn: str) -> list[Fact]:
    try:
        return await context.runtime.turn(turn).facts()
    except ValueError as error:  # of a newer version, or damaged: in either case not ours to read
        raise Unreadable("turn", turn, "one of its facts is not known here") from error
