"""Routes to begin, repeat, watch, steer and cancel turns, and to deliver what a client ran."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import PlainTextResponse, Response

from dragoman.errors import BadRequest, NotFound
from dragoman.messages.events import EVENT
from dragoman.messages.parts import CallState, ToolCall, ToolResult, canonical
from dragoman.messages.usage import Usage
from dragoman.server import bodies, shapes
from dragoman.server.context import Person, TheContext
from dragoman.server.routes.events import LastEventId, stream_of
from dragoman.server.stream import EventStream
from dragoman.server.stream_events import TurnEvent
from dragoman.server.turn_stream import follow_turn
from dragoman.turn.facts import FACT, TurnOptions

router = APIRouter(tags=["turns"])


@router.post("/conversations/{id}/turns", status_code=202)
async def send(context: TheContext, person: Person, id: str, body: bodies.NewTurn) -> shapes.Begun:
    """Say something. The turn runs whether anybody watches or not. 409 where this branch is busy."""
    await context.conversation(id, person)
    handle = await context.runtime.conversation(id)
    turn = await handle.send(
        body.content(),
        parent=body.parent,
        queue=body.queue,
        model=body.model,
        mode=body.mode,
        options=body.options,
        agent=body.agent,
    )
    context.publisher.changed(id)
    if await context.runtime.store.is_queued(turn.id):
        return shapes.Begun(turn.id)
    return shapes.Begun(turn.id, (await context.runtime.store.turn(turn.id)).message)


@router.post("/messages/{id}/edit", status_code=202)
async def edit(context: TheContext, person: Person, id: str, body: bodies.SendBody) -> shapes.Begun:
    """A new version of what a person said, and its answer. The old one stays."""
    old = await context.message(id, person)
    turn = await context.runtime.commands.edit(id, body.content())
    context.publisher.changed(old.conversation)
    return shapes.Begun(turn, (await context.runtime.store.turn(turn)).message)


@router.post("/messages/{id}/rerun", status_code=202)
async def rerun(
    context: TheContext,
    person: Person,
    id: str,
    body: bodies.Again = bodies.Again(),  # noqa: B008 - nobody changes it
) -> shapes.Begun:
    """A new version of an answer."""
    old = await context.message(id, person)
    turn = await context.runtime.commands.rerun(id, options=TurnOptions(model=body.model))
    context.publisher.changed(old.conversation)
    return shapes.Begun(turn, (await context.runtime.store.turn(turn)).message)


@router.get("/turns/{id}")
async def turn(context: TheContext, person: Person, id: str) -> shapes.TurnInfo:
    if (waiting := await context.queued(id, person)) is not None:
        message = waiting.message
        return shapes.TurnInfo(id, waiting.conversation, message.id, "queued", True, message.created, Usage())
    row = await context.turn(id, person)
    now = await context.runtime.turn(id).turn()
    return shapes.TurnInfo(
        id, row.conversation, row.message, now.state, not now.state.ended, row.created, now.usage
    )


@router.get("/turns/{id}/facts")
async def facts(context: TheContext, person: Person, id: str) -> list[dict[str, Any]]:
    """Everything that happened in it, in order: what `dragoman explain` prints."""
    await context.turn(id, person)
    stored = await context.runtime.turn(id).facts()
    return [FACT.to_json(fact) for fact in stored]  # type: ignore[misc]  # each is a JSON object


@router.get(
    "/turns/{id}/events",
    response_class=Response,
    responses={**stream_of(TurnEvent), 204: {"description": "It is over, and was heard before"}},
)
async def events(
    context: TheContext,
    person: Person,
    id: str,
    after: Annotated[int, Query(ge=0, le=10**18)] = 0,
    last_event_id: LastEventId = None,
) -> Response:
    """One turn's events, each with its number; those after `Last-Event-ID` where that is given.

    Of a turn that is over, what it said; and nothing (204) to who has heard of it before.
    """
    row = await context.turn(id, person)
    seen = int(last_event_id) if last_event_id and re.fullmatch(r"[0-9]{1,18}", last_event_id) else after
    if seen and not row.live:
        return Response(status_code=204)
    return EventStream(follow_turn(context.runtime.turn(id), seen, EVENT.dump), context.publisher.closing)


@router.post("/turns/{id}/cancel")
async def cancel(
    context: TheContext,
    person: Person,
    id: str,
    body: bodies.Cancel = bodies.Cancel(),  # noqa: B008 - nobody changes it
) -> shapes.Cancelled:
    """Stop it, in whatever state it is. What it has said is kept. One that is queued is called off."""
    if (waiting := await context.queued(id, person)) is not None:
        context.publisher.changed(waiting.conversation)
        return shapes.Cancelled(await context.runtime.store.unqueue(id))
    await context.turn(id, person)
    return shapes.Cancelled(await context.runtime.commands.cancel(id, body.reason))


@router.post("/turns/{id}/steer", status_code=202)
async def steer(context: TheContext, person: Person, id: str, body: bodies.SendBody) -> shapes.Done:
    """Say something to a running turn: its next request contains it."""
    await context.turn(id, person)
    await context.runtime.commands.steer(id, body.content())
    return shapes.Done()


# ── calls ─────────────────────────────────────────────────────────────────────────────────────────


@router.get("/calls/{id}")
async def call(context: TheContext, person: Person, id: str) -> ToolCall:
    return await context.call(id, person)


@router.get("/calls/{id}/output", response_class=PlainTextResponse)
async def output(context: TheContext, person: Person, id: str) -> str:
    """The whole of what a call gave, where the model was shown only its head and tail."""
    found = await context.call(id, person)
    if found.result is None or found.state is CallState.WITHHELD:
        raise NotFound("output of call", id)
    if found.result.blob is None:
        return found.result.text
    return (await context.runtime.store.blob(found.result.blob)).decode()


@router.post("/calls/{id}/result", status_code=202)
async def deliver(context: TheContext, person: Person, id: str, body: bodies.Result) -> shapes.Done:
    """The result of a call that the client ran. The first one counts."""
    await context.call(id, person)
    if not body.model_fields_set & {"text", "value"}:
        raise BadRequest("a result is a text or a value: there is neither")
    text = body.text if body.text is not None else canonical(body.value)
    await context.runtime.commands.deliver(id, ToolResult(text, value=body.value), failed=body.failed)
    return shapes.Done()
