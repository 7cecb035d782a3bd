"""Routes to begin, watch, steer, queue, repeat and cancel turns, and to see and finish their calls."""

from __future__ import annotations

import re
from contextlib import nullcontext
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import PlainTextResponse, Response

from dragoman.conversation.sharing import Right
from dragoman.errors import BadRequest, DragomanError, NotFound, TurnBusy, TurnEnded, Unreadable
from dragoman.messages.message import CallState, ToolCall, ToolResult, canonical
from dragoman.messages.usage import Usage
from dragoman.sentences import sentence
from dragoman.server import bodies, shapes
from dragoman.server.context import Context, Key, LastEventId, TheContext, api_router, stream_of
from dragoman.server.event_stream import OVER, EventStream, TurnEvent, follow_turn
from dragoman.server.snapshots import queue_of, queued_turns, state_of
from dragoman.store.store import TurnRow
from dragoman.turn.api.turn_handle import load_trace, result_of
from dragoman.turn.facts import FACT, CallChange, Fact
from dragoman.turn.machine import replay
from dragoman.turn.steps.family import sender_of
from dragoman.turn.steps.request_layers import ContextUse

router = api_router("turns")
_PLACE = re.compile(rf"^([0-9]{{1,18}}|{OVER})$")  # the id of an event of a turn


@router.post("/conversations/{id}/turns", status_code=202)
async def send(context: TheContext, id: str, body: bodies.NewTurn, key: Key = None) -> shapes.Begun:
    """Say something. The turn runs whether anybody watches or not. 409 where this branch is busy."""
    await context.check(id, Right.TAKE_PART)
    await context.check_files(body.content())
    options = body.turn_options()
    turn = await context.runtime.commands.send(
        id, body.content(), parent=body.parent, queue=body.queue, options=options, key=key, by=context.person
    )
    begun = await context.begun(turn)
    if begun.message is None:
        context.publisher.queue_changed(id)
    context.publisher.changed(id)
    return begun


@router.get("/turns/{id}")
async def turn(context: TheContext, id: str) -> shapes.TurnInfo:
    """Its state and usage. `queued` means that it waits for the turn before it, for a worker, for a place
    under a limit, or for what `waits_for` says; `interrupted`, that nobody runs it: it can be continued, or
    cancelled."""
    if (waiting := await context.queued(id, Right.READ)) is not None:
        (queued,) = await queued_turns(context.runtime, [waiting])
        message, why = waiting.message, queued.waits_for
        info = shapes.TurnInfo(
            id, waiting.conversation, message.id, "queued", True, message.created, Usage(), why
        )
        info.by = waiting.sender or await context.runtime.store.owner_of(waiting.conversation)
        return info
    return await _info(context, await context.turn(id, Right.READ))


@router.get("/turns/{id}/facts")
async def facts(context: TheContext, id: str) -> list[dict[str, Any]]:
    """Everything that happened in it, in order: what `dragoman explain` prints. For the owner: it holds the
    settings of the conversation, with its private texts."""
    await context.turn(id, Right.OWN)
    return [FACT.to_json(fact) for fact in await _facts(context, id)]  # type: ignore[misc]  # JSON objects


@router.get("/turns/{id}/context")
async def context_of_turn(context: TheContext, id: str) -> ContextUse:
    """What filled the model's context in its last request, and how much of it: estimated by length, less what
    plugins did."""
    await context.turn(id, Right.READ)
    return await context.runtime.turn(id).context()


@router.get("/turns/{id}/trace")
async def trace(context: TheContext, id: str) -> shapes.TraceView:
    """What took how long, what waited for whom, what was tried again, what it cost, and why each call ran.

    No contents: neither messages nor arguments nor results.
    """
    found = await load_trace(context.runtime.store, await context.turn(id, Right.READ))
    now = context.runtime.services.clock()
    return shapes.TraceView(found, found.totals(now), now)


@router.get(
    "/turns/{id}/events",
    response_class=Response,
    responses={**stream_of(TurnEvent), 204: {"description": "It is over, and was heard to its end"}},
)
async def events(
    context: TheContext,
    id: str,
    after: Annotated[str, Query(pattern=_PLACE.pattern)] = "0",
    last_event_id: LastEventId = None,
) -> Response:
    """One turn's events, each with its number; those after `Last-Event-ID` where that is given.

    Those of a queued one come when it begins; none where it is called off. Of a turn that has long been
    over, what it said; and nothing (204) to who has heard it to its end.
    """
    if (waiting := await context.queued(id, Right.READ)) is not None:
        return _stream(context, id, 0, waiting.conversation)
    row = await context.turn(id, Right.READ)
    said = last_event_id if last_event_id and _PLACE.match(last_event_id) else after
    seen = 0 if said == OVER else int(said)
    if not row.live and (said == OVER or (seen and await context.runtime.bus.is_heard(id, seen))):
        return Response(status_code=204)
    if row.live:
        await context.adopt(row)  # 409 where it cannot go on here
    return _stream(context, id, seen, row.conversation)


