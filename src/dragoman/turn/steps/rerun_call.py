"""Starts a turn in the middle of an earlier one, with a call that has other arguments or another result.

The steps up to that call are copied as ordinary facts. The turn is therefore a complete version of the same
answer, and recovers from a crash like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from dragoman.conversation.tree import Tree
from dragoman.errors import BadRequest, NotFound, TurnBusy
from dragoman.messages.events import MessageAdded
from dragoman.messages.ids import derived_id, new_id
from dragoman.messages.message import (
    CallState,
    Message,
    Part,
    Summary,
    ToolCall,
    ToolResult,
    arguments_hash,
    result_instead,
)
from dragoman.sentences import sentence
from dragoman.store.store import Change, Store
from dragoman.tools.repair import fitting_arguments
from dragoman.turn.facts import (
    CallChange,
    CallFinished,
    CallMade,
    CallsMade,
    CallStarted,
    Fact,
    InnerCall,
    MessageAppended,
    ReplyReceived,
    RequestBuilt,
    StepFinished,
)
from dragoman.turn.live.log import TurnLog
from dragoman.turn.machine import SETTLES
from dragoman.turn.services import Services

_COPIED = "copied from an earlier version of the answer"


async def check_change(services: Services, change: CallChange, by: str | None) -> tuple[str | None, Message]:
    """Return the turn that holds the call, and the message that it answers.

    Raise BadRequest if the change is not possible with the tools of the user who makes it.
    """
    call, conversation, _ = await services.store.call(change.call)
    turn, message = await _turn_and_message(services.store, change.call, conversation)
    if change.arguments is not None and change.result is not None:
        raise BadRequest(sentence("repeat.nothing"))
    if not isinstance(change.result, str | None):
        raise BadRequest(sentence("repeat.result_kind", given=change.result))
    seen = await services.seen_by(by or await services.store.owner_of(conversation))
    found = seen.toolbox.offer().find(call.tool)
    if change.arguments is not None and found is not None:
        fitting_arguments(change.arguments, found[1])
    return turn, message


async def _turn_and_message(store: Store, call: str, conversation: str) -> tuple[str | None, Message]:
    """Raise TurnBusy if it still runs. Messages from a fork or an import have no turns."""
    try:
        row = await store.turn_of_call(call)
    except NotFound:
        messages, _ = await store.messages(conversation)
        path = _path_of(messages, call)
        own = [one for one in path if one.turn is not None and one.turn == path[-1].turn]
        return None, Tree(messages).question_of(own[0].id if own else path[-1].id)
    if row.live:
        raise TurnBusy(row.id)
    return row.id, await store.message(row.message)


async def copy_steps(log: TurnLog, store: Store) -> None:
    """Copy the earlier turn's steps up to the call in one transaction: after a crash, all are
    copied again."""
    change = log.turn.options.again_from
    if change is None or log.turn.step:
        return
    path = await _path_to(store, log, change.call)
    facts: list[Fact] = []
    copies: list[Message] = []
    ids: dict[str | None, str] = {}
    parent, step = log.turn.message, 0
    for message in path:
        program = _program_of(message, change.call)
        parts = tuple(_copied(part, change, ids, log.now(), program) for part in message.parts)
        own = replace(message, id=new_id("msg"), turn=log.id, parent=parent, created=log.now())
        made = replace(own, parts=parts, usage=None)
        if message.inner:
            made = replace(made, inner=_copied_inner(message, made, change, program, log.now()))
        if message.role != "assistant" or message.author is not None:
            facts.append(MessageAppended(made.id, _COPIED))
        else:
            step += 1
            facts += _step(made, step, log.now(), last=message is path[-1])
        copies.append(made)
        ids[message.id] = parent = made.id
    await log.record(*facts, change=Change(messages=copies))
    for made in copies:
        log.publish(MessageAdded(made))


async def _path_to(store: Store, log: TurnLog, call: str) -> Sequence[Message]:
    """Return the messages after the user's message, up to the reply that holds the call."""
    messages, _ = await store.messages(log.conversation.id)
    path = _path_of(messages, call)
    before = [*takewhile(lambda one: one.id != log.turn.message, path)]
    return path[len(before) + 1 :]


