"""Define routes to start, watch, steer, queue, repeat and cancel turns, and to read and finish their
calls."""

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
_PLACE = re.compile(rf"^([0-9]{{1,18}}|{OVER})$")  # the ID of an event of a turn


@router.post("/conversations/{id}/turns", status_code=202)
async def send(context: TheContext, id: str, body: bodies.NewTurn, key: Key = None) -> shapes.Begun:
    """Send a message. The turn runs even if no client watches it. Returns 409 if this branch is busy."""
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
    """Return the state and usage of a turn.

    `queued` means that it waits for the previous turn, a worker, a slot under a limit, or what `waits_for`
    names. `interrupted` means that no process runs it: you can continue or cancel it.
    """
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
    """Return the facts of a turn in order, as `dragoman explain` prints them. Only the owner can read them,
    because they contain the conversation's settings with private texts."""
    await context.turn(id, Right.OWN)
    return [FACT.to_json(fact) for fact in await _facts(context, id)]  # type: ignore[misc]  # JSON objects


@router.get("/turns/{id}/context")
async def context_of_turn(context: TheContext, id: str) -> ContextUse:
    """Return what filled the model's context in its last request, and how much of it. Sizes are estimated by
    length, after the changes of plugins."""
    await context.turn(id, Right.READ)
    return await context.runtime.turn(id).context()


@router.get("/turns/{id}/trace")
async def trace(context: TheContext, id: str) -> shapes.TraceView:
    """Return the trace of a turn: durations, waits, retries, cost, and why each call ran.

    It has no contents: neither messages nor arguments nor results.
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
    """Stream the events of one turn with their numbers, or those after `Last-Event-ID`.

    A queued turn's events follow when it begins, and none if it is cancelled. For a turn that ended long ago,
    its messages are sent. A client that has received the end gets 204.
    """
    if (waiting := await context.queued(id, Right.READ)) is not None:
        return _stream(context, id, 0, waiting.conversation)
    row = await context.turn(id, Right.READ)
    said = last_event_id if last_event_id and _PLACE.match(last_event_id) else after
    seen = 0 if said == OVER else int(said)
    if not row.live and (said == OVER or (seen and await context.runtime.bus.is_heard(id, seen))):
        return Response(status_code=204)
    if row.live:
        await context.adopt(row)  # Answers 409 if the turn cannot resume here.
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
    """Cancel a turn in any state. Its messages stay. A queued turn is removed from the queue."""
    waiting = await context.queued(id, Right.TAKE_PART)
    conversation = (waiting or await context.turn(id, Right.TAKE_PART)).conversation
    cancelled = await context.runtime.commands.cancel(
        id, body.reason, by=context.person
    )  # also cancels a queued turn that has begun since
    if waiting is not None:
        context.publisher.queue_changed(conversation)
    context.publisher.changed(conversation)
    return shapes.Cancelled(cancelled)


@router.post("/turns/{id}/continue")
async def continue_turn(context: TheContext, id: str) -> shapes.TurnInfo:
    """Resume an interrupted turn. Returns 409 if it has ended, or if this server lacks what it needs."""
    row = await context.turn(id, Right.TAKE_PART)
    if not row.live:
        raise TurnEnded(id, row.state)
    await context.runtime.turn(id).resume()
    context.publisher.changed(row.conversation)
    return await _info(context, await context.turn(id, Right.TAKE_PART))


@router.post("/turns/{id}/steer", status_code=202)
async def steer(context: TheContext, id: str, body: bodies.MessageBody) -> shapes.Done:
    """Add a message to a running turn, for its next request. Only the turn's sender can do that, because the
    turn runs under the sender's rules."""
    row = await context.turn(id, Right.TAKE_PART)
    await context.check_files(body.content())
    await context.runtime.commands.steer(id, body.content(), by=context.person)
    context.publisher.queue_changed(row.conversation)
    return shapes.Done()


async def _info(context: Context, row: TurnRow) -> shapes.TurnInfo:
    """Return the state of a turn. If its facts are unreadable, its rounds, calls and usage are unknown."""
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
    except ValueError as error:  # The facts are damaged, or a newer version wrote them.
        raise Unreadable("turn", turn, "this version does not know one of its facts") from error


# ── new versions of messages and answers ──────────────────────────────────────────────────────────


@router.post("/messages/{id}/edit", status_code=202)
async def edit(context: TheContext, id: str, body: bodies.Edit, key: Key = None) -> shapes.Begun:
    """Create a new version of a user's message, and answer it. The old version stays."""
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
    """Regenerate an answer as a new version."""
    old = await context.message(id, Right.OWN if body.revert_files else Right.TAKE_PART)
    if (before := await context.begun_with(key)) is not None:
        return before
    options, back = body.turn_options(), context.runtime.undo
    async with back.reverted(back.revert_answers(id) if body.revert_files else None):
        turn = await context.runtime.commands.rerun(
            id, options=options, parallel=body.parallel, key=key, by=context.person
        )
    context.publisher.changed(old.conversation)
    return await context.begun(turn)


# ── calls ─────────────────────────────────────────────────────────────────────────────────────────


@router.get("/calls/{id}")
async def call(context: TheContext, id: str) -> ToolCall:
    return await context.call(id, Right.READ)


@router.get("/calls/{id}/output", response_class=PlainTextResponse)
async def output(context: TheContext, id: str) -> str:
    """Return the whole output of a call, of which the model received only the head and tail."""
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
    """Create a new version of the answer that contains this call, and continue from the call."""
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
    """Deliver the result of a call that the sender's client ran. Only the first result counts."""
    await context.call(id, Right.TAKE_PART)
    if not body.model_fields_set & {"text", "value"}:
        raise BadRequest(sentence("result.neither"))
    text = body.text if body.text is not None else canonical(body.value)
    await context.runtime.commands.deliver(
        id, ToolResult(text, value=body.value), failed=body.failed, by=context.person
    )
    return shapes.Done()


# ── waiting work ──────────────────────────────────────────────────────────────────────────────────


@router.get("/conversations/{id}/queue")
async def queue(context: TheContext, id: str) -> shapes.QueueView:
    """List the queued messages in order, and those that will steer a running turn."""
    await context.check(id, Right.READ)
    return await _queue(context, id)


@router.put("/conversations/{id}/queue")
async def reorder(context: TheContext, id: str, body: bodies.QueueOrder) -> shapes.QueueView:
    """Move these queued turns to the front, in this order. Turns that have begun since are ignored."""
    await context.check(id, Right.TAKE_PART)
    await context.runtime.store.reorder_queue(id, body.turns)
    context.publisher.queue_changed(id)
    return await _queue(context, id)


@router.patch("/turns/{id}")
async def change_queued(context: TheContext, id: str, body: bodies.MessageBody) -> shapes.QueuedTurn:
    """Change the message of your queued turn. Returns 409 if the turn has begun."""
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
    """Withdraw a steering message by its `id` in the queue. Returns 404 if the turn has already taken it."""
    row = await context.turn(id, Right.TAKE_PART)
    live = context.runtime.bus.here(id)
    if live is None and row.live and not await context.runtime.store.is_abandoned(id):
        raise TurnBusy(id)  # Another process runs the turn and has read the message.
    with nullcontext() if live is None else live.signals.without_steering(message):
        if not await context.runtime.store.withdraw_steering(id, message):
            raise NotFound("steering message", str(message))
    context.publisher.queue_changed(row.conversation)


async def _queue(context: Context, id: str) -> shapes.QueueView:
    return await queue_of(context.runtime, id, await context.runtime.store.live_turns(id))