def _stream(context: Context, id: str, after: int, conversation: str) -> Response:
    chunks = follow_turn(context.runtime.turn(id), after)
    return EventStream(chunks, context.publisher.streams, reader=context.reader(conversation))


@router.post("/turns/{id}/cancel")
async def cancel(
    context: TheContext,
    id: str,
    body: bodies.Cancel = bodies.Cancel(),  # noqa: B008 - nobody changes it
) -> shapes.Cancelled:
    """Stop it, in whatever state it is. What it has said stays. One that is queued is called off."""
    waiting = await context.queued(id, Right.TAKE_PART)
    conversation = (waiting or await context.turn(id, Right.TAKE_PART)).conversation
    cancelled = await context.runtime.commands.cancel(
        id, body.reason, by=context.person
    )  # also if it has begun since
    if waiting is not None:
        context.publisher.queue_changed(conversation)
    context.publisher.changed(conversation)
    return shapes.Cancelled(cancelled)


@router.post("/turns/{id}/continue")
async def continue_turn(context: TheContext, id: str) -> shapes.TurnInfo:
    """Go on with a turn that nobody runs. 409 where it is over, or where what it needs is not here."""
    row = await context.turn(id, Right.TAKE_PART)
    if not row.live:
        raise TurnEnded(id, row.state)
    await context.runtime.turn(id).resume()
    context.publisher.changed(row.conversation)
    return await _info(context, await context.turn(id, Right.TAKE_PART))


@router.post("/turns/{id}/steer", status_code=202)
async def steer(context: TheContext, id: str, body: bodies.MessageBody) -> shapes.Done:
    """Say something to a running turn: its next request contains it. Only its sender can: what is said in it
    is said with the sender's rules."""
    row = await context.turn(id, Right.TAKE_PART)
    await context.check_files(body.content())
    await context.runtime.commands.steer(id, body.content(), by=context.person)
    context.publisher.queue_changed(row.conversation)
    return shapes.Done()


async def _info(context: Context, row: TurnRow) -> shapes.TurnInfo:
    """Also of a turn whose facts cannot be read: its rounds, calls and usage are unknown then."""
    state = await state_of(context.runtime, row)
    info = shapes.TurnInfo(row.id, row.conversation, row.message, state, row.live, row.created, Usage())
    info.by = await sender_of(context.runtime.store, row)
    try:
        turn = replay(await _facts(context, row.id))
        snapshot = await context.runtime.turn(row.id).snapshot()
    except DragomanError:
        return info
    result = result_of(row.id, turn, snapshot.messages, None)
    tools = {call.id: call.tool for message in snapshot.messages for call in message.all_calls}
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
        raise Unreadable("turn", turn, "this version does not know one of its facts") from error


# ── new versions of messages and answers ──────────────────────────────────────────────────────────


@router.post("/messages/{id}/edit", status_code=202)
async def edit(context: TheContext, id: str, body: bodies.Edit, key: Key = None) -> shapes.Begun:
    """A new version of what a person said, and its answer. The old one stays."""
    old = await context.message(id, Right.OWN if body.revert_files else Right.TAKE_PART)
    await context.check_files(body.content())
    if (before := await context.begun_with(key)) is not None:
        return before
    options, back = body.turn_options(), context.runtime.undo
    async with back.reverted(back.revert_message(id, files_only=True) if body.revert_files else None):
        turn = await context.runtime.commands.edit(
            id, body.content(), options=options, key=key, by=context.person
        )
    context.publisher.changed(old.conversation)
    return await context.begun(turn)


@router.post("/messages/{id}/rerun", status_code=202, name="rerun")
async def rerun_answer(
    context: TheContext,
    id: str,
    body: bodies.Rerun = bodies.Rerun(),  # noqa: B008 - nobody changes it
    key: Key = None,
) -> shapes.Begun:
    """A new version of an answer."""
    old = await context.message(id, Right.OWN if body.revert_files else Right.TAKE_PART)
    if (before := await context.begun_with(key)) is not None:
        return before
    options, back = body.turn_options(), context.runtime.undo
    async with back.reverted(back.revert_answers(id) if body.revert_files else None):
        turn = await context.runtime.commands.rerun(
            id, options=options, beside=body.beside, key=key, by=context.person
        )
    context.publisher.changed(old.conversation)
    return await context.begun(turn)