def _path_of(messages: Sequence[Message], call: str) -> Sequence[Message]:
    """Return the messages from the first to the reply that holds the call."""
    for message in messages:
        if any(one.id == call for one in message.all_calls):
            return Tree(messages).path(message.id)
    raise NotFound("call", call, sentence("hint.message_deleted"))


def _program_of(message: Message, call: str) -> str | None:
    """Return the program that made the call, if any: it runs again with the results of earlier calls."""
    made = (one.made_in.call for one in message.inner if one.id == call and one.made_in is not None)
    return next(made, None)


def _copied_inner(
    message: Message, copy: Message, change: CallChange, program: str | None, now: float
) -> tuple[ToolCall, ...]:
    """Return the calls of the message's programs.

    For the rerun program, only those before the changed call.
    """
    programs = {old.id: new.id for old, new in zip(message.calls, copy.calls, strict=True)}
    last = next((one.made_in.number for one in message.inner if one.id == change.call and one.made_in), 0)
    copies = []
    for call in message.inner:
        place = call.made_in
        if place is None or place.call not in programs or (place.call == program and place.number > last):
            continue
        made_in = replace(place, call=programs[place.call])
        new = _changed(call, change, now) if call.id == change.call else _settled(call)
        id = derived_id("call", made_in.call, made_in.number)  # the ID that the program would look up
        copies.append(replace(new, id=id, made_in=made_in))
    return tuple(copies)


def _copied(
    part: Part, change: CallChange, ids: Mapping[str | None, str], now: float, program: str | None
) -> Part:
    if isinstance(part, Summary):
        return replace(part, keeps_from=ids.get(part.keeps_from, part.keeps_from))
    if not isinstance(part, ToolCall):
        return part
    new = replace(part, id=new_id("call"))
    if part.id == program:
        return replace(new, state=CallState.RUNNING, result=None, ended=None)
    return _changed(new, change, now) if part.id == change.call else _settled(new)


def _changed(part: ToolCall, change: CallChange, now: float) -> ToolCall:
    if change.result is not None:
        # Keep the attachments if the text is unchanged.
        same = part.result is not None and part.result.text == change.result
        result = part.result if same else result_instead(part.result, change.result)
        return replace(part, state=CallState.COMPLETED, result=result, ended=now)
    original = part.asked_for
    arguments = part.arguments if change.arguments is None else change.arguments
    return replace(
        part,
        arguments=arguments,
        original=original if arguments != original else None,
        raw=part.raw if change.arguments is None else None,  # An unchanged call stays unreadable.
        state=CallState.PENDING,
        result=None,
        started=None,
        ended=None,
    )


def _settled(call: ToolCall) -> ToolCall:
    """Keep a withheld result withheld: the model has read that it was, and the copy must not reveal the
    output."""
    if call.state is not CallState.WITHHELD or call.result is None:
        return call
    return replace(call, state=CallState.FAILED, result=ToolResult(call.result.text))


def _step(reply: Message, step: int, now: float, *, last: bool) -> list[Fact]:
    made = tuple(CallMade(call.id, call.tool) for call in reply.calls)
    facts: list[Fact] = [
        RequestBuilt(step, 1, reply.id, reply.model or "", now),
        ReplyReceived(step, reply.id, made, reply.finish or "stop", at=now),
    ]
    for call in reply.calls:
        inner = [one for one in reply.inner if one.made_in is not None and one.made_in.call == call.id]
        if inner or call.state is CallState.RUNNING:
            began = CallStarted(call.id, because=_COPIED, at=call.started or now)
            made_by = tuple(InnerCall(one.id, one.tool, _wanted(one)) for one in inner)
            facts += [began, CallsMade(call.id, made_by, at=now)]
            for one in sorted(inner, key=lambda one: one.ended or now):
                facts += _settling(one, now)
        facts += _settling(call, now, began=bool(inner))
    if not last:
        facts.append(StepFinished(step, again=True, at=now))
    return facts


def _settling(call: ToolCall, now: float, *, began: bool = False) -> list[Fact]:
    if not call.state.settled:
        return []
    finished = CallFinished(call.id, call.state, at=now)
    if not began and (call.state not in SETTLES[CallState.PENDING] or call.state is CallState.FAILED):
        return [CallStarted(call.id, because=_COPIED, at=now), finished]
    return [finished]


def _wanted(call: ToolCall) -> str:
    return arguments_hash(call.tool, call.asked_for)