# ── calls ─────────────────────────────────────────────────────────────────────────────────────────


@router.get("/calls/{id}")
async def call(context: TheContext, id: str) -> ToolCall:
    return await context.call(id, Right.READ)


@router.get("/calls/{id}/output", response_class=PlainTextResponse)
async def output(context: TheContext, id: str) -> str:
    """The whole of what a call gave, where the model was shown only its head and tail."""
    found = await context.call(id, Right.READ)
    if found.result is None or found.state is CallState.WITHHELD:
        raise NotFound("output of call", id)
    if found.result.blob is None:
        return found.result.text
    return (await context.runtime.store.blob(found.result.blob)).decode()


@router.post("/calls/{id}/rerun", status_code=202, name="rerun")
async def rerun_call(
    context: TheContext,
    id: str,
    body: bodies.RerunCall = bodies.RerunCall(),  # noqa: B008 - nobody changes it
) -> shapes.Begun:
    """A new version of the answer that holds this call, which goes on from there."""
    await context.call(id, Right.OWN if body.revert_files else Right.TAKE_PART)
    change = CallChange(id, body.arguments, body.result)
    back = context.runtime.undo
    async with back.reverted(back.revert_call(id, files_only=True) if body.revert_files else None):
        turn = await context.runtime.commands.rerun_call(
            change, options=body.turn_options(), by=context.person
        )
    context.publisher.changed((await context.runtime.store.turn(turn)).conversation)
    return await context.begun(turn)


@router.post("/calls/{id}/result", status_code=202)
async def deliver(context: TheContext, id: str, body: bodies.Result) -> shapes.Done:
    """The result of a call that the client of its sender ran. The first one counts."""
    await context.call(id, Right.TAKE_PART)
    if not body.model_fields_set & {"text", "value"}:
        raise BadRequest(sentence("result.neither"))
    text = body.text if body.text is not None else canonical(body.value)
    await context.runtime.commands.deliver(
        id, ToolResult(text, value=body.value), failed=body.failed, by=context.person
    )
    return shapes.Done()


# ── what waits ────────────────────────────────────────────────────────────────────────────────────


@router.get("/conversations/{id}/queue")
async def queue(context: TheContext, id: str) -> shapes.QueueView:
    """What waits for the turn before it, the first first; and what will steer a turn that runs."""
    await context.check(id, Right.READ)
    return await _queue(context, id)


@router.put("/conversations/{id}/queue")
async def reorder(context: TheContext, id: str, body: bodies.QueueOrder) -> shapes.QueueView:
    """The turns that are named come first, in this order. What has begun meanwhile is passed over."""
    await context.check(id, Right.TAKE_PART)
    await context.runtime.store.reorder_queue(id, body.turns)
    context.publisher.queue_changed(id)
    return await _queue(context, id)


@router.patch("/turns/{id}")
async def change_queued(context: TheContext, id: str, body: bodies.MessageBody) -> shapes.QueuedTurn:
    """Another message for a turn that is queued, by who sent it. 409 where it has begun."""
    waiting = await context.queued(id, Right.TAKE_PART)
    if waiting is None:
        await context.turn(id, Right.TAKE_PART)
    await context.check_files(body.content())
    await context.runtime.commands.change_queued(id, body.content(), by=context.person)
    changed = await context.queued(id, Right.TAKE_PART)
    if changed is None:
        raise TurnBusy(id)
    context.publisher.queue_changed(changed.conversation)
    (queued,) = await queued_turns(context.runtime, [changed])
    return queued


@router.delete("/turns/{id}/steering/{message}", status_code=204)
async def withdraw(context: TheContext, id: str, message: int) -> None:
    """Call off what was to steer a turn, by its `id` in the queue. 404 where it has been taken already."""
    row = await context.turn(id, Right.TAKE_PART)
    live = context.runtime.bus.here(id)
    if live is None and row.live and not await context.runtime.store.is_abandoned(id):
        raise TurnBusy(id)  # another process runs it, and has read the message
    with nullcontext() if live is None else live.signals.without_steering(message):
        if not await context.runtime.store.withdraw_steering(id, message):
            raise NotFound("steering message", str(message))
    context.publisher.queue_changed(row.conversation)


async def _queue(context: Context, id: str) -> shapes.QueueView:
    return await queue_of(context.runtime, id, await context.runtime.store.live_turns(id))
